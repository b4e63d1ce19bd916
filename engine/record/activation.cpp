// Activation functions, their backwards, and the mean-squared-error loss.
#include <ATen/core/Reduction.h>

#include "engine/record/kernel.h"
#include "engine/record/pointwise.h"
#include "engine/record/reduce.h"

namespace ae::engine {
namespace {

bool threshold(Call& call, const at::Tensor& self, const at::Scalar& threshold, const at::Scalar& value) {
  return call.record(Opcode::threshold, kFloatOnly, {self, Arg::parameter(threshold), Arg::parameter(value)});
}

bool threshold_backward(Call& call, const at::Tensor& grad, const at::Tensor& self, const at::Scalar& threshold) {
  // PyTorch has the operands in this order, which decides over the result's strides.
  return call.record(Opcode::threshold_backward, kFloatOnly, {self, grad, Arg::parameter(threshold)});
}

bool leaky_relu(Call& call, const at::Tensor& self, const at::Scalar& slope) {
  return call.record(Opcode::leaky_relu, kFloatOnly, {self, Arg::parameter(slope)});
}

bool leaky_relu_backward(Call& call, const at::Tensor& grad, const at::Tensor& self, const at::Scalar& slope,
                         bool self_is_result) {
  if (slope.isComplex() || (self_is_result && slope.toDouble() < 0)) return false;
  return call.record(Opcode::leaky_relu_backward, kFloatOnly, {self, grad, Arg::parameter(slope)});
}

bool elu(Call& call, const at::Tensor& self, const at::Scalar& alpha, const at::Scalar& scale,
         const at::Scalar& input_scale) {
  return call.record(Opcode::elu, kFloatOnly,
                     {self, Arg::parameter(alpha), Arg::parameter(scale), Arg::parameter(input_scale)});
}

bool hardtanh(Call& call, const at::Tensor& self, const at::Scalar& low, const at::Scalar& high) {
  return call.record(Opcode::clamp, kFloatOnly, {self, Arg::parameter(low), Arg::parameter(high)});
}

/// Attribute of gelu: 0 erf, 1 tanh; -1 for a name that PyTorch does not know.
int64_t gelu_form(std::string_view approximate) { return approximate == "none" ? 0 : approximate == "tanh" ? 1 : -1; }

bool gelu(Call& call, const at::Tensor& self, std::string_view approximate) {
  const int64_t form = gelu_form(approximate);
  return form >= 0 && call.record(Opcode::gelu, kFloatOnly, {self}, {form});
}

bool gelu_backward(Call& call, const at::Tensor& grad, const at::Tensor& self, std::string_view approximate) {
  const int64_t form = gelu_form(approximate);
  return form >= 0 && call.record(Opcode::gelu_backward, kFloatOnly, {grad, self}, {form});
}

bool softplus(Call& call, const at::Tensor& self, const at::Scalar& beta, const at::Scalar& threshold) {
  return call.record(Opcode::softplus, kFloatOnly, {self, Arg::parameter(beta), Arg::parameter(threshold)});
}

bool softplus_backward(Call& call, const at::Tensor& grad, const at::Tensor& self, const at::Scalar& beta,
                       const at::Scalar& threshold) {
  return call.record(Opcode::softplus_backward, kFloatOnly,
                     {grad, self, Arg::parameter(beta), Arg::parameter(threshold)});
}

/// Where PyTorch's CPU kernel computes in a half type, rounding after each step, the steps are operators of their own.
bool rounds_in_between(const at::Tensor& self) {
  return self.scalar_type() == at::kHalf || self.scalar_type() == at::kBFloat16;
}

bool logit(Call& call, const at::Tensor& self, std::optional<double> eps) {
  if (rounds_in_between(self)) {
    if (eps) return false;
    Call rest, odds;
    const at::Scalar one(1);
    return rest.record(Opcode::sub, kFloatOnly, {Arg::number(one), self}) &&
           odds.record(Opcode::div, kFloatOnly, {self, rest.result}) &&
           call.record(Opcode::log, kFloatOnly, {odds.result});
  }
  if (!eps) return call.record(Opcode::logit, kToFloat, {self});
  const at::Scalar low(*eps), high(1 - *eps);
  Call clamped;
  return clamped.record(Opcode::clamp, kFloatOnly, {self, Arg::parameter(low), Arg::parameter(high)}) &&
         call.record(Opcode::logit, kFloatOnly, {clamped.result});
}

bool squared_difference(Call& call, const at::Tensor& self, const at::Tensor& target) {
  if (!rounds_in_between(self) || !rounds_in_between(target)) {
    return call.record(Opcode::mse, kFloatOnly, {self, target});
  }
  Call difference;
  return difference.record(Opcode::sub, kFloatOnly, {self, target}) &&
         call.record(Opcode::square, kFloatOnly, {difference.result});
}

bool mse_loss(Call& call, const at::Tensor& self, const at::Tensor& target, int64_t reduction) {
  if (reduction == at::Reduction::None) return squared_difference(call, self, target);
  if (reduction != at::Reduction::Mean && reduction != at::Reduction::Sum) return false;
  Call squares;
  return squared_difference(squares, self, target) &&
         (reduction == at::Reduction::Mean ? mean(call, squares.result, {}, false, std::nullopt)
                                           : sum(call, squares.result, {}, false, std::nullopt));
}

bool mse_loss_backward(Call& call, const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target,
                       int64_t reduction) {
  if (!self.sizes().equals(target.sizes()) || grad.dim() > self.dim() || self.scalar_type() != target.scalar_type() ||
      self.scalar_type() != grad.scalar_type()) {
    return false;
  }
  const at::Scalar scale(reduction == at::Reduction::Mean ? 2.0 / static_cast<double>(self.numel()) : 2.0);
  call.make_contiguous();
  return call.record(Opcode::scaled_difference, kFloatOnly, {grad, self, target, Arg::parameter(scale)});
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  AE_FUNCTIONAL(m, "relu", (unary<Opcode::relu, kArithmetic>));
  AE_IN_PLACE(m, "relu_", (unary<Opcode::relu, kArithmetic>));
  AE_FORMS(m, "threshold", "", ".out", threshold);
  AE_FUNCTIONAL(m, "threshold_backward", threshold_backward);
  AE_OUT(m, "threshold_backward.grad_input", threshold_backward);
  AE_FORMS(m, "leaky_relu", "", ".out", leaky_relu);
  AE_FUNCTIONAL(m, "leaky_relu_backward", leaky_relu_backward);
  AE_OUT(m, "leaky_relu_backward.grad_input", leaky_relu_backward);
  AE_FORMS(m, "elu", "", ".out", elu);
  AE_FORMS(m, "hardtanh", "", ".out", hardtanh);
  AE_FORMS(m, "silu", "", ".out", (unary<Opcode::silu, kFloatOnly>));
  AE_FUNCTIONAL(m, "silu_backward", (binary<Opcode::silu_backward, kFloatOnly>));
  AE_OUT(m, "silu_backward.grad_input", (binary<Opcode::silu_backward, kFloatOnly>));
  AE_FORMS(m, "gelu", "", ".out", gelu);
  AE_FUNCTIONAL(m, "gelu_backward", gelu_backward);
  AE_OUT(m, "gelu_backward.grad_input", gelu_backward);
  AE_FUNCTIONAL(m, "softplus", softplus);
  AE_OUT(m, "softplus.out", softplus);
  AE_FUNCTIONAL(m, "softplus_backward", softplus_backward);
  AE_OUT(m, "softplus_backward.grad_input", softplus_backward);
  AE_FUNCTIONAL(m, "tanh_backward", (binary<Opcode::tanh_backward, kFloatOnly>));
  AE_OUT(m, "tanh_backward.grad_input", (binary<Opcode::tanh_backward, kFloatOnly>));
  AE_FUNCTIONAL(m, "sigmoid_backward", (binary<Opcode::sigmoid_backward, kFloatOnly>));
  AE_OUT(m, "sigmoid_backward.grad_input", (binary<Opcode::sigmoid_backward, kFloatOnly>));
  AE_FORMS(m, "logit", "", ".out", logit);
  AE_FUNCTIONAL(m, "mse_loss", mse_loss);
  AE_OUT(m, "mse_loss.out", mse_loss);
  AE_FUNCTIONAL(m, "mse_loss_backward", mse_loss_backward);
  AE_OUT(m, "mse_loss_backward.grad_input", mse_loss_backward);
}

}  // namespace
}  // namespace ae::engine
