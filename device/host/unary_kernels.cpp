#include <cmath>
#include <type_traits>

#include "device/host/binary_kernels.h"
#include "device/host/kernels.h"

namespace ae::device::host {

ElementKernel unary_math_kernel(Primitive op, DType type);     // unary_math.cpp
ElementKernel unary_special_kernel(Primitive op, DType type);  // unary_special.cpp

namespace {

template <class Op, class T, class R = T>
ElementKernel unary_of() {
  return [](void* dst, const void* a, const void*, const void*, int64_t groups) {
    const int64_t n = groups * kGroup;
    R* out = static_cast<R*>(dst);
    const T* x = static_cast<const T*>(a);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = Op::apply(x[i]);
  };
}

#define AE_OP1(Name, expression)    \
  struct Name {                     \
    template <class T>              \
    static inline auto apply(T x) { \
      return expression;            \
    }                               \
  }

AE_OP1(FloatNeg, -x);
AE_OP1(FloatAbs, std::fabs(x));
AE_OP1(FloatSign, static_cast<T>(static_cast<T>(T(0) < x) - static_cast<T>(x < T(0))));
AE_OP1(FloatFloor, std::floor(x));
AE_OP1(FloatCeil, std::ceil(x));
AE_OP1(FloatTrunc, std::trunc(x));
AE_OP1(FloatRound, std::nearbyint(x));
AE_OP1(FloatSqrt, std::sqrt(x));
AE_OP1(FloatReciprocal, T(1) / x);
AE_OP1(FloatRsqrt, T(1) / std::sqrt(x));
AE_OP1(FloatIsNan, static_cast<uint8_t>(x != x));
AE_OP1(FloatIsInf, static_cast<uint8_t>(std::fabs(x) == std::numeric_limits<T>::infinity()));
AE_OP1(LogicalNot, static_cast<uint8_t>(x == T(0)));
AE_OP1(IntNeg, static_cast<T>(wrapping<T>(0) - static_cast<wrapping<T>>(x)));
AE_OP1(IntSign, static_cast<T>((T(0) < x) - (x < T(0))));
AE_OP1(IntNot, static_cast<T>(~x));
AE_OP1(Same, x);
AE_OP1(HalfNot, static_cast<uint8_t>((x & 0x7fff) == 0));

struct IntAbs {
  template <class T>
  static T apply(T x) {
    return x < T(0) ? static_cast<T>(wrapping<T>(0) - static_cast<wrapping<T>>(x)) : x;
  }
};

template <class T>
ElementKernel float_kernel(Primitive op, DType type) {
  switch (op) {
    case Primitive::neg: return unary_of<FloatNeg, T>();
    case Primitive::abs: return unary_of<FloatAbs, T>();
    case Primitive::sign: return unary_of<FloatSign, T>();
    case Primitive::floor: return unary_of<FloatFloor, T>();
    case Primitive::ceil: return unary_of<FloatCeil, T>();
    case Primitive::trunc: return unary_of<FloatTrunc, T>();
    case Primitive::round: return unary_of<FloatRound, T>();
    case Primitive::sqrt: return unary_of<FloatSqrt, T>();
    case Primitive::reciprocal: return unary_of<FloatReciprocal, T>();
    case Primitive::rsqrt: return unary_of<FloatRsqrt, T>();
    case Primitive::is_nan: return unary_of<FloatIsNan, T, uint8_t>();
    case Primitive::is_inf: return unary_of<FloatIsInf, T, uint8_t>();
    case Primitive::logical_not: return unary_of<LogicalNot, T, uint8_t>();
    default: {
      const ElementKernel elementary = unary_math_kernel(op, type);
      return elementary ? elementary : unary_special_kernel(op, type);
    }
  }
}

template <class T>
ElementKernel int_kernel(Primitive op) {
  switch (op) {
    case Primitive::neg: return unary_of<IntNeg, T>();
    case Primitive::abs: return unary_of<IntAbs, T>();
    case Primitive::sign: return unary_of<IntSign, T>();
    case Primitive::floor:
    case Primitive::ceil:
    case Primitive::trunc:
    case Primitive::round: return unary_of<Same, T>();
    case Primitive::logical_not: return unary_of<LogicalNot, T, uint8_t>();
    case Primitive::bitwise_not: return unary_of<IntNot, T>();
    default: return nullptr;
  }
}

}  // namespace

ElementKernel unary_kernel(Primitive op, DType type) {
  switch (type) {
    case DType::kF32: return float_kernel<float>(op, type);
    case DType::kF64: return float_kernel<double>(op, type);
    case DType::kBool:
      if (op == Primitive::abs || op == Primitive::sign) return unary_of<Same, uint8_t>();
      return op == Primitive::logical_not || op == Primitive::bitwise_not ? unary_of<LogicalNot, uint8_t>() : nullptr;
    case DType::kI8: return int_kernel<int8_t>(op);
    case DType::kI16: return int_kernel<int16_t>(op);
    case DType::kI32: return int_kernel<int32_t>(op);
    case DType::kI64: return int_kernel<int64_t>(op);
    case DType::kU8: return int_kernel<uint8_t>(op);
    case DType::kU16: return int_kernel<uint16_t>(op);
    case DType::kU32: return int_kernel<uint32_t>(op);
    case DType::kU64: return int_kernel<uint64_t>(op);
    case DType::kF16:
    case DType::kBF16: return op == Primitive::logical_not ? unary_of<HalfNot, uint16_t, uint8_t>() : nullptr;
    default: return nullptr;
  }
}

}  // namespace ae::device::host
