// sin, cos, tan.
//
// x = q pi/2 + r with |r| <= pi/4. Up to kMiddle, q has at most 20 bits and the first two of three parts of pi/2 have
// 33, so that their products with q are exact and r has its full precision even next to a multiple of pi/2. Beyond, r
// comes from 192 bits of 2/pi times x in integers (reduce_huge), lane by lane.
#pragma once

#include "device/math/trig_reduce.h"

namespace ae::math {

template <class T>
struct TrigConstants;
template <>
struct TrigConstants<float> {
  // (sin(r) / r - 1) / r^2 in r^2, error 2^-28.0
  static constexpr float kSin[] = {-0x1.555546p-3f, 0x1.11077cp-7f, -0x1.9955b6p-13f};
  // (cos(r) - 1 + r^2 / 2) / r^4 in r^2, error 2^-33.1
  static constexpr float kCos[] = {0x1.55554ap-5f, -0x1.6c0c1ap-10f, 0x1.99e0e4p-16f};
  // (tan(r) / r - 1) / r^2 in r^2, error 2^-29.1
  static constexpr float kTan[] = {0x1.555562p-2f, 0x1.110d22p-3f,   0x1.baee2ep-5f, 0x1.5bf920p-6f,
                                   0x1.66aa5ap-7f, -0x1.8438d0p-15f, 0x1.231a72p-8f};
};
template <>
struct TrigConstants<double> {
  // the same, errors 2^-58.0 and 2^-64.2
  static constexpr double kSin[] = {-0x1.5555555555549p-3, 0x1.111111110f8a5p-7,   -0x1.a01a019c15deep-13,
                                    0x1.71de357ad5d51p-19, -0x1.ae5e685be12a1p-26, 0x1.5d938dfa33eaap-33};
  static constexpr double kCos[] = {0x1.555555555554cp-5,   -0x1.6c16c16c1521dp-10, 0x1.a01a019cbf0ebp-16,
                                    -0x1.27e4f81267c71p-22, 0x1.1ee9f1137e1adp-29,  -0x1.8fb10c3d48902p-37};
};

/// sin(r + r_low) and cos(r + r_low) for |r| <= pi/4; `low` gets what the last rounding lost.
template <class V>
AE_INLINE V sin_core(V r, V r_low, V& low) {
  using T = scalar_of<V>;
  const V z = r * r;
  const V tail = fma(r * z, horner(z, TrigConstants<T>::kSin), fma(V(T(-0.5)) * z, r_low, r_low));
  const V result = r + tail;
  low = tail - (result - r);
  return result;
}
template <class V>
AE_INLINE V cos_core(V r, V r_low, V& low) {
  using T = scalar_of<V>;
  const V one = V(T(1));
  const V z = r * r;
  const V half = V(T(0.5)) * z;
  const V top = one - half;
  const V tail = fma(z * z, horner(z, TrigConstants<T>::kCos), fma(-r, r_low, (one - top) - half));
  const V result = top + tail;
  low = tail - (result - top);
  return result;
}

/// sin(x + quarter_turns * pi/2), the one function behind sin and cos.
template <class V>
AE_INLINE V sin_shifted(V x, int quarter_turns) {
  using T = scalar_of<V>;
  using I = int_like<T>;
  using VI = rebind<V, I>;
  const auto reduced = reduce(x);
  V r, r_low;
  if constexpr (sizeof(T) == 4) {
    r = convert<float>(reduced.r);
    r_low = V(0.0f);
  } else {
    r = reduced.r;
    r_low = reduced.r_low;
  }
  const VI q = convert<I>(reduced.q) + VI(I(quarter_turns));
  V low;
  const V value = select((q & VI(1)) != VI(0), cos_core(r, r_low, low), sin_core(r, r_low, low));
  return select((q & VI(2)) != VI(0), V(-value), value);
}

template <class V>
AE_INLINE V sin(V x) {
  using T = scalar_of<V>;
  return select(x == V(T(0)), x, sin_shifted(x, 0));  // keeps the sign of zero
}

template <class V>
AE_INLINE V cos(V x) {
  return sin_shifted(x, 1);
}

template <class V>
AE_INLINE V tan(V x) {
  using T = scalar_of<V>;
  const auto reduced = reduce(x);
  using D = rebind<V, double>;
  const auto odd = (convert<int64_t>(reduced.q) & rebind<V, int64_t>(1)) != rebind<V, int64_t>(0);
  const D r = reduced.r;
  if constexpr (sizeof(T) == 4) {
    // The tangent as a double whose low bits are not needed: its division and rounding cost next to nothing.
    const V f = convert<float>(r);
    const V z = f * f;
    const D t = r + convert<double>(V(f * z * horner(z, TrigConstants<float>::kTan)));
    const D top = select(odd, D(-1.0), t), bottom = select(odd, t, D(1.0));
    return select(x == V(T(0)), x, convert<float>(D(top / bottom)));
  } else {
    D s_low, c_low;
    const D s = sin_core(r, reduced.r_low, s_low), c = cos_core(r, reduced.r_low, c_low);
    const D top = select(odd, D(-c), s), bottom = select(odd, s, c);
    const D top_low = select(odd, D(-c_low), s_low), bottom_low = select(odd, s_low, c_low);
    const D q = top / bottom;
    const D rest = fma(-q, bottom, top) + (top_low - q * bottom_low);
    return select(x == V(T(0)), x, D(q + rest / bottom));
  }
}

}  // namespace ae::math
