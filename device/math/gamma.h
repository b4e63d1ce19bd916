// lgamma, digamma and trigamma; floats in double. The polynomials were fitted by us in 45 digits.
#pragma once

#include "device/math/log.h"

namespace ae::math {

struct GammaConstants {
  // lgamma(x) / ((x - 1) (x - 2)) in x - 2 on 1 <= x <= 3; error 2^-55.5
  static constexpr double kLogGamma[] = {
      0x1.b0ee6072093cep-2,  -0x1.9ae6509ea109fp-4,  0x1.0e0c9df293525p-5,   -0x1.95ce223a9cba8p-7,
      0x1.47974853abda1p-8,  -0x1.145121f99f241p-9,  0x1.dfebcf8ce84efp-11,  -0x1.a96a400f04428p-12,
      0x1.7ed7340cdbd34p-13, -0x1.5c86b6c31d38bp-14, 0x1.402f02c6e2337p-15,  -0x1.2850452e8f9fp-16,
      0x1.13e5624472395p-17, -0x1.0231c567dfc46p-18, 0x1.e530e90d03975p-20,  -0x1.c9c48925b7cd9p-21,
      0x1.b36c465762259p-22, -0x1.9d70903c5f5cep-23, 0x1.77f6e532bc6adp-24,  -0x1.666b3835d636fp-25,
      0x1.c155065d0c524p-26, -0x1.afe668ca49dd1p-27, -0x1.7781521a68fe3p-31, 0x1.8d4b5e576edfap-32,
      0x1.4fbf3b930d20cp-28, -0x1.4615c270018fap-29, -0x1.7a59c84291a84p-30, 0x1.70a6dbd17088fp-31,
      0x1.d0a7cb6631101p-32, -0x1.c3bb8ca5b5f4dp-33};
  // sin(pi r) / r in 8 r^2 - 1, |r| <= 1/2; error 2^-52.9
  static constexpr double kSinPi[] = {0x1.4464bcc8cba1ep+1,   -0x1.23b03366aa0cap-1,  0x1.2a9fb40c119edp-5,
                                      -0x1.1e5fdef25c29dp-10, 0x1.3e0af61f766d8p-16,  -0x1.cc930fdac27eep-23,
                                      0x1.d53517799b502p-30,  -0x1.628d3f5ab662cp-37, 0x1.9d4396be72b58p-45,
                                      -0x1.7ed30a1e5c79ep-53, 0x1.209d92b2a9005p-61,  -0x1.690fd3a3dbb5dp-70};
  // Asymptotic series, in 1 / x^2: what Stirling's formula leaves times x, what the logarithm leaves times -x^2, and
  // the same for the derivative times x^3.
  static constexpr double kStirling[] = {1.0 / 12,   -1.0 / 360,      1.0 / 1260, -1.0 / 1680,
                                         1.0 / 1188, -691.0 / 360360, 1.0 / 156,  -3617.0 / 122400};
  static constexpr double kDigamma[] = {1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                                        1.0 / 132, -691.0 / 32760, 1.0 / 12,  -3617.0 / 8160};
  static constexpr double kTrigamma[] = {1.0 / 6,  -1.0 / 30,     1.0 / 42, -1.0 / 30,
                                         5.0 / 66, -691.0 / 2730, 7.0 / 6,  -3617.0 / 510};
};
inline constexpr double kPi = 0x1.921fb54442d18p+1;

/// sin(pi r), |r| <= 1/2.
template <class D>
AE_INLINE D sin_pi(D r) {
  return r * horner(fma(D(8.0), D(r * r), D(-1.0)), GammaConstants::kSinPi);
}
/// cos(pi r), |r| <= 1/2, as the sine of the rest of a right angle.
template <class D>
AE_INLINE D cos_pi(D r) {
  return sin_pi(D(D(0.5) - abs(r)));
}

/// For large x, by Stirling's formula.
template <class D>
AE_INLINE D lgamma_large(D x) {
  const D inverse = D(1.0) / x;
  const D rest = inverse * horner(D(inverse * inverse), GammaConstants::kStirling);
  return fma(x - D(0.5), log(x), (D(0x1.d67f1c864beb5p-1) - x) + rest);  // log(sqrt(2 pi))
}

/// For 0 < x < 8, brought to [1, 3): lgamma(x) = lgamma(x - n) + log((x - 1) … (x - n)), or lgamma(x + 1) - log(x).
template <class D>
AE_INLINE D lgamma_small(D x) {
  const mask_of<D> below = x < D(1.0);
  D y = select(below, D(x + D(1.0)), min_or_second(D(8.0), x)), product = D(1.0);
#pragma GCC unroll 5
  for (int i = 0; i < 5; ++i) {
    const mask_of<D> step = y >= D(3.0);
    y = select(step, D(y - D(1.0)), y);
    product = select(step, D(product * y), product);
  }
  const D t = y - D(2.0);
  const D moved = log(D(select(below, x, product)));
  const D offset = select(below, D(D(0.0) - moved), moved);
  return fma(D(t * (t + D(1.0))), horner(t, GammaConstants::kLogGamma), offset);
}

/// For x > 0.
template <class D>
AE_INLINE D lgamma_of_positive(D x) {
  const mask_of<D> small = x < D(8.0);
  const D near = any(small) ? lgamma_small(x) : D(0.0);
  const D far = all(small) ? D(0.0) : lgamma_large(x);
  return select(small, near, select(x < D(kInf<double>), far, x));
}

/// lgamma(-a) from lgamma(a): gamma(-a) gamma(a) = -pi / (a sin(pi a)).
template <class D>
AE_INLINE D reflected_lgamma(D a, D lgamma_of_a) {
  const D sine = abs(sin_pi(D(a - rint(a)))), log_a = log(a);
  const D reflected = (log(D(D(kPi) / sine)) - log_a) - lgamma_of_a;
  const D result = select(a < D(0x1p-60), D(D(0.0) - log_a), reflected);
  return select(a < D(0x1p52), result, D(kInf<double>));
}

/// log |gamma(x)|; infinite at 0, -1, -2, …
template <class V>
AE_INLINE V lgamma(V number) {
  using D = rebind<V, double>;
  const D x = convert<double>(number), magnitude = abs(x);
  const D positive = lgamma_of_positive(magnitude);
  const mask_of<D> is_negative = x < D(0.0);
  const D negative = any(is_negative) ? reflected_lgamma(magnitude, positive) : positive;
  return convert<scalar_of<V>>(D(select(x == D(0.0), D(kInf<double>), select(is_negative, negative, positive))));
}

/// The logarithmic derivative of gamma; infinite at zero, NaN at -1, -2, …
template <class V>
AE_INLINE V digamma(V number) {
  using C = GammaConstants;
  using D = rebind<V, double>;
  const D x = convert<double>(number);
  const mask_of<D> negative = x < D(0.0);
  D z = select(negative, D(D(1.0) - x), x), sum = D(0.0);
#pragma GCC unroll 10
  for (int i = 0; i < 10; ++i) {
    const mask_of<D> step = z < D(10.0);
    sum = sum + select(step, D(D(1.0) / z), D(0.0));
    z = select(step, D(z + D(1.0)), z);
  }
  const D inverse = D(1.0) / z, square = inverse * inverse;
  const D series = fma(D(0.5), inverse, D(square * horner(square, C::kDigamma)));
  const D far = (log(z) - series) - sum;
  const D r = x - rint(x);
  const D cotangent = xor_sign(cos_pi(r), r) / abs(sin_pi(r));
  const D result = select(negative, D(far - D(kPi) * cotangent), far);
  const D at_zero = D(0.0) - xor_sign(D(kInf<double>), x);
  const D special = select(r == D(0.0), D(kNaN<double>), result);
  return convert<scalar_of<V>>(D(select(x == D(0.0), at_zero, select(negative, special, result))));
}

/// The derivative of digamma; infinite at 0, -1, -2, …
template <class V>
AE_INLINE V trigamma(V number) {
  using C = GammaConstants;
  using D = rebind<V, double>;
  const D x = convert<double>(number);
  const mask_of<D> reflect = x < D(0.5);
  D z = select(reflect, D(D(1.0) - x), x), sum = D(0.0);
#pragma GCC unroll 10
  for (int i = 0; i < 10; ++i) {
    const mask_of<D> step = z < D(10.0);
    const D inverse = D(1.0) / z;
    sum = sum + select(step, D(inverse * inverse), D(0.0));
    z = select(step, D(z + D(1.0)), z);
  }
  const D inverse = D(1.0) / z, square = inverse * inverse;
  const D far = sum + fma(D(square * inverse), horner(square, C::kTrigamma), fma(D(0.5), square, inverse));
  const D ratio = D(kPi) / sin_pi(D(x - rint(x)));
  return convert<scalar_of<V>>(D(select(reflect, D(ratio * ratio - far), far)));
}

}  // namespace ae::math
