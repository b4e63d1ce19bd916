// Activation functions of one tensor, and their backwards.
#include "engine/record/kernel.h"
#include "engine/record/pointwise.h"

namespace ae::engine {
namespace {

bool threshold(Call& call, const at::Tensor& self, const at::Scalar& threshold, const at::Scalar& value) {
  const at::ScalarType type = self.scalar_type();
  if (contains(kInts, type)) {
    for (const at::Scalar* number : {&threshold, &value})
      if (!number->isIntegral(/*includeBool=*/true) || !fits(*number, type)) return false;
  }
  return call.record(Opcode::threshold, kArithmetic, {self, Arg::parameter(threshold), Arg::parameter(value)});
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
  // Of integers a clamp; unsigned ones, which PyTorch allows under conditions, are left to it.
  static constexpr Rule kSigned{Rule::kCommon, kFloats | (kInts & ~type_bit(at::kByte))};
  return call.record(Opcode::clamp, kSigned, {self, Arg::parameter(low), Arg::parameter(high)});
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
    Call clamped, rest, odds;
    const at::Scalar one(1), low(eps.value_or(0)), high(1 - eps.value_or(0));
    if (eps && !clamped.record(Opcode::clamp, kFloatOnly, {self, Arg::parameter(low), Arg::parameter(high)})) {
      return false;
    }
    const at::Tensor& p = eps ? clamped.result : self;
    return rest.record(Opcode::sub, kFloatOnly, {Arg::number(one), p}) &&
           odds.record(Opcode::div, kFloatOnly, {p, rest.result}) &&
           call.record(Opcode::log, kFloatOnly, {odds.result});
  }
  if (!eps) return call.record(Opcode::logit, kToFloat, {self});
  const at::Scalar low(*eps), high(1 - *eps);
  Call clamped;
  return clamped.record(Opcode::clamp, kToFloat, {self, Arg::parameter(low), Arg::parameter(high)}) &&
         call.record(Opcode::logit, kFloatOnly, {clamped.result});
}

/// The input's places of no gradient, or of one that is not a number, as `eps` has them.
bool logit_backward(Call& call, const at::Tensor& grad, const at::Tensor& self, std::optional<double> eps) {
  const at::Scalar low(eps.value_or(0)), high(1 - eps.value_or(0));
  return call.record(Opcode::logit_backward, kFloatOnly, {grad, self, Arg::parameter(low), Arg::parameter(high)},
                     {eps ? 0 : 1});
}

bool elu_backward(Call& call, const at::Tensor& grad, const at::Scalar& alpha, const at::Scalar& scale,
                  const at::Scalar& input_scale, bool is_result, const at::Tensor& self_or_result) {
  if (is_result && !alpha.isComplex() && alpha.toDouble() < 0) return false;
  return call.record(Opcode::elu_backward, kFloatOnly,
                     {grad, self_or_result, Arg::parameter(alpha), Arg::parameter(scale), Arg::parameter(input_scale)},
                     {is_result ? 1 : 0});
}

bool hardtanh_backward(Call& call, const at::Tensor& grad, const at::Tensor& self, const at::Scalar& low,
                       const at::Scalar& high) {
  return call.record(Opcode::hardtanh_backward, kFloatOnly, {grad, self, Arg::parameter(low), Arg::parameter(high)});
}

template <Opcode opcode>
bool shrink(Call& call, const at::Tensor& self, const at::Scalar& lambda) {
  if (opcode == Opcode::softshrink && (lambda.isComplex() || !(lambda.toDouble() >= 0))) return false;
  return call.record(opcode, kFloatOnly, {self, Arg::parameter(lambda)});
}

bool shrink_backward(Call& call, const at::Tensor& grad, const at::Tensor& self, const at::Scalar& lambda) {
  return call.record(Opcode::shrink_backward, kFloatOnly, {grad, self, Arg::parameter(lambda)});
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
  AE_FUNCTIONAL(m, "tanh_backward", (binary<Opcode::tanh_backward, kFloatField>));
  AE_OUT(m, "tanh_backward.grad_input", (binary<Opcode::tanh_backward, kFloatField>));
  AE_FUNCTIONAL(m, "sigmoid_backward", (binary<Opcode::sigmoid_backward, kFloatField>));
  AE_OUT(m, "sigmoid_backward.grad_input", (binary<Opcode::sigmoid_backward, kFloatField>));
  AE_FORMS(m, "logit", "", ".out", logit);
  AE_FUNCTIONAL(m, "logit_backward", logit_backward);
  AE_OUT(m, "logit_backward.grad_input", logit_backward);
  AE_FUNCTIONAL(m, "elu_backward", elu_backward);
  AE_OUT(m, "elu_backward.grad_input", elu_backward);
  AE_FORMS(m, "hardsigmoid", "", ".out", (unary<Opcode::hardsigmoid, kFloatOnly>));
  AE_FUNCTIONAL(m, "hardsigmoid_backward", (binary<Opcode::hardsigmoid_backward, kFloatOnly>));
  AE_OUT(m, "hardsigmoid_backward.grad_input", (binary<Opcode::hardsigmoid_backward, kFloatOnly>));
  AE_FORMS(m, "hardswish", "", ".out", (unary<Opcode::hardswish, kFloatOnly>));
  AE_FUNCTIONAL(m, "hardswish_backward", (binary<Opcode::hardswish_backward, kFloatOnly>));
  AE_FUNCTIONAL(m, "hardtanh_backward", hardtanh_backward);
  AE_OUT(m, "hardtanh_backward.grad_input", hardtanh_backward);
  AE_FUNCTIONAL(m, "hardshrink", shrink<Opcode::hardshrink>);
  AE_OUT(m, "hardshrink.out", shrink<Opcode::hardshrink>);
  AE_FUNCTIONAL(m, "hardshrink_backward", shrink_backward);
  AE_OUT(m, "hardshrink_backward.grad_input", shrink_backward);
  AE_FUNCTIONAL(m, "softshrink", shrink<Opcode::softshrink>);
  AE_OUT(m, "softshrink.out", shrink<Opcode::softshrink>);
  AE_FUNCTIONAL(m, "softshrink_backward", shrink_backward);
  AE_OUT(m, "softshrink_backward.grad_input", shrink_backward);
  AE_FORMS(m, "mish", "", ".out", (unary<Opcode::mish, kFloatOnly>));
  AE_FUNCTIONAL(m, "mish_backward", (binary<Opcode::mish_backward, kFloatOnly>));
}

}  // namespace
}  // namespace ae::engine
