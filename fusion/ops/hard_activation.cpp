// Activation functions that are straight lines, and their backwards. Inputs as in opcode.h.
#include "fusion/ops/expression.h"

namespace ae::fusion {
namespace {

void finish(OpContext& context, Expr result) { context.store_result(0, result.id); }

Expr between_0_and_6(Expr a) { return minimum(maximum(a, 0.0), 6.0); }

void hardsigmoid(OpContext& context) { finish(context, between_0_and_6(input(context, 0) + 3.0) / 6.0); }

/// PyTorch's sixth is a float, also for doubles.
void hardsigmoid_backward(OpContext& context) {
  const Expr grad = input(context, 0), a = input(context, 1);
  finish(context, select((a > -3.0) & (a < 3.0), grad * static_cast<double>(1.0f / 6.0f), 0.0));
}

void hardswish(OpContext& context) {
  const Expr a = input(context, 0);
  finish(context, a * between_0_and_6(a + 3.0) / 6.0);
}

void hardswish_backward(OpContext& context) {
  const Expr grad = input(context, 0), a = input(context, 1);
  finish(context, select(a <= -3.0, 0.0, select(a < 3.0, grad * (a / 3.0 + 0.5), grad)));
}

void hardtanh_backward(OpContext& context) {
  const Expr a = input(context, 1);
  finish(context, select((a <= parameter(context, 2)) | (a >= parameter(context, 3)), 0.0, input(context, 0)));
}

Expr is_within(Expr a, Expr lambda) { return (a >= -lambda) & (a <= lambda); }

void hardshrink(OpContext& context) {
  const Expr a = input(context, 0);
  finish(context, select(is_within(a, parameter(context, 1)), 0.0, a));
}

void softshrink(OpContext& context) {
  const Expr a = input(context, 0), lambda = parameter(context, 1);
  const Expr within = select(is_nan(a), a, 0.0);
  finish(context, select(a > lambda, a - lambda, select(a < -lambda, a + lambda, within)));
}

void shrink_backward(OpContext& context) {
  finish(context, select(is_within(input(context, 1), parameter(context, 2)), 0.0, input(context, 0)));
}

constexpr BuilderEntry kBuilders[] = {
    {Opcode::hardsigmoid, hardsigmoid},
    {Opcode::hardsigmoid_backward, hardsigmoid_backward},
    {Opcode::hardswish, hardswish},
    {Opcode::hardswish_backward, hardswish_backward},
    {Opcode::hardtanh_backward, hardtanh_backward},
    {Opcode::hardshrink, hardshrink},
    {Opcode::softshrink, softshrink},
    {Opcode::shrink_backward, shrink_backward},
};

}  // namespace

std::span<const BuilderEntry> hard_activation_builders() { return kBuilders; }

}  // namespace ae::fusion
