#include "device/host/native/compiler/primitives.h"

#include "device/host/native/compiler/ir_vec.h"
#include "device/math/math.h"

namespace ae::device::host::native {
namespace {

IrVec<uint8_t> as_bool(IrMask m) {
  return IrVec<uint8_t>(LLVMBuildZExt(ir_target().builder, m.v, vector_type(int_type(8)), ""), 0);
}

// Each returns no value (null) for primitives that it does not know.

template <class T>
LLVMValueRef emit_comparison(Primitive op, IrVec<T> x, IrVec<T> y) {
  switch (op) {
    case Primitive::eq: return as_bool(x == y).v;
    case Primitive::ne: return as_bool(x != y).v;
    case Primitive::lt: return as_bool(x < y).v;
    case Primitive::le: return as_bool(x <= y).v;
    case Primitive::gt: return as_bool(x > y).v;
    case Primitive::ge: return as_bool(x >= y).v;
    default: return nullptr;
  }
}

/// NaN-aware choice: `first_if_nan` tells which operand a NaN in x or y gives.
template <class T>
IrVec<T> choose(IrVec<T> x, IrVec<T> y, IrMask take_y, bool nan_wins) {
  const IrVec<T> chosen = select(take_y, y, x);
  const IrVec<T> rest = select(y != y, nan_wins ? y : x, chosen);
  return select(x != x, nan_wins ? x : y, rest);
}

template <class T>
LLVMValueRef emit_float_binary(Primitive op, IrVec<T> x, IrVec<T> y) {
  switch (op) {
    case Primitive::add: return (x + y).v;
    case Primitive::sub: return (x - y).v;
    case Primitive::mul: return (x * y).v;
    case Primitive::div: return (x / y).v;
    case Primitive::trunc_div: return trunc(x / y).v;
    case Primitive::maximum: return choose(x, y, x < y, true).v;
    case Primitive::minimum: return choose(x, y, y < x, true).v;
    case Primitive::fmax: return choose(x, y, x < y, false).v;
    case Primitive::fmin: return choose(x, y, y < x, false).v;
    case Primitive::copysign: return math::copysign(x, y).v;
    case Primitive::hypot: return math::hypot(x, y).v;
    default: return emit_comparison(op, x, y);
  }
}

template <class T>
LLVMValueRef emit_float_unary(Primitive op, IrVec<T> x) {
  const IrVec<T> zero = IrVec<T>(T(0)), one = IrVec<T>(T(1));
  switch (op) {
    case Primitive::neg: return (-x).v;
    case Primitive::abs: return math::abs(x).v;
    case Primitive::sign: return (select(zero < x, one, zero) - select(x < zero, one, zero)).v;
    case Primitive::floor: return floor(x).v;
    case Primitive::ceil: return ceil(x).v;
    case Primitive::trunc: return trunc(x).v;
    case Primitive::round: return rint(x).v;
    case Primitive::sqrt: return sqrt(x).v;
    case Primitive::reciprocal: return (one / x).v;
    case Primitive::rsqrt: return (one / sqrt(x)).v;
    case Primitive::is_nan: return as_bool(x != x).v;
    case Primitive::is_inf: return as_bool(math::is_inf(x)).v;
    case Primitive::logical_not: return as_bool(x == zero).v;
    case Primitive::exp: return math::exp(x).v;
    case Primitive::exp2: return math::exp2(x).v;
    case Primitive::expm1: return math::expm1(x).v;
    case Primitive::log: return math::log(x).v;
    case Primitive::log2: return math::log2(x).v;
    case Primitive::log10: return math::log10(x).v;
    case Primitive::log1p: return math::log1p(x).v;
    case Primitive::sinh: return math::sinh(x).v;
    case Primitive::cosh: return math::cosh(x).v;
    case Primitive::tanh: return math::tanh(x).v;
    case Primitive::erf: return math::erf(x).v;
    case Primitive::sigmoid: return math::sigmoid(x).v;
    default: return nullptr;
  }
}

template <class T>
LLVMValueRef emit_int(Primitive op, IrVec<T> x, IrVec<T> y) {
  const IrVec<T> zero = IrVec<T>(T(0)), one = IrVec<T>(T(1));
  switch (op) {
    case Primitive::neg: return (-x).v;
    case Primitive::abs: return std::is_signed_v<T> ? select(x < zero, -x, x).v : x.v;
    case Primitive::sign: return (select(zero < x, one, zero) - select(x < zero, one, zero)).v;
    case Primitive::floor:
    case Primitive::ceil:
    case Primitive::trunc:
    case Primitive::round: return x.v;
    case Primitive::logical_not: return as_bool(x == zero).v;
    case Primitive::bitwise_not: return (~x).v;
    case Primitive::add: return (x + y).v;
    case Primitive::sub: return (x - y).v;
    case Primitive::mul: return (x * y).v;
    case Primitive::maximum:
    case Primitive::fmax: return select(x < y, y, x).v;
    case Primitive::minimum:
    case Primitive::fmin: return select(y < x, y, x).v;
    case Primitive::bitwise_and: return (x & y).v;
    case Primitive::bitwise_or: return (x | y).v;
    case Primitive::bitwise_xor: return (x ^ y).v;
    default: return emit_comparison(op, x, y);
  }
}

/// Half types are only compared with zero, chosen and moved.
LLVMValueRef emit_half(Primitive op, IrVec<uint16_t> x) {
  if (op != Primitive::logical_not) return nullptr;
  return as_bool((x & IrVec<uint16_t>(0x7fff)) == IrVec<uint16_t>(0)).v;
}

template <class T>
LLVMValueRef emit_typed(Primitive op, LLVMValueRef a, LLVMValueRef b) {
  const IrVec<T> x(a, 0), y(b, 0);
  if constexpr (!std::is_floating_point_v<T>) {
    return emit_int<T>(op, x, y);
  } else {
    return arity_of(op) == 1 ? emit_float_unary<T>(op, x) : emit_float_binary<T>(op, x, y);
  }
}

/// Calls f with the number type of a dtype whose elements are numbers.
template <class F>
LLVMValueRef with_number(DType type, F f) {
  switch (type) {
    case DType::kU8: return f(uint8_t());
    case DType::kI8: return f(int8_t());
    case DType::kI16: return f(int16_t());
    case DType::kI32: return f(int32_t());
    case DType::kI64: return f(int64_t());
    case DType::kU16: return f(uint16_t());
    case DType::kU32: return f(uint32_t());
    case DType::kU64: return f(uint64_t());
    case DType::kF32: return f(float());
    case DType::kF64: return f(double());
    default: return nullptr;
  }
}

IrVec<uint16_t> to_f16(IrVec<float> x) {
  const LLVMBuilderRef builder = ir_target().builder;
  const LLVMTypeRef half = vector_type(LLVMHalfTypeInContext(ir_target().context));
  const LLVMValueRef narrow = LLVMBuildFPTrunc(builder, x.v, half, "");
  return IrVec<uint16_t>(LLVMBuildBitCast(builder, narrow, vector_type(int_type(16)), ""), 0);
}
IrVec<float> from_f16(IrVec<uint16_t> x) {
  const LLVMBuilderRef builder = ir_target().builder;
  const LLVMTypeRef half = vector_type(LLVMHalfTypeInContext(ir_target().context));
  return IrVec<float>(LLVMBuildFPExt(builder, LLVMBuildBitCast(builder, x.v, half, ""), vector_type(float_type(4)), ""),
                      0);
}

template <class T>
LLVMValueRef emit_cast_to(IrVec<T> x, DType to) {
  if (to == DType::kBool) return as_bool(x != IrVec<T>(T(0))).v;
  if (to == DType::kF16) return to_f16(convert<float>(x)).v;
  if (to == DType::kBF16) return math::to_bf16(convert<float>(x)).v;
  return with_number(to, [&](auto number) -> LLVMValueRef {
    using To = decltype(number);
    if constexpr (std::is_floating_point_v<T> && std::is_same_v<To, uint64_t>) {
      return nullptr;
    } else {
      return convert<To>(x).v;
    }
  });
}

LLVMValueRef emit_cast(DType from, DType to, LLVMValueRef a) {
  if (from == DType::kF16) return emit_cast_to(from_f16(IrVec<uint16_t>(a, 0)), to);
  if (from == DType::kBF16) return emit_cast_to(math::from_bf16(IrVec<uint16_t>(a, 0)), to);
  return with_number(from == DType::kBool ? DType::kU8 : from,
                     [&](auto number) { return emit_cast_to(IrVec<decltype(number)>(a, 0), to); });
}

/// Bools are bytes of 0 and 1.
LLVMValueRef emit_bool(Primitive op, IrVec<uint8_t> x, IrVec<uint8_t> y) {
  switch (op) {
    case Primitive::abs:
    case Primitive::sign: return x.v;
    case Primitive::logical_not:
    case Primitive::bitwise_not: return as_bool(x == IrVec<uint8_t>(0)).v;
    case Primitive::add:
    case Primitive::maximum:
    case Primitive::fmax:
    case Primitive::bitwise_or: return (x | y).v;
    case Primitive::mul:
    case Primitive::minimum:
    case Primitive::fmin:
    case Primitive::bitwise_and: return (x & y).v;
    case Primitive::sub:
    case Primitive::bitwise_xor: return (x ^ y).v;
    default: return emit_comparison(op, x, y);
  }
}

}  // namespace

LLVMTypeRef element_type_of(DType type) {
  if (type == DType::kF32) return float_type(4);
  if (type == DType::kF64) return float_type(8);
  return int_type(static_cast<unsigned>(size_of(type)) * 8);
}

LLVMValueRef emit_primitive(Primitive op, DType type, DType out, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c) {
  if (op == Primitive::scalar) return a;
  if (op == Primitive::cast) return emit_cast(type, out, a);
  if (op == Primitive::select) {
    const IrMask mask = IrVec<uint8_t>(a, 0) != IrVec<uint8_t>(0);
    return LLVMBuildSelect(ir_target().builder, mask.v, b, c, "");
  }
  if (type == DType::kBool) return emit_bool(op, IrVec<uint8_t>(a, 0), IrVec<uint8_t>(b, 0));
  if (type == DType::kF16 || type == DType::kBF16) return emit_half(op, IrVec<uint16_t>(a, 0));
  return with_number(type, [&](auto number) { return emit_typed<decltype(number)>(op, a, b); });
}

}  // namespace ae::device::host::native
