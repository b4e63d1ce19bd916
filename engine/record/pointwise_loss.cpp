// Losses that compare element with element, reduced or not, and their backwards.
#include <ATen/ExpandUtils.h>
#include <ATen/core/Reduction.h>

#include "engine/library/operators.h"
#include "engine/record/kernel.h"
#include "engine/record/reduce.h"
#include "engine/record/result.h"

namespace ae::engine {
namespace {

using at::Tensor;

/// What `each` describes, an element's loss, summed up or averaged where that is wanted.
template <class Each>
bool reduced(Call& call, int64_t reduction, Each each) {
  if (reduction == at::Reduction::None) return each(call);
  if (reduction != at::Reduction::Mean && reduction != at::Reduction::Sum) return false;
  Call losses;
  return each(losses) && (reduction == at::Reduction::Mean ? mean(call, losses.result, {}, false, std::nullopt)
                                                           : sum(call, losses.result, {}, false, std::nullopt));
}

/// The operands of a backward: one shape and dtype, and a gradient for each element or one for all.
bool fit_together(const Tensor& grad, const Tensor& self, const Tensor& target) {
  return self.sizes().equals(target.sizes()) && grad.dim() <= self.dim() &&
         self.scalar_type() == target.scalar_type() && self.scalar_type() == grad.scalar_type();
}

/// The gradient of the whole loss per element.
double share_of(const Tensor& self, int64_t reduction) {
  return reduction == at::Reduction::Mean ? 1.0 / static_cast<double>(self.numel()) : 1.0;
}

bool is_half(const Tensor& self) { return self.scalar_type() == at::kHalf || self.scalar_type() == at::kBFloat16; }

/// PyTorch's CPU kernel computes in the half type, rounding after each step: the steps are operators of their own.
bool squared_difference(Call& call, const Tensor& self, const Tensor& target) {
  if (!is_half(self) || !is_half(target)) return call.record(Opcode::mse, kFloatOnly, {self, target});
  Call difference;
  return difference.record(Opcode::sub, kFloatOnly, {self, target}) &&
         call.record(Opcode::square, kFloatOnly, {difference.result});
}

bool mse_loss(Call& call, const Tensor& self, const Tensor& target, int64_t reduction) {
  return reduced(call, reduction, [&](Call& each) { return squared_difference(each, self, target); });
}

bool mse_loss_backward(Call& call, const Tensor& grad, const Tensor& self, const Tensor& target, int64_t reduction) {
  if (!fit_together(grad, self, target)) return false;
  const at::Scalar scale(2 * share_of(self, reduction));
  call.make_contiguous();
  return call.record(Opcode::scaled_difference, kFloatOnly, {grad, self, target, Arg::parameter(scale)});
}

/// Smooth L1 and Huber: `width` is where the parabola ends.
template <Opcode opcode>
bool smooth_loss(Call& call, const Tensor& self, const Tensor& target, int64_t reduction, double width) {
  const bool huber = opcode == Opcode::huber;
  if (huber ? !(width > 0) || self.scalar_type() != target.scalar_type() : !(width >= 0)) return false;
  const at::Scalar parameter(width);
  return reduced(call, reduction, [&](Call& each) {
    return each.record(opcode, kFloatOnly, {self, target, Arg::parameter(parameter)});
  });
}

template <Opcode opcode>
bool smooth_loss_backward(Call& call, const Tensor& grad, const Tensor& self, const Tensor& target, int64_t reduction,
                          double width) {
  if (!fit_together(grad, self, target)) return false;
  const at::Scalar parameter(width), scale(share_of(self, reduction));
  call.make_contiguous();
  return call.record(opcode, kFloatOnly, {self, target, grad, Arg::parameter(parameter), Arg::parameter(scale)});
}

bool is_cross_entropy(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight) {
  check_devices({&self, &target});
  if (has(weight)) check_devices({&*weight});
  if (!contains(kFloats, self.scalar_type()) || !self.sizes().equals(target.sizes())) return false;
  if (self.scalar_type() != target.scalar_type()) return false;
  return !has(weight) || (weight->scalar_type() == self.scalar_type() && weight->dim() <= self.dim() &&
                          at::is_expandable_to(weight->sizes(), self.sizes()));
}

bool binary_cross_entropy(Call& call, const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight,
                          int64_t reduction) {
  if (!is_cross_entropy(self, target, weight)) return false;
  if (self.numel() != 0) record_library(library::kCheckProbabilities, {self}, {}, {}, {}, /*can_fail=*/true);
  return reduced(call, reduction, [&](Call& each) {
    return has(weight) ? each.record(Opcode::binary_cross_entropy, kFloatOnly, {self, target, *weight})
                       : each.record(Opcode::binary_cross_entropy, kFloatOnly, {self, target});
  });
}

bool binary_cross_entropy_backward(Call& call, const Tensor& grad, const Tensor& self, const Tensor& target,
                                   const std::optional<Tensor>& weight, int64_t reduction) {
  check_devices({&grad});
  if (!is_cross_entropy(self, target, weight) || !fit_together(grad, self, target)) return false;
  const at::Scalar number(reduction == at::Reduction::Mean ? static_cast<double>(self.numel()) : 1.0);
  const Arg count = Arg::parameter(number);
  constexpr Opcode kOpcode = Opcode::binary_cross_entropy_backward;
  return has(weight) ? call.record(kOpcode, kFloatOnly, {grad, self, target, count, *weight})
                     : call.record(kOpcode, kFloatOnly, {grad, self, target, count});
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  AE_FUNCTIONAL(m, "mse_loss", mse_loss);
  AE_OUT(m, "mse_loss.out", mse_loss);
  AE_FUNCTIONAL(m, "mse_loss_backward", mse_loss_backward);
  AE_OUT(m, "mse_loss_backward.grad_input", mse_loss_backward);
  AE_FUNCTIONAL(m, "smooth_l1_loss", smooth_loss<Opcode::smooth_l1>);
  AE_OUT(m, "smooth_l1_loss.out", smooth_loss<Opcode::smooth_l1>);
  AE_FUNCTIONAL(m, "smooth_l1_loss_backward", smooth_loss_backward<Opcode::smooth_l1_backward>);
  AE_OUT(m, "smooth_l1_loss_backward.grad_input", smooth_loss_backward<Opcode::smooth_l1_backward>);
  AE_FUNCTIONAL(m, "huber_loss", smooth_loss<Opcode::huber>);
  AE_OUT(m, "huber_loss.out", smooth_loss<Opcode::huber>);
  AE_FUNCTIONAL(m, "huber_loss_backward", smooth_loss_backward<Opcode::huber_backward>);
  AE_OUT(m, "huber_loss_backward.out", smooth_loss_backward<Opcode::huber_backward>);
  AE_FUNCTIONAL(m, "binary_cross_entropy", binary_cross_entropy);
  AE_FUNCTIONAL(m, "binary_cross_entropy_backward", binary_cross_entropy_backward);
}

}  // namespace
}  // namespace ae::engine
