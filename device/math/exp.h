// exp, exp2, expm1.
//
// x = n ln 2 + r with integral n and |r| <= ln 2 / 2; e^x = 2^n (1 + r + r^2 q(r)). All polynomials in device/math were
// fitted by us with the Remez exchange in 50 digits, the lowest coefficients being rounded first and the others fitted
// again; "error" is the largest error of the rounded polynomial, relative to the function's value.
#pragma once

#include "device/math/vec.h"

namespace ae::math {

template <class T>
struct ExpConstants;
template <>
struct ExpConstants<float> {
  static constexpr float kInvLn2 = 0x1.715476p+0f;
  static constexpr float kLn2High = 0x1.62e4p-1f;  // few bits: n * kLn2High is exact
  static constexpr float kLn2Low = 0x1.7f7d1cp-20f;
  static constexpr float kLowest = -104.5f;  // e^x is 0 and infinite beyond
  static constexpr float kHighest = 88.9f;
  // error 2^-28.2
  static constexpr float kQ[] = {0x1.000000p-1f, 0x1.55548ap-3f, 0x1.555524p-5f, 0x1.123e86p-7f, 0x1.6d032cp-10f};
  static constexpr float kLowest2 = -150.5f;  // the same for 2^x
  static constexpr float kHighest2 = 129.0f;
  // (2^r - 1) / r on |r| <= 1/2, error 2^-27.8
  static constexpr float kS[] = {0x1.62e430p-1f, 0x1.ebfbe0p-3f,  0x1.c6af3ep-5f,
                                 0x1.3b2a58p-7f, 0x1.5f2dfep-10f, 0x1.445bc4p-13f};
};

template <>
struct ExpConstants<double> {
  static constexpr double kInvLn2 = 0x1.71547652b82fep+0;
  static constexpr double kLn2High = 0x1.62e42fefa38p-1;
  static constexpr double kLn2Low = 0x1.ef35793c7673p-45;
  static constexpr double kLowest = -746;
  static constexpr double kHighest = 709.9;
  // error 2^-57.9
  static constexpr double kQ[] = {0x1.000000000000cp-1,  0x1.5555555555561p-3,  0x1.555555554fd1ap-5,
                                  0x1.111111110d68fp-7,  0x1.6c16c186582ffp-10, 0x1.a01a01baaf896p-13,
                                  0x1.a01994a859c23p-16, 0x1.71dde0695175dp-19, 0x1.28b219c9840c8p-22,
                                  0x1.af844cb823507p-26};
  static constexpr double kLowest2 = -1076;
  static constexpr double kHighest2 = 1025;
  // error 2^-56.0
  static constexpr double kS[] = {0x1.62e42fefa39efp-1,  0x1.ebfbdff82c58fp-3,  0x1.c6b08d704a0d1p-5,
                                  0x1.3b2ab6fba4e78p-7,  0x1.5d87fe78a218bp-10, 0x1.430912f86bcd5p-13,
                                  0x1.ffcbfc764740fp-17, 0x1.62c02240ba5f7p-20, 0x1.b524da7e660f1p-24,
                                  0x1.e4cf1b1b47013p-28, 0x1.ea056c9bad518p-32, 0x1.c4906a5387be3p-36};
};

/// n, y and y_low of e^x = 2^n (1 + y + y_low), y + y_low = e^r - 1. x is within [kLowest, kHighest + 1] or NaN.
template <class V>
AE_INLINE void exp_parts(V x, V& n, V& y, V& y_low) {
  using C = ExpConstants<scalar_of<V>>;
  n = rint(x * V(C::kInvLn2));
  const V exact = fma(n, V(-C::kLn2High), x);
  const V small = n * V(-C::kLn2Low);
  const V r = exact + small;
  const V rest = fma(r * r, horner(r, C::kQ), small);
  y = exact + rest;
  y_low = rest - (y - exact);
}

template <class V>
AE_INLINE void exp_parts(V x, V& n, V& y) {
  V y_low;
  exp_parts(x, n, y, y_low);
}

template <class V>
AE_INLINE V clamp_for_exp(V x) {
  using C = ExpConstants<scalar_of<V>>;
  return min_or_second(V(C::kHighest), max_or_second(V(C::kLowest), x));  // keeps a NaN
}

template <class V>
AE_INLINE V exp(V x) {
  V n, y;
  exp_parts(clamp_for_exp(x), n, y);
  return scale_by_power_of_two(V(scalar_of<V>(1)) + y, n);
}

template <class V>
AE_INLINE V exp2(V x) {
  using T = scalar_of<V>;
  using C = ExpConstants<T>;
  x = min_or_second(V(C::kHighest2), max_or_second(V(C::kLowest2), x));
  const V n = rint(x);
  const V r = x - n;
  return scale_by_power_of_two(fma(r, horner(r, C::kS), V(T(1))), n);
}

template <class V>
AE_INLINE V expm1(V x) {
  using T = scalar_of<V>;
  V n, y;
  // e^x - 1 = 2 (2^(n-1) y + (2^(n-1) - 1/2)), so that 2^(n-1) stays finite where the result does.
  const V lowest = V(T(std::numeric_limits<T>::digits + 2) * T(-0.7));  // e^x - 1 rounds to -1 below
  const V bounded = min_or_second(V(ExpConstants<T>::kHighest), max_or_second(lowest, x));
  exp_parts(bounded, n, y);
  const V half_scale = power_of_two(V(n - V(T(1))));
  const V result = fma(half_scale, y, half_scale - V(T(0.5)));
  // In the middle y itself is the result, to the last bit of tiny x and to the sign of zero.
  return select(n == V(T(0)), select(x == V(T(0)), x, y), result + result);
}

}  // namespace ae::math
