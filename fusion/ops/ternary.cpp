// Operators of three and more inputs; inputs as in opcode.h.
//   lerp  attr 0: what is known of the weight: 0 nothing, 1 |weight| < 0.5, 2 |weight| >= 0.5. Recorders that have the
//         weight as a number say it, which leaves out a comparison and a selection for each element.
#include <limits>

#include "fusion/ops/expression.h"

namespace ae::fusion {
namespace {

void where(OpContext& context) {
  const Expr condition = raw_input(context, 0).as(DType::kBool);
  context.store_result(0, select(condition, input(context, 1), input(context, 2)).id);
}

/// Of bool: or, and.
Expr at_least(Expr a, Expr low) { return a.type() == DType::kBool ? a | low : maximum(a, low); }
Expr at_most(Expr a, Expr high) { return a.type() == DType::kBool ? a & high : minimum(a, high); }

void clamp(OpContext& context) {
  context.store_result(0, at_most(at_least(input(context, 0), input(context, 1)), input(context, 2)).id);
}
void clamp_min(OpContext& context) { context.store_result(0, at_least(input(context, 0), input(context, 1)).id); }
void clamp_max(OpContext& context) { context.store_result(0, at_most(input(context, 0), input(context, 1)).id); }

void lerp(OpContext& context) {
  const Expr a = input(context, 0), b = input(context, 1), weight = parameter(context, 2);
  const auto from_a = [&] { return a + weight * (b - a); };
  const auto from_b = [&] { return b - (b - a) * (1.0 - weight); };
  switch (context.attribute(0)) {
    case 1: return context.store_result(0, from_a().id);
    case 2: return context.store_result(0, from_b().id);
    default: return context.store_result(0, select(abs(weight) < 0.5, from_a(), from_b()).id);
  }
}

void addcmul(OpContext& context) {
  const Expr product = parameter(context, 3) * input(context, 1) * input(context, 2);
  context.store_result(0, (input(context, 0) + product).id);
}

void addcdiv(OpContext& context) {
  const Expr quotient = parameter(context, 3) * input(context, 1) / input(context, 2);
  context.store_result(0, (input(context, 0) + quotient).id);
}

void nan_to_num(OpContext& context) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Expr a = input(context, 0);
  if (!is_floating(a.type())) return context.store_result(0, a.id);
  const Expr without_minus = select(a == -kInfinity, parameter(context, 3), a);
  const Expr without_infinity = select(a == kInfinity, parameter(context, 2), without_minus);
  context.store_result(0, select(is_nan(a), parameter(context, 1), without_infinity).id);
}

void mse(OpContext& context) {
  const Expr difference = input(context, 0) - input(context, 1);
  context.store_result(0, (difference * difference).id);
}

void scaled_difference(OpContext& context) {
  const Expr scaled = parameter(context, 3) * (input(context, 1) - input(context, 2));
  context.store_result(0, (scaled * input(context, 0)).id);
}

/// The mask is a factor, not a selection: 0 * NaN stays NaN, as in PyTorch.
void masked_scale(OpContext& context) {
  const Expr grad = input(context, 0);
  context.store_result(0, (grad * parameter(context, 1) * parameter(context, 2)).id);
}

constexpr BuilderEntry kBuilders[] = {
    {Opcode::where, where},
    {Opcode::clamp, clamp},
    {Opcode::clamp_min, clamp_min},
    {Opcode::clamp_max, clamp_max},
    {Opcode::lerp, lerp},
    {Opcode::addcmul, addcmul},
    {Opcode::addcdiv, addcdiv},
    {Opcode::nan_to_num, nan_to_num},
    {Opcode::mse, mse},
    {Opcode::scaled_difference, scaled_difference},
    {Opcode::masked_scale, masked_scale},
};

}  // namespace

std::span<const BuilderEntry> ternary_builders() { return kBuilders; }

}  // namespace ae::fusion
