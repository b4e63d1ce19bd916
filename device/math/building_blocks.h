// What the functions are built of: powers of two, polynomials, tables, exact sums and products.
#pragma once

#include "device/math/vec_arithmetic.h"
#include "device/math/vec_convert.h"

namespace ae::math {

/// x * 2^n rounded once, for an integral n with |n| <= 2 * 126 (float) or 2 * 1022 (double) and x that is zero or
/// within [2^-1, 2^2] in magnitude.
template <class V>
AE_INLINE V scale_by_power_of_two(V x, V n) {
  using T = scalar_of<V>;
  using I = int_like<T>;
#ifdef AE_MATH_AVX512
  if constexpr (std::is_same_v<V, float>) {
    return _mm_cvtss_f32(_mm_scalef_ss(_mm_set_ss(x), _mm_set_ss(n)));
  } else if constexpr (std::is_same_v<V, double>) {
    return _mm_cvtsd_f64(_mm_scalef_sd(_mm_set_sd(x), _mm_set_sd(n)));
  } else if constexpr (!is_leaf<V>) {
    return V(scale_by_power_of_two(x.lo, n.lo), scale_by_power_of_two(x.hi, n.hi));
  } else if constexpr (std::is_same_v<V, Vec<float, 16>>) {
    return V(_mm512_maskz_scalef_ps(__mmask16(-1), x.v, n.v), 0);
  } else if constexpr (std::is_same_v<V, Vec<double, 8>>) {
    return V(_mm512_maskz_scalef_pd(__mmask8(-1), x.v, n.v), 0);
  } else
#endif
  {
    // Two factors, each a normal number; the first product is exact.
    constexpr int kMantissa = std::numeric_limits<T>::digits - 1;
    constexpr I kBias = std::numeric_limits<T>::max_exponent - 1;
    const auto whole = convert<I>(n);
    const auto half = whole >> 1;
    const auto first = bit_cast<T>(rebind<V, I>((half + rebind<V, I>(kBias)) << kMantissa));
    const auto second = bit_cast<T>(rebind<V, I>((whole - half + rebind<V, I>(kBias)) << kMantissa));
    return x * first * second;
  }
}

/// 2^n for an integral n for which it is a normal number.
template <class V>
AE_INLINE V power_of_two(V n) {
  using T = scalar_of<V>;
  using I = int_like<T>;
  constexpr int kMantissa = std::numeric_limits<T>::digits - 1;
  constexpr I kBias = std::numeric_limits<T>::max_exponent - 1;
  return bit_cast<T>(rebind<V, I>((convert<I>(n) + rebind<V, I>(kBias)) << kMantissa));
}

/// table[index], lane by lane.
template <class VI, int K>
AE_INLINE rebind<VI, double> look_up(const double (&table)[K], VI index) {
  if constexpr (is_scalar<VI>) {
    return table[index];
  } else {
    double lanes[lanes_of<VI>];
    for (int i = 0; i < lanes_of<VI>; ++i) lanes[i] = table[index[i]];
    return load<rebind<VI, double>>(lanes);
  }
}

/// a * b = high + low, exactly unless it over- or underflows.
template <class V>
AE_INLINE void two_product(V a, V b, V& high, V& low) {
  high = a * b;
#ifdef __FMA__
  low = fma(a, b, -high);
#else
  // Dekker's: split each factor into halves whose products are exact.
  using T = scalar_of<V>;
  const V splitter = V(T((int64_t(1) << ((std::numeric_limits<T>::digits + 1) / 2)) + 1));
  const V a_scaled = a * splitter, b_scaled = b * splitter;
  const V a_high = a_scaled - (a_scaled - a), b_high = b_scaled - (b_scaled - b);
  const V a_low = a - a_high, b_low = b - b_high;
  low = ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low;
#endif
}

/// a + b = high + low, exactly.
template <class V>
AE_INLINE void two_sum(V a, V b, V& high, V& low) {
  high = a + b;
  const V b_seen = high - a;
  low = (a - (high - b_seen)) + (b - b_seen);
}

/// c[0] + c[1] x + c[2] x^2 + … by Horner's rule.
template <class V, int K>
AE_INLINE V horner(V x, const scalar_of<V> (&c)[K]) {
  V r = V(c[K - 1]);
#pragma GCC unroll 32
  for (int i = K - 2; i >= 0; --i) r = fma(r, x, V(c[i]));
  return r;
}

template <class T>
inline constexpr T kInf = std::numeric_limits<T>::infinity();
template <class T>
inline constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();

}  // namespace ae::math
