// asin, acos, atan, atan2.
#pragma once

#include "device/math/vec.h"

namespace ae::math {

template <class T>
struct AtanConstants;
template <>
struct AtanConstants<float> {
  static constexpr float kHalfPi = 0x1.921fb6p+0f, kHalfPiLow = -0x1.777a5cp-25f;
  // (asin(x) / x - 1) / x^2 in x^2, |x| <= 1/2, error 2^-27.6
  static constexpr float kAsin[] = {0x1.5555cap-3f, 0x1.33016ap-4f, 0x1.748a30p-5f, 0x1.8bb4f6p-6f, 0x1.59cce6p-5f};
  // (atan(x) / x - 1) / x^2 in x^2, |x| <= tan(pi/8), error 2^-30.4
  static constexpr float kAtan[] = {-0x1.55554ap-2f, 0x1.9991e4p-3f, -0x1.23b9ccp-3f, 0x1.b22652p-4f, -0x1.f2ec0cp-5f};
};
template <>
struct AtanConstants<double> {
  static constexpr double kHalfPi = 0x1.921fb54442d18p+0, kHalfPiLow = 0x1.1a62633145c07p-54;
  // the same, errors 2^-59.8 and 2^-59.4
  static constexpr double kAsin[] = {
      0x1.5555555555578p-3, 0x1.333333332df15p-4,  0x1.6db6db722b64cp-5, 0x1.f1c71a8ba0b8fp-6, 0x1.6e8bdfe5ca3aep-6,
      0x1.1c49de14f9f1ep-6, 0x1.ca214219caa8cp-7,  0x1.7577a19d737a4p-7, 0x1.618a3b97dc0f3p-7, 0x1.e163641227c3cp-9,
      0x1.64ff5b45ec12ep-6, -0x1.59f2893d46a08p-6, 0x1.0be316c7790e4p-5};
  static constexpr double kAtan[] = {-0x1.555555555553dp-2, 0x1.9999999995875p-3,  -0x1.24924922ad93bp-3,
                                     0x1.c71c70e612273p-4,  -0x1.745cf8da46af9p-4, 0x1.3b1118c7daf38p-4,
                                     -0x1.10ebb2732dbf3p-4, 0x1.df0ed88525690p-5,  -0x1.9cd034552cbeep-5,
                                     0x1.37cdef1c7e900p-5,  -0x1.2556c4accbe17p-6};
};

/// What asin and acos share: asin(s + s_low) = s + tail for |x| <= 1/2 (s = |x|); beyond, s = sqrt((1 - |x|) / 2) and
/// acos(|x|) = 2 (s + tail), where the tail takes in what the root's rounding lost.
template <class V>
struct ArcSine {
  V s, tail;
  mask_of<V> small;
};
template <class V>
AE_INLINE ArcSine<V> arc_sine(V magnitude) {
  using T = scalar_of<V>;
  ArcSine<V> r;
  r.small = magnitude <= V(T(0.5));
  const V square = select(r.small, V(magnitude * magnitude), V((V(T(1)) - magnitude) * V(T(0.5))));
  const V root = sqrt(square);
  r.s = select(r.small, magnitude, root);
  const V lost = select(r.small | (root == V(T(0))), V(T(0)), V(fma(-root, root, square) / (root + root)));
  r.tail = fma(r.s * square, horner(square, AtanConstants<T>::kAsin), lost);
  return r;
}

template <class V>
AE_INLINE V asin(V x) {
  using T = scalar_of<V>;
  using C = AtanConstants<T>;
  const ArcSine<V> a = arc_sine(abs(x));
  const V two = V(T(2));
  const V top = V(C::kHalfPi) - two * a.s;
  const V rest = (V(C::kHalfPi) - top) - two * a.s;
  const V large = top + (rest + fma(-two, a.tail, V(C::kHalfPiLow)));
  return xor_sign(select(a.small, V(a.s + a.tail), large), x);
}

template <class V>
AE_INLINE V acos(V x) {
  using T = scalar_of<V>;
  using C = AtanConstants<T>;
  const ArcSine<V> a = arc_sine(abs(x));
  const V s = xor_sign(a.s, x), tail = xor_sign(a.tail, x);
  // |x| <= 1/2: pi/2 - asin(x)
  const V half_pi = V(C::kHalfPi);
  const V top = half_pi - s;
  const V middle = top + (((half_pi - top) - s) + (V(C::kHalfPiLow) - tail));
  // 2 asin(s) for positive x, pi - 2 asin(s) for negative
  const V two = V(T(2));
  const V near_one = two * (a.s + a.tail);
  const V pi = V(T(2) * C::kHalfPi);
  const V pi_top = pi - two * a.s;
  const V near_minus_one = pi_top + (((pi - pi_top) - two * a.s) + fma(-two, a.tail, V(T(2) * C::kHalfPiLow)));
  return select(a.small, middle, select(x < V(T(0)), near_minus_one, near_one));
}

/// The angle of (x, y) for non-negative coordinates that are not NaN and not both zero, both infinite taken as equal;
/// if `behind`, of (-x, y).
template <class V>
AE_INLINE V first_quadrant_angle(V y, V x, mask_of<V> behind) {
  using T = scalar_of<V>;
  using C = AtanConstants<T>;
  const V zero = V(T(0));
  const mask_of<V> steep = y > x;
  const V small = select(steep, x, y), large = select(steep, y, x);
  // atan(t) = pi/4 + atan((t - 1) / (t + 1))
  const mask_of<V> turned = small > large * V(T(0.41421356237309503));
  const V top = select(turned, V(small - large), small);
  const V bottom = select(turned, V(small + large), large);
  const V t = top / bottom;
  const V lost = fma(-t, bottom, top) / bottom;
  const V square = t * t;
  const V tail = fma(t * square, horner(square, AtanConstants<T>::kAtan), lost);
  // The angle is offset ± (t + tail), offset in quarters of pi: 0 or 1, reflected at 2 if steep, and at 4 if behind.
  const mask_of<V> odd_reflections = steep != behind;
  const V base = select(turned, V(T(0.5)), zero);
  const V reflected = select(steep, V(V(T(1)) - base), base);
  const V halves = select(behind, V(V(T(2)) - reflected), reflected);
  const V signed_t = select(odd_reflections, V(-t), t), signed_tail = select(odd_reflections, V(-tail), tail);
  const V offset = halves * V(C::kHalfPi);
  const V sum = offset + signed_t;
  const V rest = (offset - sum) + signed_t;
  const V result = sum + (fma(halves, V(C::kHalfPiLow), signed_tail) + rest);
  // A tiny quotient is the angle itself; its remainder would fall below the smallest number.
  return select((halves == zero) & (t < V(std::numeric_limits<T>::min() * T(1 << 30))), t, result);
}

template <class V>
AE_INLINE V atan(V x) {
  using T = scalar_of<V>;
  using C = AtanConstants<T>;
  const V magnitude = abs(x);
  V result = first_quadrant_angle(min_or_second(magnitude, V(T(0x1p60))), V(T(1)), V(T(0)) > V(T(1)));
  result = select(magnitude >= V(T(0x1p60)), V(C::kHalfPi), result);
  return select(is_nan(x), x, xor_sign(result, x));
}

template <class V>
AE_INLINE V atan2(V y, V x) {
  using T = scalar_of<V>;
  using I = int_like<T>;
  V up = abs(y), right = abs(x);
  const mask_of<V> behind = bit_cast<I>(x) < rebind<V, I>(0);  // also of -0
  // Bring both into a range where their sum, and the quotient's remainder, do not overflow or vanish.
  const mask_of<V> infinite = is_inf(x) | is_inf(y);
  const V one = V(T(1)), zero = V(T(0));
  const mask_of<V> both_zero = (up == zero) & (right == zero);
  const V huge = V(std::numeric_limits<T>::max() * T(0.125));
  const V tiny = V(std::numeric_limits<T>::min() * T(0x1p60));
  const mask_of<V> big = (up > huge) | (right > huge);
  const mask_of<V> low = (up < tiny) & (right < tiny);
  const V scale = select(big, V(T(0x1p-4)), select(low, V(T(0x1p60)), one));
  const V scaled_up = select(infinite, select(is_inf(y), one, zero), V(up * scale));
  const V scaled_right = select(infinite, select(is_inf(x), one, zero), select(both_zero, one, V(right * scale)));
  const V result = first_quadrant_angle(scaled_up, scaled_right, behind);
  return select(is_nan(x) | is_nan(y), V(x + y), xor_sign(result, y));
}

}  // namespace ae::math
