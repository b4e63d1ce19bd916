// Functions that are formulas over the elementary ones, with their special values. Inputs as in opcode.h.
#include <limits>
#include <numbers>

#include "fusion/ops/expression.h"

namespace ae::fusion {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kPi = std::numbers::pi;

void finish(OpContext& context, Expr result) { context.store_result(0, result.id); }

/// a * function(b), which is 0 where a is, whatever b is but NaN.
template <Primitive function>
void times_log(OpContext& context) {
  const Expr a = input(context, 0), b = input(context, 1);
  finish(context, select(is_nan(b), kNaN, select(a == 0.0, 0.0, a * apply(function, b))));
}

/// log(base^a + base^b) to the base, where the larger one is taken out. Two equal infinities are their own sum.
template <Primitive power>
void log_of_sum(OpContext& context) {
  const Expr a = input(context, 0), b = input(context, 1);
  const Expr rest = log1p(apply(power, -abs(a - b)));
  const Expr in_base = power == Primitive::exp2 ? rest * (1.0 / std::numbers::ln2) : rest;
  finish(context, select(is_inf(a) & (a == b), a, maximum(a, b) + in_base));
}

void heaviside(OpContext& context) {
  const Expr a = input(context, 0);
  finish(context, select(a == 0.0, input(context, 1), (a > 0.0).as(a.type())));
}

/// Tests give bool, or the dtype of `out=`.
void finish_test(OpContext& context, Expr result) { context.store(0, result.as(context.output_type(0)).id); }

void signbit(OpContext& context) {
  const Expr a = input(context, 0);
  if (is_floating(a.type())) return finish_test(context, apply(Primitive::copysign, a.constant(1), a) < 0.0);
  finish_test(context, a.type() == DType::kBool ? a.constant(0) : a < 0.0);
}

template <bool positive>
void is_infinite(OpContext& context) {
  const Expr a = input(context, 0);
  const Expr no{&context, context.constant(DType::kBool, 0)};
  finish_test(context, is_floating(a.type()) ? a == (positive ? kInfinity : -kInfinity) : no);
}

void sinc(OpContext& context) {
  const Expr a = input(context, 0), angle = kPi * a;
  finish(context, select(a == 0.0, 1.0, apply(Primitive::sin, angle) / angle));
}

void entr(OpContext& context) {
  const Expr a = input(context, 0);
  const Expr not_positive = select(a == 0.0, 0.0, select(is_nan(a), a, -kInfinity));
  finish(context, select(a > 0.0, -a * log(a), not_positive));
}

void angle(OpContext& context) {
  const Expr a = input(context, 0);
  finish(context, select(is_nan(a), a, select(a < 0.0, a.constant(kPi), 0.0)));
}

void round_decimals(OpContext& context) {
  const Expr a = input(context, 0), power = parameter(context, 1);
  const auto whole = [](Expr x) { return apply(Primitive::round, x); };
  finish(context, context.attribute(0) == 0 ? whole(a * power) / power : whole(a / power) * power);
}

constexpr BuilderEntry kBuilders[] = {
    {Opcode::xlogy, times_log<Primitive::log>},
    {Opcode::xlog1py, times_log<Primitive::log1p>},
    {Opcode::logaddexp, log_of_sum<Primitive::exp>},
    {Opcode::logaddexp2, log_of_sum<Primitive::exp2>},
    {Opcode::heaviside, heaviside},
    {Opcode::signbit, signbit},
    {Opcode::isposinf, is_infinite<true>},
    {Opcode::isneginf, is_infinite<false>},
    {Opcode::sinc, sinc},
    {Opcode::entr, entr},
    {Opcode::angle, angle},
    {Opcode::round_decimals, round_decimals},
};

}  // namespace

std::span<const BuilderEntry> special_builders() { return kBuilders; }

}  // namespace ae::fusion
