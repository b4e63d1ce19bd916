// Integer operators of two operands.
#pragma once

#include "device/host/binary_kernels.h"

namespace ae::device::host {

AE_OP(IntAdd, static_cast<T>(static_cast<wrapping<T>>(x) + static_cast<wrapping<T>>(y)));
AE_OP(IntSub, static_cast<T>(static_cast<wrapping<T>>(x) - static_cast<wrapping<T>>(y)));
AE_OP(IntMul, static_cast<T>(static_cast<wrapping<T>>(x) * static_cast<wrapping<T>>(y)));
AE_OP(IntMaximum, x < y ? y : x);
AE_OP(IntMinimum, y < x ? y : x);
AE_OP(IntAnd, static_cast<T>(x& y));
AE_OP(IntOr, static_cast<T>(x | y));
AE_OP(IntXor, static_cast<T>(x ^ y));

/// The quotient towards zero; x / 0 is 0 and the smallest value / -1 wraps.
template <class T>
inline T truncated_quotient(T x, T y) {
  if constexpr (std::is_signed_v<T>) {
    if (y == T(-1)) return static_cast<T>(wrapping<T>(0) - static_cast<wrapping<T>>(x));
  }
  return y == 0 ? T(0) : static_cast<T>(x / y);
}
template <class T>
inline T truncated_rest(T x, T y) {
  if constexpr (std::is_signed_v<T>) {
    if (y == T(-1)) return 0;
  }
  return y == 0 ? T(0) : static_cast<T>(x % y);
}

struct IntTruncDiv {
  template <class T>
  static T apply(T x, T y) {
    return truncated_quotient(x, y);
  }
};
struct IntFmod {
  template <class T>
  static T apply(T x, T y) {
    return truncated_rest(x, y);
  }
};
struct IntFloorDiv {
  template <class T>
  static T apply(T x, T y) {
    T quotient = truncated_quotient(x, y);
    if constexpr (std::is_signed_v<T>) {
      if (truncated_rest(x, y) != 0 && ((x < 0) != (y < 0))) --quotient;
    }
    return quotient;
  }
};
struct IntRemainder {
  template <class T>
  static T apply(T x, T y) {
    T rest = truncated_rest(x, y);
    if constexpr (std::is_signed_v<T>) {
      if (rest != 0 && ((rest < 0) != (y < 0))) rest = static_cast<T>(rest + y);
    }
    return rest;
  }
};
/// Wraps; with a negative exponent only 1 and -1 give something else than 0.
struct IntPow {
  template <class T>
  static T apply(T base, T exponent) {
    if constexpr (std::is_signed_v<T>) {
      if (exponent < 0) return base == 1 ? T(1) : base == T(-1) ? ((exponent & 1) ? T(-1) : T(1)) : T(0);
    }
    wrapping<T> result = 1, square = static_cast<wrapping<T>>(base);
    for (auto e = static_cast<wrapping<T>>(exponent); e != 0; e >>= 1) {
      if (e & 1) result *= square;
      square *= square;
    }
    return static_cast<T>(result);
  }
};
/// Shifts by less than 0 or at least the width shift everything out.
struct IntShiftLeft {
  template <class T>
  static T apply(T x, T by) {
    constexpr int kBits = sizeof(T) * 8;
    const bool inside = static_cast<std::make_unsigned_t<T>>(by) < kBits;
    return inside ? static_cast<T>(static_cast<wrapping<T>>(x) << by) : T(0);
  }
};
struct IntShiftRight {
  template <class T>
  static T apply(T x, T by) {
    constexpr int kBits = sizeof(T) * 8;
    const bool inside = static_cast<std::make_unsigned_t<T>>(by) < kBits;
    if constexpr (std::is_signed_v<T>)
      return static_cast<T>(x >> (inside ? by : T(kBits - 1)));
    else
      return inside ? static_cast<T>(x >> by) : T(0);
  }
};

template <class T>
ElementKernel int_kernel(Primitive op, Operands operands) {
  switch (op) {
    case Primitive::add: return binary_of<IntAdd, T>(operands);
    case Primitive::sub: return binary_of<IntSub, T>(operands);
    case Primitive::mul: return binary_of<IntMul, T>(operands);
    case Primitive::floor_div: return binary_of<IntFloorDiv, T>(operands);
    case Primitive::trunc_div: return binary_of<IntTruncDiv, T>(operands);
    case Primitive::remainder: return binary_of<IntRemainder, T>(operands);
    case Primitive::fmod: return binary_of<IntFmod, T>(operands);
    case Primitive::pow: return binary_of<IntPow, T>(operands);
    case Primitive::maximum:
    case Primitive::fmax: return binary_of<IntMaximum, T>(operands);
    case Primitive::minimum:
    case Primitive::fmin: return binary_of<IntMinimum, T>(operands);
    case Primitive::bitwise_and: return binary_of<IntAnd, T>(operands);
    case Primitive::bitwise_or: return binary_of<IntOr, T>(operands);
    case Primitive::bitwise_xor: return binary_of<IntXor, T>(operands);
    case Primitive::shift_left: return binary_of<IntShiftLeft, T>(operands);
    case Primitive::shift_right: return binary_of<IntShiftRight, T>(operands);
    default: return comparison_kernel<T>(op, operands);
  }
}

}  // namespace ae::device::host
