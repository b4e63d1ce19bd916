// Operators of one input: in(a) -> out.
#include "fusion/ops/expression.h"

namespace ae::fusion {
namespace {

template <Primitive op>
void primitive(OpContext& context) {
  context.store_result(0, apply(op, input(context, 0)).id);
}

/// Rounding to whole numbers, and the sign of a bool: nothing to do for types that have whole numbers only.
template <Primitive op>
void rounding(OpContext& context) {
  const Expr a = input(context, 0);
  context.store_result(0, is_floating(a.type()) ? apply(op, a).id : a.id);
}

void abs_or_same(OpContext& context) {
  const Expr a = input(context, 0);
  context.store_result(0, a.type() == DType::kBool ? a.id : abs(a).id);
}

void sign(OpContext& context) {
  const Expr a = input(context, 0);
  context.store_result(0, a.type() == DType::kBool ? a.id : apply(Primitive::sign, a).id);
}

/// Tests give bool, whatever the common dtype is.
template <Primitive op>
void float_test(OpContext& context) {
  const Expr a = input(context, 0);
  const Expr result = is_floating(a.type()) ? apply(op, a) : Expr{&context, context.constant(DType::kBool, 0)};
  context.store(0, result.as(context.output_type(0)).id);
}

void logical_not(OpContext& context) {
  const Expr result = apply(Primitive::logical_not, input(context, 0));
  context.store(0, result.as(context.output_type(0)).id);
}

void square(OpContext& context) {
  const Expr a = input(context, 0);
  context.store_result(0, (a * a).id);
}

void frac(OpContext& context) {
  const Expr a = input(context, 0);
  context.store_result(0, (a - trunc(a)).id);
}

constexpr BuilderEntry kBuilders[] = {
    {Opcode::neg, primitive<Primitive::neg>},
    {Opcode::abs, abs_or_same},
    {Opcode::sign, sign},
    {Opcode::floor, rounding<Primitive::floor>},
    {Opcode::ceil, rounding<Primitive::ceil>},
    {Opcode::trunc, rounding<Primitive::trunc>},
    {Opcode::round, rounding<Primitive::round>},
    {Opcode::sqrt, primitive<Primitive::sqrt>},
    {Opcode::reciprocal, primitive<Primitive::reciprocal>},
    {Opcode::rsqrt, primitive<Primitive::rsqrt>},
    {Opcode::exp, primitive<Primitive::exp>},
    {Opcode::exp2, primitive<Primitive::exp2>},
    {Opcode::expm1, primitive<Primitive::expm1>},
    {Opcode::log, primitive<Primitive::log>},
    {Opcode::log2, primitive<Primitive::log2>},
    {Opcode::log10, primitive<Primitive::log10>},
    {Opcode::log1p, primitive<Primitive::log1p>},
    {Opcode::sin, primitive<Primitive::sin>},
    {Opcode::cos, primitive<Primitive::cos>},
    {Opcode::tan, primitive<Primitive::tan>},
    {Opcode::asin, primitive<Primitive::asin>},
    {Opcode::acos, primitive<Primitive::acos>},
    {Opcode::atan, primitive<Primitive::atan>},
    {Opcode::sinh, primitive<Primitive::sinh>},
    {Opcode::cosh, primitive<Primitive::cosh>},
    {Opcode::tanh, primitive<Primitive::tanh>},
    {Opcode::erf, primitive<Primitive::erf>},
    {Opcode::erfc, primitive<Primitive::erfc>},
    {Opcode::sigmoid, primitive<Primitive::sigmoid>},
    {Opcode::asinh, primitive<Primitive::asinh>},
    {Opcode::acosh, primitive<Primitive::acosh>},
    {Opcode::atanh, primitive<Primitive::atanh>},
    {Opcode::erfinv, primitive<Primitive::erfinv>},
    {Opcode::erfcx, primitive<Primitive::erfcx>},
    {Opcode::lgamma, primitive<Primitive::lgamma>},
    {Opcode::digamma, primitive<Primitive::digamma>},
    {Opcode::trigamma, primitive<Primitive::trigamma>},
    {Opcode::i0, primitive<Primitive::i0>},
    {Opcode::i0e, primitive<Primitive::i0e>},
    {Opcode::i1, primitive<Primitive::i1>},
    {Opcode::i1e, primitive<Primitive::i1e>},
    {Opcode::ndtri, primitive<Primitive::ndtri>},
    {Opcode::log_ndtr, primitive<Primitive::log_ndtr>},
    {Opcode::bitwise_not, primitive<Primitive::bitwise_not>},
    {Opcode::logical_not, logical_not},
    {Opcode::isnan, float_test<Primitive::is_nan>},
    {Opcode::isinf, float_test<Primitive::is_inf>},
    {Opcode::square, square},
    {Opcode::frac, frac},
};

}  // namespace

std::span<const BuilderEntry> unary_builders() { return kBuilders; }

}  // namespace ae::fusion
