// Loops and operators of two operands; instantiated by dtype in binary_float.cpp and binary_int.cpp.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "device/host/kernels.h"

namespace ae::device::host {

template <class T, class R, Operands kOperands, class F>
inline void binary_loop(void* dst, const void* a, const void* b, int64_t groups, F f) {
  const int64_t n = groups * kGroup;
  R* out = static_cast<R*>(dst);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  if constexpr (kOperands == Operands::vv) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = f(x[i], y[i]);
  } else if constexpr (kOperands == Operands::vs) {
    const T s = *y;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = f(x[i], s);
  } else {
    const T s = *x;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = f(s, y[i]);
  }
}

/// The kernel of an operator object `Op` with `static R apply(T, T)`.
template <class Op, class T, class R = T>
ElementKernel binary_of(Operands operands) {
  switch (operands) {
    case Operands::vv:
      return [](void* d, const void* a, const void* b, const void*, int64_t groups) {
        binary_loop<T, R, Operands::vv>(d, a, b, groups, [](T x, T y) { return Op::apply(x, y); });
      };
    case Operands::vs:
      return [](void* d, const void* a, const void* b, const void*, int64_t groups) {
        binary_loop<T, R, Operands::vs>(d, a, b, groups, [](T x, T y) { return Op::apply(x, y); });
      };
    case Operands::sv:
      return [](void* d, const void* a, const void* b, const void*, int64_t groups) {
        binary_loop<T, R, Operands::sv>(d, a, b, groups, [](T x, T y) { return Op::apply(x, y); });
      };
  }
  return nullptr;
}

/// Signed integers wrap: arithmetic is done in the unsigned type, at least 32 bits wide.
template <class T>
using wrapping = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

#define AE_OP(Name, expression)          \
  struct Name {                          \
    template <class T>                   \
    static inline auto apply(T x, T y) { \
      return expression;                 \
    }                                    \
  }

AE_OP(OpEq, static_cast<uint8_t>(x == y));
AE_OP(OpNe, static_cast<uint8_t>(x != y));
AE_OP(OpLt, static_cast<uint8_t>(x < y));
AE_OP(OpLe, static_cast<uint8_t>(x <= y));
AE_OP(OpGt, static_cast<uint8_t>(x > y));
AE_OP(OpGe, static_cast<uint8_t>(x >= y));

template <class T>
ElementKernel comparison_kernel(Primitive op, Operands operands) {
  switch (op) {
    case Primitive::eq: return binary_of<OpEq, T, uint8_t>(operands);
    case Primitive::ne: return binary_of<OpNe, T, uint8_t>(operands);
    case Primitive::lt: return binary_of<OpLt, T, uint8_t>(operands);
    case Primitive::le: return binary_of<OpLe, T, uint8_t>(operands);
    case Primitive::gt: return binary_of<OpGt, T, uint8_t>(operands);
    case Primitive::ge: return binary_of<OpGe, T, uint8_t>(operands);
    default: return nullptr;
  }
}

ElementKernel binary_float_kernel(Primitive op, DType type, Operands operands);
ElementKernel binary_signed_kernel(Primitive op, DType type, Operands operands);
ElementKernel binary_unsigned_kernel(Primitive op, DType type, Operands operands);
ElementKernel binary_bool_kernel(Primitive op, Operands operands);

}  // namespace ae::device::host
