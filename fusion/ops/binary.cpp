// Operators of two inputs: in(a, b) -> out; add_scaled and sub_scaled: in(a, b, alpha).
#include "fusion/ops/expression.h"

namespace ae::fusion {
namespace {

template <Primitive op>
void primitive(OpContext& context) {
  context.store_result(0, apply(op, input(context, 0), input(context, 1)).id);
}

/// PyTorch's CPU arithmetic on half types takes a scalar operand unrounded.
Expr term(OpContext& context, int i) {
  const bool wide_scalar = context.input_type(i) == DType::kF32 || context.input_type(i) == DType::kF64;
  const bool half = compute_type(context.common_type()) != context.common_type();
  return half && wide_scalar ? parameter(context, i) : input(context, i);
}

template <Primitive op>
void arithmetic(OpContext& context) {
  context.store_result(0, apply(op, term(context, 0), term(context, 1)).id);
}

/// Maxima and minima of bool are "or" and "and".
template <Primitive op, Primitive of_bool>
void extreme(OpContext& context) {
  const Expr a = input(context, 0), b = input(context, 1);
  context.store_result(0, apply(a.type() == DType::kBool ? of_bool : op, a, b).id);
}

/// Gives bool, or the dtype of `out=`; the operands meet in the common dtype.
template <Primitive op>
void comparison(OpContext& context) {
  const Expr result = apply(op, input(context, 0), input(context, 1));
  context.store(0, result.as(context.output_type(0)).id);
}

template <Primitive op>
void logical(OpContext& context) {
  const Expr result = apply(op, input(context, 0).as(DType::kBool), input(context, 1).as(DType::kBool));
  context.store(0, result.as(context.output_type(0)).id);
}

template <Primitive op>
void scaled(OpContext& context) {
  const Expr product = apply(Primitive::mul, parameter(context, 2), term(context, 1));
  context.store_result(0, apply(op, term(context, 0), product).id);
}

constexpr BuilderEntry kBuilders[] = {
    {Opcode::add, arithmetic<Primitive::add>},
    {Opcode::sub, arithmetic<Primitive::sub>},
    {Opcode::mul, arithmetic<Primitive::mul>},
    {Opcode::div, arithmetic<Primitive::div>},
    {Opcode::floor_div, primitive<Primitive::floor_div>},
    {Opcode::trunc_div, primitive<Primitive::trunc_div>},
    {Opcode::remainder, primitive<Primitive::remainder>},
    {Opcode::fmod, primitive<Primitive::fmod>},
    {Opcode::pow, primitive<Primitive::pow>},
    {Opcode::atan2, primitive<Primitive::atan2>},
    {Opcode::hypot, primitive<Primitive::hypot>},
    {Opcode::maximum, extreme<Primitive::maximum, Primitive::bitwise_or>},
    {Opcode::minimum, extreme<Primitive::minimum, Primitive::bitwise_and>},
    {Opcode::fmax, extreme<Primitive::fmax, Primitive::bitwise_or>},
    {Opcode::fmin, extreme<Primitive::fmin, Primitive::bitwise_and>},
    {Opcode::eq, comparison<Primitive::eq>},
    {Opcode::ne, comparison<Primitive::ne>},
    {Opcode::lt, comparison<Primitive::lt>},
    {Opcode::le, comparison<Primitive::le>},
    {Opcode::gt, comparison<Primitive::gt>},
    {Opcode::ge, comparison<Primitive::ge>},
    {Opcode::bitwise_and, primitive<Primitive::bitwise_and>},
    {Opcode::bitwise_or, primitive<Primitive::bitwise_or>},
    {Opcode::bitwise_xor, primitive<Primitive::bitwise_xor>},
    {Opcode::shift_left, primitive<Primitive::shift_left>},
    {Opcode::shift_right, primitive<Primitive::shift_right>},
    {Opcode::copysign, primitive<Primitive::copysign>},
    {Opcode::logical_and, logical<Primitive::bitwise_and>},
    {Opcode::logical_or, logical<Primitive::bitwise_or>},
    {Opcode::logical_xor, logical<Primitive::bitwise_xor>},
    {Opcode::add_scaled, scaled<Primitive::add>},
    {Opcode::sub_scaled, scaled<Primitive::sub>},
};

}  // namespace

std::span<const BuilderEntry> binary_builders() { return kBuilders; }

}  // namespace ae::fusion
