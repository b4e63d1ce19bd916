// sinh, cosh, tanh.
#pragma once

#include "device/math/exp.h"

namespace ae::math {

template <class T>
struct TanhConstants;
template <>
struct TanhConstants<float> {
  // (tanh(x) / x - 1) / x^2 in x^2, |x| <= 0.9, error 2^-29.3
  static constexpr float kSmall[] = {-0x1.55554ep-2f, 0x1.110f36p-3f, -0x1.b9c9c0p-5f, 0x1.62eb48p-6f,
                                     -0x1.0eb644p-7f, 0x1.520130p-9f, -0x1.dbb888p-12f};
  static constexpr float kLargest = 9.5f;  // tanh rounds to 1 beyond
};
template <>
struct TanhConstants<double> {
  // the same, error 2^-59.1
  static constexpr double kSmall[] = {-0x1.5555555555551p-2,  0x1.1111111110ca3p-3,   -0x1.ba1ba1b9e8e77p-5,
                                      0x1.664f48798d2fap-6,   -0x1.226e345f9643bp-7,  0x1.d6d3ace593b5dp-9,
                                      -0x1.7da1a375259a3p-10, 0x1.35487e8464f4fp-11,  -0x1.f4b0fbcc9956dp-13,
                                      0x1.929e9e9e405fap-14,  -0x1.3b7789d9e288fp-15, 0x1.ca48e69f8b3aap-17,
                                      -0x1.18355883cd382p-18, 0x1.ea1c2300365dfp-21,  -0x1.b86a7bda176d7p-24};
  static constexpr double kLargest = 20;
};

/// 1 - 2 / (e^2x + 1), and a polynomial where that would cancel.
template <class V>
AE_INLINE V tanh(V x) {
  using T = scalar_of<V>;
  using C = TanhConstants<T>;
  const V magnitude = abs(x);
  const V bounded = min_or_second(V(C::kLargest), magnitude);
  const V one = V(T(1)), two = V(T(2));
  V n, y;
  exp_parts(V(bounded + bounded), n, y);
  const V scale = power_of_two(n);
  const V large = one - two / fma(scale, y, scale + one);
  const V square = x * x;
  const V small = fma(square * horner(square, C::kSmall), magnitude, magnitude);
  return xor_sign(select(magnitude < V(T(0.9)), small, large), x);
}

template <class T>
struct SinhConstants;
template <>
struct SinhConstants<float> {
  // (sinh(x) / x - 1) / x^2 in x^2, |x| <= 1, error 2^-27.2
  static constexpr float kSmall[] = {0x1.555556p-3f, 0x1.111136p-7f, 0x1.9ffe12p-13f, 0x1.7a267ap-19f};
};
template <>
struct SinhConstants<double> {
  // the same, error 2^-61.7
  static constexpr double kSmall[] = {0x1.5555555555556p-3,  0x1.1111111111020p-7,  0x1.a01a01a036c73p-13,
                                      0x1.71de3a3b6924dp-19, 0x1.ae646f996d641p-26, 0x1.61171c178473cp-33,
                                      0x1.b5bbca4814e25p-41};
};

/// e^|x| / 2 as the larger and e^-|x| / 2 as the smaller; without overflow where (larger + smaller) is finite.
template <class V>
AE_INLINE void half_exponentials(V magnitude, V& larger, V& smaller) {
  using T = scalar_of<V>;
  // (e^(x/2))^2 would lose bits; e^x = 2^n p with n one lower does not. One past kHighest still overflows.
  V n, y;
  exp_parts(min_or_second(V(ExpConstants<T>::kHighest + T(1)), magnitude), n, y);
  const V p = V(T(1)) + y;
  larger = scale_by_power_of_two(p, V(n - V(T(1))));
  smaller = V(T(0.25)) / larger;
}

template <class V>
AE_INLINE V sinh(V x) {
  using T = scalar_of<V>;
  const V magnitude = abs(x);
  V larger, smaller;
  half_exponentials(magnitude, larger, smaller);
  const V square = x * x;
  const V small = fma(square * horner(square, SinhConstants<T>::kSmall), magnitude, magnitude);
  return xor_sign(select(magnitude < V(T(1)), small, V(larger - smaller)), x);
}

template <class V>
AE_INLINE V cosh(V x) {
  V larger, smaller;
  half_exponentials(abs(x), larger, smaller);
  return larger + smaller;
}

}  // namespace ae::math
