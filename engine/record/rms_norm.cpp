// RMS norm and its backward.
#include <ATen/native/layer_norm.h>
#include <ATen/ops/_fused_rms_norm.h>
#include <ATen/ops/_fused_rms_norm_compositeimplicitautograd_dispatch.h>

#include <array>
#include <limits>
#include <tuple>

#include "engine/record/kernel.h"
#include "engine/record/norm.h"
#include "engine/record/result.h"

namespace ae::engine {
namespace {

using at::Tensor;
using Pair = std::tuple<Tensor, Tensor>;
using Optional = std::optional<Tensor>;

/// An RMS norm over the last dimensions that is recorded.
class RmsNorm {
 public:
  RmsNorm(const Tensor& input, at::IntArrayRef shape, const Optional& weight) : rank_(input.dim()) {
    check_devices({&input});
    if (has(weight)) {
      check_devices({&*weight});
      if (!weight->sizes().equals(shape)) return;
    }
    type_ = input.scalar_type();
    parameters_ = parameter_type(type_, {&weight});
    const auto dims = static_cast<int64_t>(shape.size());
    if (!contains(kFloats, type_) || parameters_ == at::ScalarType::Undefined || dims == 0 || rank_ < dims ||
        rank_ > device::kMaxRank || input.numel() == 0 || !input.sizes().slice(rank_ - dims).equals(shape)) {
      return;
    }
    outer_ = (1u << (rank_ - dims)) - 1;
    for (const int64_t size : shape) count_ *= static_cast<double>(size);
    recordable_ = true;
  }
  bool recordable() const { return recordable_; }
  at::ScalarType parameters() const { return parameters_; }
  at::ScalarType compute() const { return compute_scalar_type(type_); }
  Input count() const { return {count_, compute()}; }
  uint32_t inner() const { return ((1u << rank_) - 1) & ~outer_; }
  uint32_t outer() const { return outer_; }
  /// The input's sizes, 1 in what is reduced.
  at::DimVector statistics(const Tensor& input) const {
    at::DimVector sizes(rank_, 1);
    for (int64_t d = 0; d < rank_; ++d)
      if (outer_ >> d & 1) sizes[d] = input.size(d);
    return sizes;
  }

 private:
  int64_t rank_;
  at::ScalarType type_ = at::ScalarType::Undefined, parameters_ = at::ScalarType::Undefined;
  uint32_t outer_ = 0;
  double count_ = 1;
  bool recordable_ = false;
};

Pair fused_rms_norm(const Tensor& input, at::IntArrayRef shape, const Optional& weight, std::optional<double> eps) {
  const RmsNorm norm(input, shape, weight);
  if (!norm.recordable()) return at::compositeimplicitautograd::_fused_rms_norm(input, shape, weight, eps);
  const double least = norm.compute() == at::kDouble ? std::numeric_limits<double>::epsilon()
                                                     : static_cast<double>(std::numeric_limits<float>::epsilon());
  Tensor out = make_tensor(input.sizes(), input.scalar_type());
  Tensor rrms = make_tensor(norm.statistics(input), norm.compute());
  c10::SmallVector<Input, 4> inputs{input, norm.count(), Input(eps.value_or(least), norm.compute())};
  if (has(weight)) inputs.emplace_back(*weight);
  record_reduce(Opcode::rms_norm, norm.compute(), input.sizes(), norm.inner(), inputs, {out, rrms});
  return {out, rrms};
}

Pair fused_rms_norm_backward(const Tensor& grad, const Tensor& input, at::IntArrayRef shape, const Tensor& rrms,
                             const Optional& weight, std::array<bool, 2> mask) {
  check_devices({&grad, &rrms});
  const RmsNorm norm(input, shape, weight);
  if (!norm.recordable() || grad.scalar_type() != input.scalar_type() || !grad.sizes().equals(input.sizes()) ||
      rrms.scalar_type() != norm.compute()) {
    using Signature =
        Pair(const Tensor&, const Tensor&, at::IntArrayRef, const Tensor&, const Optional&, std::array<bool, 2>);
    return Fallback<Signature>::call("_fused_rms_norm_backward", grad, input, shape, rrms, weight, mask);
  }
  Pair gradients;
  const int64_t flags = has(weight) ? kWeight : 0;
  if (mask[0]) {
    const Tensor slope = make_tensor(norm.statistics(input), norm.compute());
    c10::SmallVector<Input, 5> inputs{grad, input, rrms, norm.count()}, last{grad, input, rrms, slope};
    if (has(weight)) inputs.emplace_back(*weight), last.emplace_back(*weight);
    record_reduce(Opcode::norm_backward_coefficients, norm.compute(), input.sizes(), norm.inner(), inputs, {slope},
                  {flags});
    std::get<0>(gradients) = make_tensor(input.sizes(), input.scalar_type());
    record_pointwise(Opcode::norm_backward_input, norm.compute(), last, {std::get<0>(gradients)}, {flags});
  }
  if (mask[1] && has(weight)) {
    std::get<1>(gradients) = make_tensor(shape, norm.parameters());
    record_reduce(Opcode::layer_norm_backward_affine, norm.compute(), input.sizes(), norm.outer(), {grad, input, rrms},
                  {std::get<1>(gradients)}, {kWeight | kWithoutMean});
  }
  return gradients;
}

/// What the operator does not record is composed of others before autograd sees it, so that it needs no backward.
Tensor rms_norm(const Tensor& input, at::IntArrayRef shape, const Optional& weight, std::optional<double> eps) {
  if (RmsNorm(input, shape, weight).recordable()) return std::get<0>(at::_fused_rms_norm(input, shape, weight, eps));
  at::native::_check_rms_norm_inputs_symint(input, c10::fromIntArrayRefSlow(shape), has(weight) ? *weight : Tensor());
  return std::get<0>(at::compositeimplicitautograd::_fused_rms_norm(input, shape, weight, eps));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_fused_rms_norm", fused_rms_norm);
  m.impl("_fused_rms_norm_backward", fused_rms_norm_backward);
  m.impl("rms_norm", rms_norm);
}
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) { m.impl("rms_norm", rms_norm); }

}  // namespace
}  // namespace ae::engine
