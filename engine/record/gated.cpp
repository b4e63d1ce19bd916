// Activation functions of two tensors, or with two results: glu, prelu, log_sigmoid, rrelu, and their backwards.
#include <ATen/ExpandUtils.h>
#include <ATen/ops/le.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/mul.h>

#include <tuple>

#include "engine/record/kernel.h"
#include "engine/record/result.h"

namespace ae::engine {
namespace {

using at::Tensor;
using Two = std::tuple<Tensor, Tensor>;

/// The halves of a tensor along a dimension.
struct Halves {
  Tensor first, second;
};

Halves halves_of(const Tensor& self, int64_t dim) {
  const int64_t half = self.size(dim) / 2;
  return {self.narrow(dim, 0, half), self.narrow(dim, half, half)};
}

bool has_halves(const Tensor& self, int64_t dim) {
  return is_neuron(self) && contains(kFloats, self.scalar_type()) && self.dim() > 0 && dim >= -self.dim() &&
         dim < self.dim() && self.size(dim) % 2 == 0;
}

bool glu(Call& call, const Tensor& self, int64_t dim) {
  if (!has_halves(self, dim)) return false;
  const Halves halves = halves_of(self, dim);
  return call.record(Opcode::glu, kFloatOnly, {halves.first, halves.second});
}

bool glu_backward(Call& call, const Tensor& grad, const Tensor& self, int64_t dim) {
  check_devices({&grad, &self});
  if (!has_halves(self, dim) || grad.scalar_type() != self.scalar_type()) return false;
  const Halves halves = halves_of(self, dim);
  if (!grad.sizes().equals(halves.first.sizes())) return false;
  if (!prepare_result(call, self.sizes(), self.scalar_type(), {&grad, &self})) return false;
  if (self.numel() == 0) return true;
  const Halves results = halves_of(result_of(call), dim);
  record_pointwise(Opcode::glu, self.scalar_type(), {grad, halves.second}, results.first, {1});
  record_pointwise(Opcode::glu_backward, self.scalar_type(), {grad, halves.first, halves.second}, results.second);
  return true;
}

bool prelu(Call& call, const Tensor& self, const Tensor& weight) {
  return self.scalar_type() == weight.scalar_type() && at::is_expandable_to(weight.sizes(), self.sizes()) &&
         call.record(Opcode::prelu, kFloatOnly, {self, weight});
}

Two prelu_backward(const Tensor& grad, const Tensor& self, const Tensor& weight) {
  check_devices({&grad, &self, &weight});
  const at::ScalarType type = self.scalar_type();
  if (!contains(kFloats, type) || grad.scalar_type() != type || weight.scalar_type() != type) {
    return Fallback<Two(const Tensor&, const Tensor&, const Tensor&)>::call("_prelu_kernel_backward", grad, self,
                                                                            weight);
  }
  const at::DimVector shape =
      at::infer_size_dimvector(at::infer_size_dimvector(self.sizes(), weight.sizes()), grad.sizes());
  const at::DimVector strides = result_strides(shape, {self, weight, grad}, type);
  const Tensor results[] = {make_tensor(shape, strides, type), make_tensor(shape, strides, type)};
  if (results[0].numel() != 0) record_pointwise(Opcode::prelu_backward, type, {grad, self, weight}, results);
  return {results[0], results[1]};
}

/// The second result is what the backward needs.
Two log_sigmoid_forward(const Tensor& self) {
  const at::ScalarType type = self.scalar_type();
  if (!contains(kFloats, type)) return Fallback<Two(const Tensor&)>::call("log_sigmoid_forward", self);
  const Tensor results[] = {make_tensor(self.sizes(), type), make_tensor(self.sizes(), type)};
  if (self.numel() != 0) record_pointwise(Opcode::log_sigmoid, type, {Input(self)}, results);
  return {results[0], results[1]};
}

bool log_sigmoid_backward(Call& call, const Tensor& grad, const Tensor& self, const Tensor& buffer) {
  return call.record(Opcode::log_sigmoid_backward, kFloatOnly, {grad, self, buffer});
}

// rrelu: in training each negative element has a slope of its own, which is kept in `noise`.

bool is_rrelu(const Tensor& self, const Tensor& noise, const at::Scalar& lower, const at::Scalar& upper) {
  return is_neuron(self) && is_neuron(noise) && contains(kFloats, self.scalar_type()) &&
         noise.scalar_type() == self.scalar_type() && noise.sizes().equals(self.sizes()) && !lower.isComplex() &&
         !upper.isComplex() && lower.toDouble() <= upper.toDouble();
}

double mean_slope(const at::Scalar& lower, const at::Scalar& upper) {
  return (lower.toDouble() + upper.toDouble()) / 2;
}

void draw_slopes(const Tensor& self, Tensor& noise, const at::Scalar& lower, const at::Scalar& upper,
                 std::optional<at::Generator> generator) {
  noise.uniform_(lower.toDouble(), upper.toDouble(), std::move(generator));
  noise.masked_fill_(self.le(0).logical_not_(), 1);
}

Tensor rrelu_with_noise(const Tensor& self, Tensor& noise, const at::Scalar& lower, const at::Scalar& upper,
                        bool training, std::optional<at::Generator> generator) {
  if (!is_rrelu(self, noise, lower, upper)) {
    return Fallback<Tensor(const Tensor&, Tensor&, const at::Scalar&, const at::Scalar&, bool,
                           std::optional<at::Generator>)>::call("rrelu_with_noise", self, noise, lower, upper, training,
                                                                std::move(generator));
  }
  if (!training) return at::leaky_relu(self, mean_slope(lower, upper));
  draw_slopes(self, noise, lower, upper, std::move(generator));
  return at::mul(self, noise);
}

Tensor& rrelu_with_noise_(Tensor& self, Tensor& noise, const at::Scalar& lower, const at::Scalar& upper, bool training,
                          std::optional<at::Generator> generator) {
  if (!is_rrelu(self, noise, lower, upper)) {
    return Fallback<Tensor&(Tensor&, Tensor&, const at::Scalar&, const at::Scalar&, bool,
                            std::optional<at::Generator>)>::call("rrelu_with_noise_", self, noise, lower, upper,
                                                                 training, std::move(generator));
  }
  if (!training) return at::leaky_relu_(self, mean_slope(lower, upper));
  draw_slopes(self, noise, lower, upper, std::move(generator));
  return self.mul_(noise);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  AE_FUNCTIONAL(m, "glu", glu);
  AE_OUT(m, "glu.out", glu);
  AE_FUNCTIONAL(m, "glu_backward", glu_backward);
  AE_OUT(m, "glu_backward.grad_input", glu_backward);
  AE_FUNCTIONAL(m, "_prelu_kernel", prelu);
  m.impl("_prelu_kernel_backward", &prelu_backward);
  m.impl("log_sigmoid_forward", &log_sigmoid_forward);
  AE_FUNCTIONAL(m, "log_sigmoid_backward", log_sigmoid_backward);
  AE_OUT(m, "log_sigmoid_backward.grad_input", log_sigmoid_backward);
  m.impl("rrelu_with_noise", &rrelu_with_noise);
  m.impl("rrelu_with_noise_", &rrelu_with_noise_);
}

}  // namespace
}  // namespace ae::engine
