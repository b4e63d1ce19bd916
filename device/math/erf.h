// erf and erfc.
#pragma once

#include "device/math/exp.h"

namespace ae::math {

template <class T>
struct ErfConstants;
template <>
struct ErfConstants<float> {
  // erf(x) / x - 1 in x^2, |x| <= 1, error 2^-29.6
  static constexpr float kSmall[] = {0x1.06eba8p-3f, -0x1.812740p-2f,  0x1.ce2d50p-4f, -0x1.b7fe90p-6f,
                                     0x1.542e0ep-8f, -0x1.a50ae8p-11f, 0x1.4c339cp-14f};
  // log(erfc(x)) on 0.92 <= x <= 3.95, error of 1 - erfc(x) 2^-29.3
  static constexpr float kLogErfc[] = {-0x1.9a8a96p-13f, -0x1.20af54p+0f, -0x1.463cd2p-1f, -0x1.a9b3b8p-4f,
                                       0x1.6c299ap-6f,   -0x1.8edfb4p-9f, 0x1.9ae60ep-13f};
  static constexpr float kLargest = 3.9375f;  // erf rounds to 1 beyond
};

template <>
struct ErfConstants<double> {
  // the same, error 2^-56.2
  static constexpr double kSmall[] = {0x1.06eba8214db69p-3,   -0x1.812746b0379e7p-2,  0x1.ce2f21a042bdep-4,
                                      -0x1.b82ce312889c2p-6,  0x1.565bcd0e65192p-8,   -0x1.c02db3fef0156p-11,
                                      0x1.f9a326c2d89c8p-14,  -0x1.f4d2562a09c73p-17, 0x1.b9e6518d83261p-20,
                                      -0x1.5f6d9cba594f1p-23, 0x1.fc43f012d4cbap-27,  -0x1.4e635a3f5bcf4p-30,
                                      0x1.7f171c0a05f67p-34,  -0x1.29e14706b136bp-38};
  // (1 + 2 x) e^(x^2) erfc(x) in (x - 2.5) / (x + 2.5), 0.5 <= x <= 28, error 2^-55.3: the constant and the others
  static constexpr double kScaledErfcFirst = 0x1.43cc6f6c9672cp+0;
  static constexpr double kScaledErfcRest[] = {
      -0x1.f52c5d7e22302p-4,  -0x1.959ac16f856f9p-4,  0x1.42d379989b5dap-3,   -0x1.a5c0c8a4047e4p-4,
      0x1.0c6092a5a3278p-5,   0x1.e8948966630f9p-11,  -0x1.1f2f1326813a3p-8,  0x1.01e11c6fbde08p-11,
      0x1.4b6a4a1eeda82p-11,  -0x1.731bc5bf40c99p-14, -0x1.dc258c8883414p-14, 0x1.a476769bcc140p-18,
      0x1.7cd4654f18e88p-16,  0x1.5e95a1520452ap-19,  -0x1.1b12503783463p-18, -0x1.ac0e4fcd2c86dp-20,
      0x1.1daceb6d7809dp-21,  0x1.274337a7805fcp-21,  0x1.3dd759a584f08p-26,  -0x1.2e6d64d54835ep-23,
      -0x1.7400b681c40dap-26, 0x1.9a17e1c39a460p-26};
};

template <class V>
AE_INLINE V erf_small(V x) {
  return fma(x, horner(V(x * x), ErfConstants<scalar_of<V>>::kSmall), x);
}

template <class V>
  requires(sizeof(scalar_of<V>) == 4)
AE_INLINE V erf(V x) {
  using T = scalar_of<V>;
  using C = ErfConstants<T>;
  const V magnitude = abs(x);
  const V one = V(T(1));
  V n, y;
  exp_parts(horner(min_or_second(V(C::kLargest), magnitude), C::kLogErfc), n, y);
  const V scale = power_of_two(n);
  const V large = fma(-scale, y, one - scale);  // 1 - 2^n (1 + y)
  return xor_sign(select(magnitude < one, erf_small(magnitude), large), x);
}

/// erfc(x) for x >= 1/2, in double: e^(-x^2) times a polynomial over 1 + 2 x. What each step's last rounding loses is
/// kept and added to the quotient at the end.
template <class D>
AE_INLINE D erfc_large(D x) {
  const D one = D(1.0), two = D(2.0);
  x = min_or_second(D(28.0), x);
  D square, square_low;
  two_product(x, x, square, square_low);
  D n, y, y_low;
  exp_parts(max_or_second(D(ExpConstants<double>::kLowest), D(-square)), n, y, y_low);
  const D y_rest = fma(-square_low, one + y, y_low);
  const D p = one + y;
  const D p_low = (y - (p - one)) + y_rest;

  const D u = (x - D(2.5)) / (x + D(2.5));
  const D slope = u * horner(u, ErfConstants<double>::kScaledErfcRest);
  const D g = D(ErfConstants<double>::kScaledErfcFirst) + slope;
  const D g_low = slope - (g - D(ErfConstants<double>::kScaledErfcFirst));

  D top, top_low;
  two_product(p, g, top, top_low);
  top_low = top_low + fma(p, g_low, p_low * g);
  const D bottom = fma(two, x, one);
  const D bottom_low = one - (bottom - two * x);
  const D inverse = one / bottom;
  const D q = top * inverse;
  const D rest = fma(-q, bottom, top) + (top_low - q * bottom_low);
  return scale_by_power_of_two(D(fma(rest, inverse, q)), n);
}

template <class V>
  requires(sizeof(scalar_of<V>) == 8)
AE_INLINE V erf(V x) {
  const V magnitude = abs(x);
  const V large = V(1.0) - erfc_large(max_or_second(V(0.5), magnitude));
  return xor_sign(select(magnitude < V(1.0), erf_small(magnitude), large), x);
}

template <class V>
AE_INLINE V erfc(V number) {
  using T = scalar_of<V>;
  using D = rebind<V, double>;
  const D x = convert<double>(number);
  const D magnitude = abs(x);
  const D tail = erfc_large(max_or_second(D(0.5), magnitude));
  const D large = select(x < D(0.0), D(D(2.0) - tail), tail);
  const D near_zero = D(1.0) - erf_small(x);
  return convert<T>(D(select(magnitude < D(0.5), near_zero, large)));
}

}  // namespace ae::math
