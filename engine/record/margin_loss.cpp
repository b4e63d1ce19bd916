// Margin losses over classes and their backwards: library nodes, each one call of ATen's CPU kernel on the whole, which
// throws for targets that are no classes.
#include <ATen/core/Reduction.h>
#include <ATen/ops/multi_margin_loss_backward_cpu_dispatch.h>
#include <ATen/ops/multi_margin_loss_cpu_dispatch.h>
#include <ATen/ops/multilabel_margin_loss_backward_cpu_dispatch.h>
#include <ATen/ops/multilabel_margin_loss_forward_cpu_dispatch.h>

#include <tuple>

#include "engine/library/out_call.h"
#include "engine/record/kernel.h"
#include "engine/record/known.h"
#include "engine/record/result.h"

namespace ae::engine {
namespace {

using at::Scalar;
using at::Tensor;
using library::OutCall;
using Two = std::tuple<Tensor, Tensor>;

const OutCall<&at::cpu::multi_margin_loss_outf> kMultiMargin("multi_margin_loss");
const OutCall<&at::cpu::multi_margin_loss_backward_outf> kMultiMarginBackward("multi_margin_loss_backward");
const OutCall<&at::cpu::multilabel_margin_loss_forward_outf> kMultilabelMargin("multilabel_margin_loss");
const OutCall<&at::cpu::multilabel_margin_loss_backward_outf> kMultilabelMarginBackward(
    "multilabel_margin_loss_backward");

constexpr uint64_t kWideFloats = type_bit(at::kFloat) | type_bit(at::kDouble);

/// Floating [rows, classes] or [classes], not empty, and int64 targets.
bool are_classes(const Tensor& self, const Tensor& target) {
  check_devices({&self, &target});
  return contains(kWideFloats, self.scalar_type()) && target.scalar_type() == at::kLong && self.numel() != 0 &&
         (self.dim() == 1 || self.dim() == 2);
}

/// One loss a row, or one in all.
at::IntArrayRef loss_shape(const Tensor& self, int64_t reduction) {
  return reduction == at::Reduction::None && self.dim() == 2 ? self.sizes().slice(0, 1) : at::IntArrayRef();
}

bool fits_rows(const Tensor& grad, const Tensor& self, int64_t reduction) {
  check_devices({&grad});
  return grad.scalar_type() == self.scalar_type() && grad.sizes().equals(loss_shape(self, reduction));
}

bool is_multi_margin(const Tensor& self, const Tensor& target, const Scalar& p, const Scalar& margin,
                     const std::optional<Tensor>& weight) {
  if (!are_classes(self, target) || p.isComplex() || margin.isComplex()) return false;
  if (p.toDouble() != 1 && p.toDouble() != 2) return false;
  if (self.dim() == 1 ? target.dim() > 1 || target.numel() != 1
                      : target.dim() != 1 || target.sizes()[0] != self.sizes()[0]) {
    return false;
  }
  if (!has(weight)) return true;
  check_devices({&*weight});
  return weight->dim() == 1 && weight->sizes()[0] == self.sizes().back() && weight->scalar_type() == self.scalar_type();
}

/// ATen's kernels refuse other targets.
bool has_contiguous_target(const Call& call) { return call.is_functional() || call.target().is_contiguous(); }

bool multi_margin_loss(Call& call, const Tensor& self, const Tensor& target, const Scalar& p, const Scalar& margin,
                       const std::optional<Tensor>& weight, int64_t reduction) {
  if (!is_multi_margin(self, target, p, margin, weight) || !has_contiguous_target(call)) return false;
  const auto fail = [](int64_t) { TORCH_CHECK(false, "target out of range"); };
  const bool known = check_values(target, 0, self.sizes().back() - 1, fail);
  if (!prepare_result(call, loss_shape(self, reduction), self.scalar_type(), {&self, &target})) return false;
  kMultiMargin.record_fence(!known, self, target, p, margin, weight, reduction, result_of(call));
  return true;
}

bool multi_margin_loss_backward(Call& call, const Tensor& grad, const Tensor& self, const Tensor& target,
                                const Scalar& p, const Scalar& margin, const std::optional<Tensor>& weight,
                                int64_t reduction) {
  if (!is_multi_margin(self, target, p, margin, weight) || !fits_rows(grad, self, reduction)) return false;
  if (!has_contiguous_target(call)) return false;
  if (!prepare_result(call, self.sizes(), self.scalar_type(), {&grad, &self, &target})) return false;
  kMultiMarginBackward.record_fence(true, grad, self, target, p, margin, weight, reduction, result_of(call));
  return true;
}

/// The second result says which classes are targets.
Two multilabel_margin_loss_forward(const Tensor& self, const Tensor& target, int64_t reduction) {
  if (!are_classes(self, target) || !self.sizes().equals(target.sizes()))
    return Fallback<Two(const Tensor&, const Tensor&, int64_t)>::call("multilabel_margin_loss_forward", self, target,
                                                                      reduction);
  const Tensor loss = make_tensor(loss_shape(self, reduction), self.scalar_type());
  const Tensor is_target = make_tensor(target.sizes(), self.scalar_type());
  kMultilabelMargin.record_fence(true, self, target, reduction, loss, is_target);
  return {loss, is_target};
}

bool multilabel_margin_loss_backward(Call& call, const Tensor& grad, const Tensor& self, const Tensor& target,
                                     int64_t reduction, const Tensor& is_target) {
  check_devices({&is_target});
  if (!are_classes(self, target) || !self.sizes().equals(target.sizes()) || !fits_rows(grad, self, reduction) ||
      !is_target.sizes().equals(target.sizes()) || !has_contiguous_target(call)) {
    return false;
  }
  if (!prepare_result(call, self.sizes(), self.scalar_type(), {&grad, &self, &target, &is_target})) return false;
  kMultilabelMarginBackward.record_fence(true, grad, self, target, reduction, is_target, result_of(call));
  return true;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  AE_FUNCTIONAL(m, "multi_margin_loss", multi_margin_loss);
  AE_OUT(m, "multi_margin_loss.out", multi_margin_loss);
  AE_FUNCTIONAL(m, "multi_margin_loss_backward", multi_margin_loss_backward);
  AE_OUT(m, "multi_margin_loss_backward.grad_input", multi_margin_loss_backward);
  m.impl("multilabel_margin_loss_forward", &multilabel_margin_loss_forward);
  AE_FUNCTIONAL(m, "multilabel_margin_loss_backward", multilabel_margin_loss_backward);
  AE_OUT(m, "multilabel_margin_loss_backward.grad_input", multilabel_margin_loss_backward);
}

}  // namespace
}  // namespace ae::engine
