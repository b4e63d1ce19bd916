// Philox 4x32-10, the counter-based random number generator of Salmon, Moraes, Dror and Shaw, "Parallel random numbers:
// as easy as 1, 2, 3" (SC 2011).
#pragma once

#include "device/math/vec.h"

namespace ae::math {

/// The 64-bit products of 32-bit lanes, as their halves.
template <class U>
AE_INLINE void wide_product(U a, uint32_t factor, U& high, U& low) {
#ifdef AE_MATH_AVX512
  if constexpr (std::is_same_v<U, Vec<uint32_t, 16>>) {
    const __m512i x = (__m512i)a.v, f = _mm512_set1_epi64(factor);
    const __m512i even = _mm512_maskz_mul_epu32(__mmask8(-1), x, f);
    const __m512i odd = _mm512_maskz_mul_epu32(__mmask8(-1), _mm512_maskz_srli_epi64(__mmask8(-1), x, 32), f);
    const __m512i even_high = _mm512_maskz_srli_epi64(__mmask8(-1), even, 32);
    const __m512i odd_low = _mm512_maskz_slli_epi64(__mmask8(-1), odd, 32);
    high = U((typename U::Raw)_mm512_mask_blend_epi32(0xaaaa, even_high, odd), 0);
    low = U((typename U::Raw)_mm512_mask_blend_epi32(0xaaaa, even, odd_low), 0);
  } else
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<U, Vec<uint32_t, 16>>) {
    wide_product(a.lo, factor, high.lo, low.lo);
    wide_product(a.hi, factor, high.hi, low.hi);
  } else if constexpr (std::is_same_v<U, Vec<uint32_t, 8>>) {
    const __m256i x = (__m256i)a.v, f = _mm256_set1_epi64x(factor);
    const __m256i even = _mm256_mul_epu32(x, f), odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), f);
    high = U((typename U::Raw)_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa), 0);
    low = U((typename U::Raw)_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa), 0);
  } else
#endif
  {
    using W = rebind<U, uint64_t>;
    const W product = convert_lanes<uint64_t>(a) * W(uint64_t(factor));
    high = convert_lanes<uint32_t>(W(product >> 32));
    low = convert_lanes<uint32_t>(product);
  }
}

/// Four random words of each lane's counter and key.
template <class U>
AE_INLINE void philox(U c0, U c1, U c2, U c3, U k0, U k1, U (&out)[4]) {
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    U high0, low0, high1, low1;
    wide_product(c0, 0xd2511f53u, high0, low0);
    wide_product(c2, 0xcd9e8d57u, high1, low1);
    c0 = high1 ^ c1 ^ k0;
    c1 = low1;
    c2 = high0 ^ c3 ^ k1;
    c3 = low0;
    k0 = k0 + U(0x9e3779b9u);
    k1 = k1 + U(0xbb67ae85u);
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}

}  // namespace ae::math
