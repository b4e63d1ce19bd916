// The gradient scaler's operators: unscaling with its check, and the update of the scale.
#include <cmath>

#include "engine/record/kernel.h"
#include "engine/record/pointwise.h"
#include "engine/record/reduce.h"

namespace ae::engine {
namespace {

using at::Scalar;
using at::Tensor;
using at::TensorList;

/// found_inf becomes 1 if `grad` has an infinity or NaN: its difference from itself is not 0 exactly there.
bool note_non_finite(const Tensor& grad, const Tensor& found_inf) {
  Call difference, broken, found, noted = Call::in_place(found_inf);
  const Scalar one(1.0), zero(0.0);
  return difference.record(Opcode::sub, kFloatOnly, {grad, grad}) &&
         broken.record(Opcode::ne, kCompare, {difference.result, Arg::number(zero)}) &&
         reduce(found, Opcode::any, at::kBool, at::kBool, broken.result, std::nullopt, false) &&
         noted.record(Opcode::where, kFloatOnly, {Arg::condition(found.result), Arg::parameter(one), found_inf});
}

void non_finite_check_and_unscale(TensorList grads, Tensor& found_inf, const Tensor& inv_scale) {
  bool recorded = is_neuron(found_inf) && is_neuron(inv_scale) && found_inf.numel() == 1 && inv_scale.numel() == 1 &&
                  found_inf.scalar_type() == at::kFloat && inv_scale.scalar_type() == at::kFloat;
  for (const Tensor& grad : grads) recorded = recorded && is_neuron(grad) && contains(kFloats, grad.scalar_type());
  if (!recorded) {
    using Signature = void(TensorList, Tensor&, const Tensor&);
    return Fallback<Signature>::call("_amp_foreach_non_finite_check_and_unscale_", grads, found_inf, inv_scale);
  }
  const Tensor scale = inv_scale.dim() == 0 ? inv_scale : inv_scale.view(at::IntArrayRef{});
  for (const Tensor& grad : grads) {
    if (grad.numel() == 0) continue;
    Call unscaled = Call::in_place(grad);
    const bool done = note_non_finite(grad, found_inf) && unscaled.record(Opcode::mul, kFloatOnly, {grad, scale});
    TORCH_INTERNAL_ASSERT(done);
  }
}

bool is_update_recorded(const Tensor& scale, const Tensor& successes, const Tensor& found_inf) {
  for (const Tensor* tensor : {&scale, &successes, &found_inf})
    if (!is_neuron(*tensor) || tensor->numel() != 1) return false;
  return scale.scalar_type() == at::kFloat && successes.scalar_type() == at::kInt &&
         found_inf.scalar_type() == at::kFloat;
}

Tensor& update_scale(Tensor& scale, Tensor& successes, const Tensor& found_inf, double growth, double backoff,
                     int64_t interval) {
  if (!is_update_recorded(scale, successes, found_inf)) {
    using Signature = Tensor&(Tensor&, Tensor&, const Tensor&, double, double, int64_t);
    return Fallback<Signature>::call("_amp_update_scale_", scale, successes, found_inf, growth, backoff, interval);
  }
  const auto scalar = [](const Tensor& tensor) {
    return tensor.dim() == 0 ? tensor
                             : make_tensor(tensor.storage(), {}, {}, tensor.storage_offset(), tensor.scalar_type());
  };
  const Tensor to_scale = scalar(scale), to_successes = scalar(successes), found = scalar(found_inf);
  record_pointwise(Opcode::amp_update_scale, at::kFloat,
                   {to_scale, to_successes, found, Input(growth, at::kDouble), Input(backoff, at::kDouble),
                    Input(Scalar(interval), at::kLong)},
                   {to_scale, to_successes});
  return scale;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_amp_foreach_non_finite_check_and_unscale_", &non_finite_check_and_unscale);
  m.impl("_amp_update_scale_", &update_scale);
}

}  // namespace
}  // namespace ae::engine
