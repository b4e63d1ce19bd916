// Negative log-likelihood, to which cross entropy is brought by log-softmax, and its backward.
#include <ATen/core/Reduction.h>

#include <tuple>

#include "engine/library/operators.h"
#include "engine/record/kernel.h"
#include "engine/record/known.h"
#include "engine/record/result.h"

namespace ae::engine {
namespace {

using at::Tensor;
using Two = std::tuple<Tensor, Tensor>;

/// The dimension of the classes, counted from the end: [classes], [rows, classes], or [batch, classes, height, width].
int64_t class_dim(const Tensor& self) { return self.dim() == 4 ? -3 : -1; }

/// The cases that are recorded: floating inputs of these shapes, int64 targets, weights of the input's dtype.
bool is_recorded(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight) {
  check_devices({&self, &target});
  if (has(weight)) {
    check_devices({&*weight});
    if (weight->dim() != 1 || weight->scalar_type() != self.scalar_type() || self.dim() == 0 ||
        weight->sizes()[0] != self.size(class_dim(self))) {
      return false;
    }
  }
  if (!contains(kFloats, self.scalar_type()) || target.scalar_type() != at::kLong || self.numel() == 0) return false;
  if (self.dim() == 4)
    return target.dim() == 3 && target.sizes()[0] == self.sizes()[0] &&
           target.sizes().slice(1) == self.sizes().slice(2);
  if (self.dim() == 2) return target.dim() == 1 && target.sizes()[0] == self.sizes()[0];
  return self.dim() == 1 && (target.dim() == 0 || (target.dim() == 1 && target.numel() == 1));
}

/// Targets are checked at the call if their values are known, else by a fence.
void check_targets(const Tensor& target, int64_t classes, int64_t ignored) {
  const auto fail = [](int64_t value) { TORCH_CHECK_INDEX(false, "Target ", value, " is out of bounds."); };
  if (!check_values(target, 0, classes - 1, fail, ignored))
    record_library(library::kCheckTargets, {target}, {}, {classes, ignored}, {}, /*can_fail=*/true);
}

/// One value a row, with a dimension of 1 where the classes are; of a single row as it is.
Tensor as_column(const Tensor& self, const Tensor& tensor) { return self.dim() == 1 ? tensor : tensor.unsqueeze(1); }

/// One weight a class, so that it broadcasts with the input.
Tensor as_classes(const Tensor& self, const Tensor& weight) {
  return self.dim() == 4 ? weight.view({weight.numel(), 1, 1}) : weight;
}

template <OperatorName name>
Two nll_loss_forward(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight, int64_t reduction,
                     c10::SymInt ignore_index) {
  if (!is_recorded(self, target, weight))
    return Fallback<Two(const Tensor&, const Tensor&, const std::optional<Tensor>&, int64_t, c10::SymInt)>::call(
        name.text, self, target, weight, reduction, ignore_index);
  const int64_t ignored = ignore_index.expect_int();
  const at::ScalarType type = self.scalar_type(), compute = compute_scalar_type(type);
  const auto shape = self.sizes();
  const int64_t dim = class_dim(self), classes = self.size(dim), rows = self.numel() / classes;
  check_targets(target, classes, ignored);

  const bool per_row = reduction == at::Reduction::None && self.dim() != 1;
  const bool is_single = self.dim() == 1;  // one row is summed already
  const bool is_mean = reduction == at::Reduction::Mean;
  // Losses and weights a row; fp32 for half types, so that only the results are rounded.
  const at::IntArrayRef row_shape = is_single ? at::IntArrayRef() : target.sizes();
  const Tensor row_loss = make_tensor(row_shape, per_row || (is_single && !is_mean) ? type : compute);
  const Tensor row_weight = make_tensor(row_shape, compute);
  const Tensor targets = as_column(self, target),
               weights_of_classes = has(weight) ? as_classes(self, *weight) : Tensor();
  c10::SmallVector<Input, 4> inputs{self, targets, Input(c10::Scalar(ignored), at::kLong)};
  if (has(weight)) inputs.emplace_back(weights_of_classes);
  record_reduce(Opcode::nll_gather, compute, shape, 1u << (self.dim() + dim), inputs, {row_loss, row_weight}, {dim});

  Tensor total = make_tensor({}, type);
  if (per_row) {
    record_pointwise(Opcode::fill, type, {Input(0.0, compute)}, total);
    return {row_loss, total};
  }
  Tensor loss = row_loss, weights = row_weight;
  if (!is_single) {
    loss = make_tensor({}, is_mean ? compute : type);
    weights = make_tensor({}, compute);
    const Tensor flat_loss = row_loss.view({rows}), flat_weight = row_weight.view({rows});
    record_reduce(Opcode::sum, compute, {rows}, 1, {flat_loss}, {loss});
    record_reduce(Opcode::sum, compute, {rows}, 1, {flat_weight}, {weights});
  }
  if (is_mean) {
    Tensor mean = make_tensor({}, type);
    record_pointwise(Opcode::div, compute, {loss, weights}, mean);
    loss = mean;
  }
  if (type == compute) return {loss, weights};
  record_pointwise(Opcode::copy, compute, {weights}, total);
  return {loss, total};
}

bool nll_loss_backward(Call& call, const Tensor& grad, const Tensor& self, const Tensor& target,
                       const std::optional<Tensor>& weight, int64_t reduction, c10::SymInt ignore_index,
                       const Tensor& total) {
  check_devices({&grad});
  const bool per_row = reduction == at::Reduction::None && self.dim() != 1;
  if (!is_recorded(self, target, weight) || grad.scalar_type() != self.scalar_type()) return false;
  if (per_row ? !grad.sizes().equals(target.sizes()) : (grad.numel() != 1 || grad.dim() > 1)) return false;
  if (!prepare_result(call, self.sizes(), self.scalar_type(), {&grad, &self, &target, &total})) return false;
  const bool is_mean = reduction == at::Reduction::Mean;
  c10::SmallVector<Input, 5> inputs;
  const Tensor grad_rows = per_row ? as_column(self, grad) : grad, targets = as_column(self, target);
  inputs.emplace_back(grad_rows);
  inputs.emplace_back(targets);
  inputs.emplace_back(c10::Scalar(ignore_index.expect_int()), at::kLong);
  if (is_mean) inputs.emplace_back(total);
  const Tensor weights_of_classes = has(weight) ? as_classes(self, *weight) : Tensor();
  if (has(weight)) inputs.emplace_back(weights_of_classes);
  record_pointwise(Opcode::nll_backward, self.scalar_type(), inputs, result_of(call),
                   {(is_mean ? 1 : 0) | (has(weight) ? 2 : 0), class_dim(self)});
  return true;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("nll_loss_forward", nll_loss_forward<"nll_loss_forward">);
  AE_FUNCTIONAL(m, "nll_loss_backward", nll_loss_backward);
  AE_OUT(m, "nll_loss_backward.grad_input", nll_loss_backward);
  m.impl("nll_loss2d_forward", nll_loss_forward<"nll_loss2d_forward">);
  AE_FUNCTIONAL(m, "nll_loss2d_backward", nll_loss_backward);
  AE_OUT(m, "nll_loss2d_backward.grad_input", nll_loss_backward);
}

}  // namespace
}  // namespace ae::engine
