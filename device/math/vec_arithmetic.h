// Arithmetic that is one instruction, or nearly: FMA, roots, rounding to integers, signs, minima.
#pragma once

#include "device/math/vec_type.h"

namespace ae::math {

/// Applies a scalar function to each lane; the slow way, for machines without the instruction and for rare cases.
template <class V, class F, class... Vs>
AE_INLINE V each_lane(F f, V x, Vs... xs) {
  if constexpr (is_scalar<V>) {
    return f(x, xs...);
  } else {
    V r = x;
    for (int i = 0; i < lanes_of<V>; ++i) r.set(i, f(x[i], xs[i]...));
    return r;
  }
}

AE_INLINE float fma(float a, float b, float c) {
#ifdef __FMA__
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}
AE_INLINE double fma(double a, double b, double c) {
#ifdef __FMA__
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}
AE_INLINE float sqrt(float x) { return __builtin_sqrtf(x); }
AE_INLINE double sqrt(double x) { return __builtin_sqrt(x); }
AE_INLINE float floor(float x) { return __builtin_floorf(x); }
AE_INLINE double floor(double x) { return __builtin_floor(x); }
AE_INLINE float ceil(float x) { return __builtin_ceilf(x); }
AE_INLINE double ceil(double x) { return __builtin_ceil(x); }
AE_INLINE float trunc(float x) { return __builtin_truncf(x); }
AE_INLINE double trunc(double x) { return __builtin_trunc(x); }
/// To the nearest integer, half to even.
AE_INLINE float rint(float x) { return __builtin_rintf(x); }
AE_INLINE double rint(double x) { return __builtin_rint(x); }

#ifdef AE_MATH_AVX512
#define AE_512(expr_ps, expr_pd)                                        \
  if constexpr (sizeof(V) == 64 && std::is_same_v<scalar_of<V>, float>) \
    return V(expr_ps, 0);                                               \
  else if constexpr (sizeof(V) == 64)                                   \
    return V(expr_pd, 0);
#else
#define AE_512(expr_ps, expr_pd)
#endif
#ifdef __AVX__
#define AE_256(expr_ps, expr_pd)                                        \
  if constexpr (sizeof(V) == 32 && std::is_same_v<scalar_of<V>, float>) \
    return V(expr_ps, 0);                                               \
  else if constexpr (sizeof(V) == 32)                                   \
    return V(expr_pd, 0);
#else
#define AE_256(expr_ps, expr_pd)
#endif

template <class T, int N>
AE_INLINE Vec<T, N> fma(Vec<T, N> a, Vec<T, N> b, Vec<T, N> c) {
  using V = Vec<T, N>;
  if constexpr (!is_leaf<V>) {
    return V(fma(a.lo, b.lo, c.lo), fma(a.hi, b.hi, c.hi));
  } else {
#ifdef __FMA__
    AE_512(_mm512_fmadd_ps(a.v, b.v, c.v), _mm512_fmadd_pd(a.v, b.v, c.v))
    AE_256(_mm256_fmadd_ps(a.v, b.v, c.v), _mm256_fmadd_pd(a.v, b.v, c.v))
    return each_lane([](T x, T y, T z) { return fma(x, y, z); }, a, b, c);
#else
    return a * b + c;
#endif
  }
}

#define AE_ROUNDING(name, mode)                                      \
  template <class T, int N>                                          \
  AE_INLINE Vec<T, N> name(Vec<T, N> x) {                            \
    using V = Vec<T, N>;                                             \
    if constexpr (!is_leaf<V>) {                                     \
      return V(name(x.lo), name(x.hi));                              \
    } else {                                                         \
      AE_512(_mm512_maskz_roundscale_ps(__mmask16(-1), x.v, mode),   \
             _mm512_maskz_roundscale_pd(__mmask8(-1), x.v, mode))    \
      AE_256(_mm256_round_ps(x.v, mode), _mm256_round_pd(x.v, mode)) \
      return each_lane([](T y) { return name(y); }, x);              \
    }                                                                \
  }
AE_ROUNDING(floor, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)
AE_ROUNDING(ceil, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC)
AE_ROUNDING(trunc, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)
AE_ROUNDING(rint, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#undef AE_ROUNDING

template <class T, int N>
AE_INLINE Vec<T, N> sqrt(Vec<T, N> x) {
  using V = Vec<T, N>;
  if constexpr (!is_leaf<V>) {
    return V(sqrt(x.lo), sqrt(x.hi));
  } else {
    AE_512(_mm512_maskz_sqrt_ps(__mmask16(-1), x.v), _mm512_maskz_sqrt_pd(__mmask8(-1), x.v))
    AE_256(_mm256_sqrt_ps(x.v), _mm256_sqrt_pd(x.v))
    return each_lane([](T y) { return sqrt(y); }, x);
  }
}
#undef AE_512
#undef AE_256

template <class V>
inline constexpr auto kSignBit =
    static_cast<int_like<scalar_of<V>>>(int_like<scalar_of<V>>(1) << (sizeof(scalar_of<V>) * 8 - 1));

/// |x|, also of a NaN. For floats: the sign bit cleared; for integers: -x where x < 0 (wraps at the lowest value).
template <class V>
AE_INLINE V abs(V x) {
  using T = scalar_of<V>;
  using I = int_like<T>;
  if constexpr (std::is_floating_point_v<T>) {
    return bit_cast<T>(bit_cast<I>(x) & rebind<V, I>(static_cast<I>(~kSignBit<V>)));
  } else if constexpr (std::is_unsigned_v<T>) {
    return x;
  } else {
    const V zero = V(T(0));
    // Through unsigned lanes, where -x of the lowest value is defined.
    using U = std::make_unsigned_t<T>;
    const V negated = bit_cast<T>(rebind<V, U>(rebind<V, U>(U(0)) - bit_cast<U>(x)));
    return select(x < zero, negated, x);
  }
}

/// The bits of `magnitude` with the sign bit of `sign`.
template <class V>
AE_INLINE V copysign(V magnitude, V sign) {
  using T = scalar_of<V>;
  using I = int_like<T>;
  const auto bit = rebind<V, I>(kSignBit<V>);
  return bit_cast<T>((bit_cast<I>(magnitude) & rebind<V, I>(static_cast<I>(~kSignBit<V>))) | (bit_cast<I>(sign) & bit));
}

/// x with its sign bit flipped where `sign` has it set.
template <class V>
AE_INLINE V xor_sign(V x, V sign) {
  using T = scalar_of<V>;
  using I = int_like<T>;
  return bit_cast<T>(bit_cast<I>(x) ^ (bit_cast<I>(sign) & rebind<V, I>(kSignBit<V>)));
}

/// a < b ? a : b, so a NaN in either place gives b.
template <class V>
AE_INLINE V min_or_second(V a, std::type_identity_t<V> b) {
  return select(a < b, a, b);
}
/// a > b ? a : b, so a NaN in either place gives b.
template <class V>
AE_INLINE V max_or_second(V a, std::type_identity_t<V> b) {
  return select(a > b, a, b);
}

template <class V>
AE_INLINE mask_of<V> is_nan(V x) {
  return x != x;
}
template <class V>
AE_INLINE mask_of<V> is_inf(V x) {
  return abs(x) == V(std::numeric_limits<scalar_of<V>>::infinity());
}

}  // namespace ae::math
