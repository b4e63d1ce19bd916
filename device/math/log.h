// log, log2, log10, log1p.
//
// x = 2^k (1 + f) with 1 + f within [sqrt(1/2), sqrt(2)); log(1 + f) = f - f^2 / 2 + f^3 P(f).
#pragma once

#include "device/math/vec.h"

namespace ae::math {

template <class T>
struct LogConstants;
template <>
struct LogConstants<float> {
  static constexpr float kLn2High = 0x1.62e4p-1f;  // few bits: k * kLn2High is exact
  static constexpr float kLn2Low = 0x1.7f7d1cp-20f;
  static constexpr float kLog2High = 0x1.344p-2f;  // log10(2)
  static constexpr float kLog2Low = 0x1.3509f8p-18f;
  static constexpr float kLog2E = 0x1.715476p+0f;
  static constexpr float kLog2ELow = 0x1.4ae0cp-26f;
  static constexpr float kLog10E = 0x1.bcb7b2p-2f;
  static constexpr float kLog10ELow = -0x1.5b235ep-27f;
  static constexpr int32_t kSqrtHalfBits = 0x3f3504f3;
  // error 2^-29.9
  static constexpr float kP[] = {0x1.555548p-2f,  -0x1.000014p-2f, 0x1.99a458p-3f,  -0x1.555a66p-3f, 0x1.233c82p-3f,
                                 -0x1.fc0cb2p-4f, 0x1.e67b3ap-4f,  -0x1.e0187ap-4f, 0x1.18ae7ep-4f};
};

template <>
struct LogConstants<double> {
  static constexpr double kLn2High = 0x1.62e42fefa38p-1;
  static constexpr double kLn2Low = 0x1.ef35793c7673p-45;
  static constexpr double kLog2High = 0x1.34413509f78p-2;
  static constexpr double kLog2Low = 0x1.fef311f12b358p-46;
  static constexpr double kLog2E = 0x1.71547652b82fep+0;
  static constexpr double kLog2ELow = 0x1.777d0ffda0d24p-56;
  static constexpr double kLog10E = 0x1.bcb7b1526e50ep-2;
  static constexpr double kLog10ELow = 0x1.95355baaafad3p-57;
  static constexpr int64_t kSqrtHalfBits = 0x3fe6a09e667f3bcd;
  // error 2^-60.9
  static constexpr double kP[] = {
      0x1.5555555555558p-2,  -0x1.0000000000043p-2, 0x1.9999999998fd0p-3,  -0x1.555555554acdcp-3, 0x1.24924924e9d1bp-3,
      -0x1.000000050c7e7p-3, 0x1.c71c719c53b4dp-4,  -0x1.99999715b0044p-4, 0x1.745d1c1181b65p-4,  -0x1.5555b2e4e92a5p-4,
      0x1.3b13901bf4093p-4,  -0x1.248a044898c46p-4, 0x1.110a8119eb78bp-4,  -0x1.00707eaa7a5acp-4, 0x1.e36f7b2b37f0dp-5,
      -0x1.c090310d63c07p-5, 0x1.9c438ba5f9a57p-5,  -0x1.aaeca8e4f7945p-5, 0x1.eff93dea45534p-5,  -0x1.b6baa33c004e6p-5,
      0x1.68b60400f113dp-6};
};

/// k and f of a positive x, subnormal or not.
template <class V>
AE_INLINE void log_parts(V x, V& k, V& f) {
  using T = scalar_of<V>;
  using I = int_like<T>;
  using U = std::make_unsigned_t<I>;
  using VI = rebind<V, I>;
  using VU = rebind<V, U>;
  constexpr int kMantissa = std::numeric_limits<T>::digits - 1;
  constexpr I kMask = (I(1) << kMantissa) - 1;
  const mask_of<V> tiny = x < V(std::numeric_limits<T>::min());
  // Unsigned, for the difference may wrap where x is negative.
  const VU bits = bit_cast<U>(select(tiny, V(x * V(T(I(1) << kMantissa))), x));
  const VI above = bit_cast<I>(VU(bits - VU(U(LogConstants<T>::kSqrtHalfBits))));
  k = convert<T>(VI(above >> kMantissa)) - select(tiny, V(T(kMantissa)), V(T(0)));
  f = bit_cast<T>(VI((above & VI(kMask)) + VI(LogConstants<T>::kSqrtHalfBits))) - V(T(1));
}

/// log(1 + f) - f.
template <class V>
AE_INLINE V log_tail(V f) {
  using T = scalar_of<V>;
  const V square = f * f;
  return fma(square, V(T(-0.5)), square * (f * horner(f, LogConstants<T>::kP)));
}

/// The logarithm's special values: 0 gives -inf, negative numbers NaN, infinity and NaN themselves.
template <class V>
AE_INLINE V log_special(V x, V result) {
  using T = scalar_of<V>;
  result = select(x < V(kInf<T>), result, x);
  return select(x > V(T(0)), result, select(x == V(T(0)), V(-kInf<T>), V(kNaN<T>)));
}

template <class V>
AE_INLINE V log(V x) {
  using C = LogConstants<scalar_of<V>>;
  V k, f;
  log_parts(x, k, f);
  const V tail = fma(k, V(C::kLn2Low), log_tail(f));
  return log_special(x, fma(k, V(C::kLn2High), f + tail));
}

/// log(1 + f) * (scale + scale_low), to about one unit in the last place.
template <class V>
AE_INLINE V scaled_log(V f, scalar_of<V> scale, scalar_of<V> scale_low) {
  const V tail = log_tail(f);
  const V sum = f + tail;
  const V rest = (f - sum) + tail;
  return fma(sum, V(scale), fma(sum, V(scale_low), rest * V(scale)));
}

template <class V>
AE_INLINE V log2(V x) {
  using C = LogConstants<scalar_of<V>>;
  V k, f;
  log_parts(x, k, f);
  return log_special(x, V(k + scaled_log(f, C::kLog2E, C::kLog2ELow)));
}

template <class V>
AE_INLINE V log10(V x) {
  using C = LogConstants<scalar_of<V>>;
  V k, f;
  log_parts(x, k, f);
  const V rest = fma(k, V(C::kLog2Low), scaled_log(f, C::kLog10E, C::kLog10ELow));
  return log_special(x, fma(k, V(C::kLog2High), rest));
}

/// 1 + x = 2^k (1 + f) with f = 2^-k x + (2^-k - 1): exact where k = 0, and rounded once elsewhere.
template <class V>
AE_INLINE V log1p(V x) {
  using T = scalar_of<V>;
  using C = LogConstants<T>;
  const V one = V(T(1));
  const V sum = one + x;
  V k, f;
  log_parts(sum, k, f);
  const mask_of<V> in_reach = k < V(T(std::numeric_limits<T>::digits + 2));
  const V scale = power_of_two(V(select(in_reach, V(T(0)) - k, V(T(0)))));
  f = select(in_reach, fma(scale, x, scale - one), f);
  const V tail = fma(k, V(C::kLn2Low), log_tail(f));
  const V result = log_special(sum, fma(k, V(C::kLn2High), f + tail));
  return select(x == V(T(0)), x, result);
}

}  // namespace ae::math
