// Activation functions and their backwards. Inputs as in opcode.h; slopes, thresholds and the like are parameters.
// The order of operations is that of PyTorch's CPU kernels.
#include <cmath>
#include <limits>

#include "fusion/ops/expression.h"

namespace ae::fusion {
namespace {

const double kSqrtHalf = std::sqrt(0.5);
const double kTwoOverSqrtPi = 2 / std::sqrt(std::acos(-1.0));
// The tanh form of GELU: sqrt(2 / pi) and the factor of the cube.
const double kGeluBeta = std::sqrt(2.0) * kTwoOverSqrtPi * 0.5;
constexpr double kGeluKappa = 0.044715;

void finish(OpContext& context, Expr result) { context.store_result(0, result.id); }

void relu(OpContext& context) {
  const Expr a = input(context, 0);
  finish(context, a.type() == DType::kBool ? a : maximum(a, 0.0));
}

void threshold(OpContext& context) {
  const Expr a = input(context, 0);
  finish(context, select(a <= input(context, 1), input(context, 2), a));
}

void threshold_backward(OpContext& context) {
  finish(context, select(input(context, 0) <= input(context, 2), 0.0, input(context, 1)));
}

void leaky_relu(OpContext& context) {
  const Expr a = input(context, 0);
  finish(context, select(a > 0.0, a, a * parameter(context, 1)));
}

void leaky_relu_backward(OpContext& context) {
  const Expr grad = input(context, 1);
  finish(context, select(input(context, 0) > 0.0, grad, grad * parameter(context, 2)));
}

void elu(OpContext& context) {
  const Expr a = input(context, 0), scale = parameter(context, 2);
  const Expr negative = expm1(a * parameter(context, 3)) * (parameter(context, 1) * scale);
  finish(context, select(a < 0.0, negative, a * scale));
}

void elu_backward(OpContext& context) {
  const Expr grad = input(context, 0), a = input(context, 1);
  const Expr alpha = parameter(context, 2), scale = parameter(context, 3), input_scale = parameter(context, 4);
  const Expr slope = context.attribute(0) == 1 ? a + alpha * scale : alpha * scale * exp(a * input_scale);
  finish(context, select(a <= 0.0, grad * input_scale * slope, grad * scale));
}

void silu(OpContext& context) {
  const Expr a = input(context, 0);
  finish(context, a / (1.0 + exp(-a)));
}

void silu_backward(OpContext& context) {
  const Expr grad = input(context, 0), a = input(context, 1);
  const Expr s = 1.0 / (1.0 + exp(-a));
  finish(context, grad * s * (1.0 + a * (1.0 - s)));
}

Expr gelu_tanh_inner(Expr a) { return kGeluBeta * (a + kGeluKappa * (a * a * a)); }

void gelu(OpContext& context) {
  const Expr a = input(context, 0);
  const Expr factor = context.attribute(0) == 0 ? erf(a * kSqrtHalf) : tanh(gelu_tanh_inner(a));
  finish(context, a * 0.5 * (1.0 + factor));
}

void gelu_backward(OpContext& context) {
  const Expr grad = input(context, 0), a = input(context, 1);
  if (context.attribute(0) == 0) {
    const Expr cdf = 0.5 * (1.0 + erf(a * kSqrtHalf));
    const Expr pdf = kTwoOverSqrtPi * kSqrtHalf * 0.5 * exp(a * a * -0.5);
    return finish(context, grad * (cdf + a * pdf));
  }
  const Expr t = tanh(gelu_tanh_inner(a));
  const Expr inner_derivative = kGeluBeta * (1.0 + 3 * kGeluKappa * (a * a));
  const Expr left = 0.5 * (1.0 + t);
  const Expr right = 0.5 * a * (1.0 - t * t) * inner_derivative;
  finish(context, grad * (left + right));
}

void softplus(OpContext& context) {
  const Expr a = input(context, 0), beta = parameter(context, 1);
  const Expr scaled = a * beta;
  finish(context, select(scaled > parameter(context, 2), a, log1p(exp(scaled)) / beta));
}

void softplus_backward(OpContext& context) {
  const Expr grad = input(context, 0), scaled = input(context, 1) * parameter(context, 2);
  const Expr z = exp(scaled);
  finish(context, select(scaled > parameter(context, 3), grad, grad * z / (z + 1.0)));
}

void tanh_backward(OpContext& context) {
  const Expr out = input(context, 1);
  finish(context, input(context, 0) * (1.0 - out * out));
}

void sigmoid_backward(OpContext& context) {
  const Expr out = input(context, 1);
  finish(context, input(context, 0) * (1.0 - out) * out);
}

void logit(OpContext& context) {
  const Expr a = input(context, 0);
  finish(context, log(a / (1.0 - a)));
}

/// Outside of [low, high] there is no gradient, or none that is a number.
void logit_backward(OpContext& context) {
  const Expr grad = input(context, 0), a = input(context, 1);
  const Expr outside = (a < input(context, 2)) | (a > input(context, 3));
  const Expr inside = grad / (a * (1.0 - a));
  if (context.attribute(0) == 0) return finish(context, select(outside, 0.0, inside));
  const Expr at_end = (a == 0.0) | (a == 1.0);
  const Expr within = select(at_end, grad * std::numeric_limits<double>::infinity(), inside);
  finish(context, select(outside, std::numeric_limits<double>::quiet_NaN(), within));
}

Expr softplus_of(Expr a) { return log1p(exp(a)); }

void mish(OpContext& context) {
  const Expr a = input(context, 0);
  finish(context, a * tanh(softplus_of(a)));
}

void mish_backward(OpContext& context) {
  const Expr grad = input(context, 0), a = input(context, 1);
  const Expr s = 1.0 / (1.0 + exp(-a)), t = tanh(softplus_of(a));
  finish(context, grad * (t + a * s * (1.0 - t * t)));
}

void log_sigmoid(OpContext& context) {
  const Expr a = input(context, 0), z = exp(-abs(a));
  finish(context, minimum(a, 0.0) - log1p(z));
  context.store_result(1, z.id);
}

void log_sigmoid_backward(OpContext& context) {
  const Expr z = input(context, 2), s = z / (1.0 + z);
  finish(context, input(context, 0) * select(input(context, 1) < 0.0, 1.0 - s, s));
}

void prelu(OpContext& context) {
  const Expr a = input(context, 0);
  finish(context, select(a > 0.0, a, input(context, 1) * a));
}

void prelu_backward(OpContext& context) {
  const Expr grad = input(context, 0), a = input(context, 1), positive = a > 0.0;
  finish(context, select(positive, grad, input(context, 2) * grad));
  context.store_result(1, select(positive, 0.0, a * grad).id);
}

/// PyTorch's CPU backward keeps the sigmoid in a tensor, which rounds it.
Expr kept_sigmoid(OpContext& context, Expr a) { return sigmoid(a).as(context.common_type()).as(a.type()); }

void glu(OpContext& context) {
  const Expr b = input(context, 1);
  finish(context, input(context, 0) * (context.attribute(0) == 0 ? sigmoid(b) : kept_sigmoid(context, b)));
}

void glu_backward(OpContext& context) {
  const Expr s = kept_sigmoid(context, input(context, 2));
  finish(context, (1.0 - s) * s * input(context, 1) * input(context, 0));
}

constexpr BuilderEntry kBuilders[] = {
    {Opcode::relu, relu},
    {Opcode::threshold, threshold},
    {Opcode::threshold_backward, threshold_backward},
    {Opcode::leaky_relu, leaky_relu},
    {Opcode::leaky_relu_backward, leaky_relu_backward},
    {Opcode::elu, elu},
    {Opcode::elu_backward, elu_backward},
    {Opcode::silu, silu},
    {Opcode::silu_backward, silu_backward},
    {Opcode::gelu, gelu},
    {Opcode::gelu_backward, gelu_backward},
    {Opcode::softplus, softplus},
    {Opcode::softplus_backward, softplus_backward},
    {Opcode::tanh_backward, tanh_backward},
    {Opcode::sigmoid_backward, sigmoid_backward},
    {Opcode::logit, logit},
    {Opcode::logit_backward, logit_backward},
    {Opcode::mish, mish},
    {Opcode::mish_backward, mish_backward},
    {Opcode::log_sigmoid, log_sigmoid},
    {Opcode::log_sigmoid_backward, log_sigmoid_backward},
    {Opcode::prelu, prelu},
    {Opcode::prelu_backward, prelu_backward},
    {Opcode::glu, glu},
    {Opcode::glu_backward, glu_backward},
};

}  // namespace

std::span<const BuilderEntry> activation_builders() { return kBuilders; }

}  // namespace ae::fusion
