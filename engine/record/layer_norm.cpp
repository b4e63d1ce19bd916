// Layer norm and its backward.
#include <array>
#include <tuple>

#include "engine/record/kernel.h"
#include "engine/record/result.h"

namespace ae::engine {
namespace {

using at::Tensor;
using Three = std::tuple<Tensor, Tensor, Tensor>;

/// A normalization that is recorded: floating input, shapes that fit, parameters of one dtype (the input's, or fp32).
class Norm {
 public:
  Norm(const Tensor& input, at::IntArrayRef normalized_shape, const std::optional<Tensor>& weight,
       const std::optional<Tensor>& bias) {
    check_devices({&input});
    for (const auto* parameter : {&weight, &bias}) {
      if (!has(*parameter)) continue;
      check_devices({&**parameter});
      if (!(*parameter)->sizes().equals(normalized_shape)) return;
      parameters_ = parameters_ == at::ScalarType::Undefined || parameters_ == (*parameter)->scalar_type()
                        ? (*parameter)->scalar_type()
                        : at::ScalarType::ComplexDouble;
    }
    const auto dims = static_cast<int64_t>(normalized_shape.size());
    type_ = input.scalar_type();
    if (parameters_ == at::ScalarType::Undefined) parameters_ = type_;
    if (!contains(kFloats, type_) || dims == 0 || input.dim() < dims || input.numel() == 0) return;
    if (parameters_ != type_ && parameters_ != compute_scalar_type(type_)) return;
    axis_ = input.dim() - dims;
    if (!input.sizes().slice(axis_).equals(normalized_shape)) return;
    for (const int64_t size : normalized_shape) count_ *= size;
    recordable_ = true;
  }

  bool recordable() const { return recordable_; }
  int64_t axis() const { return axis_; }
  at::ScalarType type() const { return type_; }
  at::ScalarType parameter_type() const { return parameters_; }
  /// Half activations with fp32 parameters: everything inside the operator is fp32.
  at::ScalarType common() const { return parameters_; }
  Input count() const { return {static_cast<double>(count_), compute_scalar_type(type_)}; }
  uint32_t inner(int64_t dims) const { return ((1u << dims) - 1) & ~outer(); }
  uint32_t outer() const { return (1u << axis_) - 1; }

 private:
  at::ScalarType type_ = at::ScalarType::Undefined, parameters_ = at::ScalarType::Undefined;
  int64_t axis_ = 0, count_ = 1;
  bool recordable_ = false;
};

Three native_layer_norm(const Tensor& input, at::IntArrayRef normalized_shape, const std::optional<Tensor>& weight,
                        const std::optional<Tensor>& bias, double eps) {
  const Norm norm(input, normalized_shape, weight, bias);
  if (!norm.recordable())
    return Fallback<Three(const Tensor&, at::IntArrayRef, const std::optional<Tensor>&, const std::optional<Tensor>&,
                          double)>::call("native_layer_norm", input, normalized_shape, weight, bias, eps);
  at::DimVector statistics(input.dim(), 1);
  std::copy_n(input.sizes().begin(), norm.axis(), statistics.begin());
  Tensor out = make_tensor(input.sizes(), norm.type());
  Tensor mean = make_tensor(statistics, norm.parameter_type()), rstd = make_tensor(statistics, norm.parameter_type());
  c10::SmallVector<Input, 5> inputs{input, norm.count(), Input(eps, compute_scalar_type(norm.type()))};
  if (has(weight)) inputs.emplace_back(*weight);
  if (has(bias)) inputs.emplace_back(*bias);
  record_reduce(Opcode::layer_norm, norm.common(), input.sizes(), norm.inner(input.dim()), inputs, {out, mean, rstd},
                {(has(weight) ? 1 : 0) | (has(bias) ? 2 : 0)});
  return {out, mean, rstd};
}

Three native_layer_norm_backward(const Tensor& grad, const Tensor& input, at::IntArrayRef normalized_shape,
                                 const Tensor& mean, const Tensor& rstd, const std::optional<Tensor>& weight,
                                 const std::optional<Tensor>& bias, std::array<bool, 3> mask) {
  const Norm norm(input, normalized_shape, weight, bias);
  if (!norm.recordable() || grad.scalar_type() != norm.type() || !grad.sizes().equals(input.sizes()) ||
      ((mask[1] || mask[2]) && !has(weight) && !has(bias))) {
    return Fallback<Three(const Tensor&, const Tensor&, at::IntArrayRef, const Tensor&, const Tensor&,
                          const std::optional<Tensor>&, const std::optional<Tensor>&,
                          std::array<bool, 3>)>::call("native_layer_norm_backward", grad, input, normalized_shape, mean,
                                                      rstd, weight, bias, mask);
  }
  check_devices({&grad, &mean, &rstd});
  Tensor grad_input, grad_weight, grad_bias;
  if (mask[0]) {
    grad_input = make_tensor(input.sizes(), norm.type());
    c10::SmallVector<Input, 6> inputs{grad, input, mean, rstd, norm.count()};
    if (has(weight)) inputs.emplace_back(*weight);
    record_reduce(Opcode::layer_norm_backward, norm.common(), input.sizes(), norm.inner(input.dim()), inputs,
                  {grad_input});
  }
  c10::SmallVector<Tensor, 2> affine;
  if (mask[1]) affine.push_back(grad_weight = make_tensor(normalized_shape, norm.parameter_type()));
  if (mask[2]) affine.push_back(grad_bias = make_tensor(normalized_shape, norm.parameter_type()));
  if (!affine.empty())
    record_reduce(Opcode::layer_norm_backward_affine, norm.common(), input.sizes(), norm.outer(),
                  {grad, input, mean, rstd}, affine, {(mask[1] ? 1 : 0) | (mask[2] ? 2 : 0)});
  return {grad_input, grad_weight, grad_bias};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("native_layer_norm", native_layer_norm);
  m.impl("native_layer_norm_backward", native_layer_norm_backward);
}

}  // namespace
}  // namespace ae::engine
