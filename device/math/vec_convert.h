// Conversions between lane types.
#pragma once

#include "device/math/vec_type.h"

namespace ae::math {

/// The machine's own conversion, lane by lane.
template <class To, class V>
AE_INLINE rebind<V, To> convert_lanes(V x) {
  using R = rebind<V, To>;
  if constexpr (std::is_same_v<To, scalar_of<V>>) {
    return x;
  } else if constexpr (is_scalar<V>) {
    return static_cast<To>(x);
#ifdef AE_MATH_AVX512  // g++ 12 converts between registers of different sizes in pieces
  } else if constexpr (std::is_same_v<V, Vec<float, 8>> && std::is_same_v<To, double>) {
    return R(_mm512_maskz_cvtps_pd(__mmask8(-1), x.v), 0);
  } else if constexpr (std::is_same_v<V, Vec<double, 8>> && std::is_same_v<To, float>) {
    return R(_mm512_maskz_cvtpd_ps(__mmask8(-1), x.v), 0);
  } else if constexpr (std::is_same_v<V, Vec<float, 8>> && std::is_same_v<To, int64_t>) {
    return R((typename R::Raw)_mm512_maskz_cvttps_epi64(__mmask8(-1), x.v), 0);
  } else if constexpr (std::is_same_v<V, Vec<int64_t, 8>> && std::is_same_v<To, float>) {
    return R(_mm512_maskz_cvtepi64_ps(__mmask8(-1), (__m512i)x.v), 0);
  } else if constexpr (std::is_same_v<V, Vec<double, 8>> && std::is_same_v<To, int32_t>) {
    return R((typename R::Raw)_mm512_maskz_cvttpd_epi32(__mmask8(-1), x.v), 0);
  } else if constexpr (std::is_same_v<V, Vec<int32_t, 8>> && std::is_same_v<To, double>) {
    return R(_mm512_maskz_cvtepi32_pd(__mmask8(-1), (__m256i)x.v), 0);
  } else if constexpr (std::is_same_v<V, Vec<int32_t, 8>> && std::is_same_v<To, int64_t>) {
    return R((typename R::Raw)_mm512_maskz_cvtepi32_epi64(__mmask8(-1), (__m256i)x.v), 0);
#endif
  } else if constexpr (is_leaf<V> && is_leaf<R>) {
    return R(__builtin_convertvector(x.v, typename R::Raw), 0);
  } else {
    return join(convert_lanes<To>(low_half(x)), convert_lanes<To>(high_half(x)));
  }
}

/// C++'s conversion of each lane. A float that does not fit the integer gives what x86-64 gives without AVX-512:
/// int32 and int64 their lowest value, narrower types and uint32 the low bits of the next wider conversion.
template <class To, class V>
AE_INLINE rebind<V, To> convert(V x) {
  using From = scalar_of<V>;
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if constexpr (sizeof(To) < 4) {
      return convert_lanes<To>(convert<int32_t>(x));
    } else if constexpr (std::is_same_v<To, uint32_t>) {
      return convert_lanes<To>(convert<int64_t>(x));
    } else if constexpr (sizeof(To) == 8 && std::is_unsigned_v<To>) {
      const V limit = V(From(9223372036854775808.0));
      const auto small = convert<int64_t>(x);
      const auto large = convert<int64_t>(x - limit) ^ rebind<V, int64_t>(INT64_MIN);
      if constexpr (is_scalar<V>) {
        return convert_lanes<To>(x < limit ? small : large);
      } else {
        return convert_lanes<To>(select(convert_lanes<int64_t>(x < limit), small, large));
      }
    } else if constexpr (is_scalar<V>) {
      // Not static_cast: the compiler may assume that it fits. Hidden from it, because g++ folds the instruction of a
      // constant that does not fit to another value than the instruction gives.
#if defined(__x86_64__)
      asm("" : "+x"(x));
      if constexpr (sizeof(From) == 4) {
        return sizeof(To) == 4 ? To(_mm_cvttss_si32(_mm_set_ss(x))) : To(_mm_cvttss_si64(_mm_set_ss(x)));
      } else {
        return sizeof(To) == 4 ? To(_mm_cvttsd_si32(_mm_set_sd(x))) : To(_mm_cvttsd_si64(_mm_set_sd(x)));
      }
#else
      return x >= -From(To(1) << (sizeof(To) * 8 - 2)) * 2 && x < From(To(1) << (sizeof(To) * 8 - 2)) * 2
                 ? static_cast<To>(x)
                 : std::numeric_limits<To>::lowest();
#endif
    } else {
      return convert_lanes<To>(x);
    }
  } else {
    return convert_lanes<To>(x);
  }
}

}  // namespace ae::math
