// Conversions between float and the half types, which are held as their bits in uint16_t lanes. To a half: to nearest,
// ties to even, a NaN to a quiet NaN.
#pragma once

#include "device/math/vec.h"

namespace ae::math {

template <class V>
AE_INLINE rebind<V, uint16_t> to_bf16(V x) {
  using U = rebind<V, uint32_t>;
  const U bits = bit_cast<uint32_t>(x);
  const U rounded = (bits + ((bits >> 16) & U(1u)) + U(0x7fffu)) >> 16;
  const auto nan = is_nan(x);
  return convert_lanes<uint16_t>(U(select(nan, U(0x7fc0u), rounded)));
}

template <class H>
AE_INLINE rebind<H, float> from_bf16(H bits) {
  using U = rebind<H, uint32_t>;
  return bit_cast<float>(U(convert_lanes<uint32_t>(bits) << 16));
}

/// With integer and float arithmetic alone, for machines without F16C.
template <class V>
AE_INLINE rebind<V, uint16_t> to_f16_portable(V x) {
  using U = rebind<V, uint32_t>;
  const U bits = bit_cast<uint32_t>(x);
  const U sign = (bits >> 16) & U(0x8000u);
  const U magnitude = bits & U(0x7fffffffu);
  // Normal results: round at bit 13 and move the exponent. A carry out of the mantissa is right, up to infinity.
  const U normal = (magnitude - U(0x38000000u) + U(0xfffu) + ((magnitude >> 13) & U(1u))) >> 13;
  // Below 2^-14: adding 1/2 puts the result's last bit (2^-24) at the sum's, which rounds it.
  const U subnormal = bit_cast<uint32_t>(V(bit_cast<float>(magnitude) + V(0.5f))) - U(0x3f000000u);
  const auto below = bit_cast<float>(magnitude) < V(0x1p-14f);
  const auto beyond = mask_not(bit_cast<float>(magnitude) < V(0x1p16f));
  const U finite = select(below, subnormal, normal);
  const U special = select(is_nan(x), U(0x7e00u), U(0x7c00u));
  return convert_lanes<uint16_t>(U(sign | select(beyond, special, finite)));
}

template <class H>
AE_INLINE rebind<H, float> from_f16_portable(H half) {
  using V = rebind<H, float>;
  using U = rebind<H, uint32_t>;
  const U bits = convert_lanes<uint32_t>(half);
  const U sign = (bits & U(0x8000u)) << 16;
  const U magnitude = bits & U(0x7fffu);
  const V subnormal = convert<float>(bit_cast<int32_t>(magnitude)) * V(0x1p-24f);
  const U normal = (magnitude << 13) + U(0x38000000u);
  const U special = (magnitude << 13) | U(0x7f800000u);
  const U chosen = select(bit_cast<int32_t>(magnitude) >= rebind<H, int32_t>(0x7c00), special, normal);
  const U result =
      select(bit_cast<int32_t>(magnitude) < rebind<H, int32_t>(0x400), bit_cast<uint32_t>(subnormal), chosen);
  return bit_cast<float>(U(sign | result));
}

template <class V>
AE_INLINE rebind<V, uint16_t> to_f16(V x) {
#ifdef __F16C__
  if constexpr (is_scalar<V>) {
    return static_cast<uint16_t>(_mm_cvtsi128_si32(_mm_cvtps_ph(_mm_set_ss(x), 0)));
  }
#ifdef AE_MATH_AVX512
  if constexpr (std::is_same_v<V, Vec<float, 16>>) {
    return Vec<uint16_t, 16>((Vec<uint16_t, 16>::Raw)_mm512_maskz_cvtps_ph(__mmask16(-1), x.v, 0), 0);
  }
#endif
  if constexpr (std::is_same_v<V, Vec<float, 8>>) {
    return Vec<uint16_t, 8>((Vec<uint16_t, 8>::Raw)_mm256_cvtps_ph(x.v, 0), 0);
  } else if constexpr (!is_scalar<V> && !is_leaf<V>) {
    return join(to_f16(low_half(x)), to_f16(high_half(x)));
  } else
#endif
  {
    return to_f16_portable(x);
  }
}

template <class H>
AE_INLINE rebind<H, float> from_f16(H half) {
#ifdef __F16C__
  if constexpr (is_scalar<H>) {
    return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(half)));
  }
#ifdef AE_MATH_AVX512
  if constexpr (std::is_same_v<H, Vec<uint16_t, 16>>) {
    return Vec<float, 16>(_mm512_maskz_cvtph_ps(__mmask16(-1), (__m256i)half.v), 0);
  }
#endif
  if constexpr (std::is_same_v<H, Vec<uint16_t, 8>>) {
    return Vec<float, 8>(_mm256_cvtph_ps((__m128i)half.v), 0);
  } else if constexpr (!is_scalar<H> && lanes_of<H> > 8) {
    return join(from_f16(low_half(half)), from_f16(high_half(half)));
  } else
#endif
  {
    return from_f16_portable(half);
  }
}

}  // namespace ae::math
