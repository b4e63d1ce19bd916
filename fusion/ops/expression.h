// Expressions: values of a kernel under construction with operators on them, so that builders read like formulas.
#pragma once

#include "fusion/ops/builder.h"

namespace ae::fusion {

/// A value and the context that it belongs to. All operands of one operation have one dtype; numbers take it.
struct Expr {
  OpContext* context;
  ValueId id;

  DType type() const { return context->type_of(id); }
  Level level() const { return context->level_of(id); }
  Expr as(DType type) const { return {context, context->cast(id, type)}; }
  Expr constant(double value) const { return {context, context->constant(type(), value)}; }
};

/// An operand that is an expression, or a number in the dtype of the expression beside it.
inline Expr operand(const Expr&, const Expr& x) { return x; }
inline Expr operand(const Expr& beside, double number) { return beside.constant(number); }

inline Expr apply(Primitive op, Expr a) { return {a.context, a.context->emit(op, a.type(), a.id)}; }
inline Expr apply(Primitive op, Expr a, Expr b) { return {a.context, a.context->emit(op, a.type(), a.id, b.id)}; }

#define AE_EXPR_BINARY(name, op)                                                        \
  inline Expr name(Expr a, Expr b) { return apply(Primitive::op, a, b); }               \
  inline Expr name(Expr a, double b) { return apply(Primitive::op, a, operand(a, b)); } \
  inline Expr name(double a, Expr b) { return apply(Primitive::op, operand(b, a), b); }
AE_EXPR_BINARY(operator+, add)
AE_EXPR_BINARY(operator-, sub)
AE_EXPR_BINARY(operator*, mul)
AE_EXPR_BINARY(operator/, div)
AE_EXPR_BINARY(operator<, lt)
AE_EXPR_BINARY(operator<=, le)
AE_EXPR_BINARY(operator>, gt)
AE_EXPR_BINARY(operator>=, ge)
AE_EXPR_BINARY(operator==, eq)
AE_EXPR_BINARY(operator!=, ne)
AE_EXPR_BINARY(operator&, bitwise_and)
AE_EXPR_BINARY(operator|, bitwise_or)
AE_EXPR_BINARY(operator<<, shift_left)
AE_EXPR_BINARY(operator>>, shift_right)
AE_EXPR_BINARY(maximum, maximum)
AE_EXPR_BINARY(minimum, minimum)
AE_EXPR_BINARY(remainder, remainder)
AE_EXPR_BINARY(pow, pow)
#undef AE_EXPR_BINARY

#define AE_EXPR_UNARY(name, op) \
  inline Expr name(Expr a) { return apply(Primitive::op, a); }
AE_EXPR_UNARY(operator-, neg)
AE_EXPR_UNARY(abs, abs)
AE_EXPR_UNARY(trunc, trunc)
AE_EXPR_UNARY(sqrt, sqrt)
AE_EXPR_UNARY(reciprocal, reciprocal)
AE_EXPR_UNARY(rsqrt, rsqrt)
AE_EXPR_UNARY(exp, exp)
AE_EXPR_UNARY(expm1, expm1)
AE_EXPR_UNARY(log, log)
AE_EXPR_UNARY(log1p, log1p)
AE_EXPR_UNARY(cos, cos)
AE_EXPR_UNARY(tanh, tanh)
AE_EXPR_UNARY(erf, erf)
AE_EXPR_UNARY(sigmoid, sigmoid)
AE_EXPR_UNARY(is_nan, is_nan)
AE_EXPR_UNARY(is_inf, is_inf)
#undef AE_EXPR_UNARY

/// condition ? a : b
inline Expr select(Expr condition, Expr a, Expr b) {
  return {a.context, a.context->emit(Primitive::select, a.type(), condition.id, a.id, b.id)};
}
inline Expr select(Expr condition, Expr a, double b) { return select(condition, a, operand(a, b)); }
inline Expr select(Expr condition, double a, Expr b) { return select(condition, operand(b, a), b); }

inline Expr reduce(Primitive op, Expr a) { return {a.context, a.context->reduce(op, a.type(), a.id)}; }
inline Expr reduce_sum(Expr a) { return reduce(Primitive::reduce_sum, a); }
inline Expr reduce_max(Expr a) { return reduce(Primitive::reduce_max, a); }

/// Input i as it is.
inline Expr raw_input(OpContext& context, int i) { return {&context, context.load(i)}; }
/// Input i rounded to the common dtype, in its compute type: tensors, and scalars that PyTorch rounds.
inline Expr input(OpContext& context, int i) { return {&context, context.load_compute(i)}; }
/// Input i converted straight to the compute type of the common dtype: parameters, which PyTorch does not round to a
/// half type, and statistics.
inline Expr parameter(OpContext& context, int i) {
  return raw_input(context, i).as(compute_type(context.common_type()));
}

/// `a` in another dtype; what is negated is the side that has signs: a view of floating numbers.
inline Expr converted(Expr a, DType type, bool negated) {
  if (!negated) return a.as(type);
  return is_floating(a.type()) ? (-a).as(type) : -a.as(type);
}

/// Whether the element lies on the kept side (le: below, ge: above) of a diagonal, attribute 0, of the last two
/// dimensions.
inline Expr triangle_mask(OpContext& context, Primitive kept_side) {
  const Expr row{&context, context.index(-2)}, column{&context, context.index(-1)};
  return apply(kept_side, column - row, row.constant(static_cast<double>(context.attribute(0))));
}

/// A family's builders.
using Builder = void (*)(OpContext&);
struct BuilderEntry {
  Opcode opcode;
  Builder builder;
};
std::span<const BuilderEntry> unary_builders();
std::span<const BuilderEntry> binary_builders();
std::span<const BuilderEntry> activation_builders();
std::span<const BuilderEntry> hard_activation_builders();
std::span<const BuilderEntry> special_builders();
std::span<const BuilderEntry> pointwise_loss_builders();
std::span<const BuilderEntry> ternary_builders();
std::span<const BuilderEntry> index_builders();
std::span<const BuilderEntry> random_builders();
std::span<const BuilderEntry> optimizer_builders();
std::span<const BuilderEntry> reduction_builders();
std::span<const BuilderEntry> softmax_builders();
std::span<const BuilderEntry> norm_builders();
std::span<const BuilderEntry> recurrent_builders();
std::span<const BuilderEntry> loss_builders();
// Of complex operands; the operators are those of the families above.
std::span<const BuilderEntry> complex_builders();
std::span<const BuilderEntry> complex_function_builders();

}  // namespace ae::fusion
