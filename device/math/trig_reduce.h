// Reduction of angles to [-pi/4, pi/4], always in double.
#pragma once

#include "device/math/vec.h"

namespace ae::math {

/// x = q pi/2 + r + r_low. Of a q beyond 2^20 only the value modulo 4 is given.
template <class D>
struct ReducedAngle {
  D q, r, r_low;
};

inline constexpr double kMiddleAngle = 0x1p20;

inline constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
inline constexpr double kHalfPiHigh = 0x1.921fb544p+0;     // 33 bits
inline constexpr double kHalfPiMiddle = 0x1.0b4611a6p-34;  // the next 33
inline constexpr double kHalfPiLow = 0x1.3198a2e037073p-69;

/// For finite |x| > kMiddleAngle. x is an integer of 53 bits times 2^s. Of 2/pi the bits above weight 2^(1-s) give
/// multiples of 4 and are left out; the next 192 bits times the integer give q in the two highest bits and r's fraction
/// of pi/2 below them, with an error of at most 2^-137.
[[gnu::noinline, gnu::cold]] inline ReducedAngle<double> reduce_huge(double x) {
  // 2/pi, behind 64 zero bits.
  static constexpr uint64_t kBits[] = {0x0000000000000000, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041,
                                       0xfe5163abdebbc561, 0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e,
                                       0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b,
                                       0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
                                       0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab,
                                       0xf0cfbc209af4361d};
  using U128 = unsigned __int128;
  const uint64_t bits = bit_cast<uint64_t>(x);
  const int scale = static_cast<int>(bits >> 52 & 0x7ff) - 1075;
  const uint64_t integer = (bits & 0xfffffffffffff) | 0x10000000000000;

  const int start = scale - 2 + 64;
  const int word = start / 64, shift = start % 64;
  const auto window = [&](int i) {
    const uint64_t high = kBits[word + i] << shift;
    return shift == 0 ? high : high | kBits[word + i + 1] >> (64 - shift);
  };
  const U128 low = U128(integer) * window(2);
  const U128 middle = U128(integer) * window(1) + static_cast<uint64_t>(low >> 64);
  const uint64_t high = integer * window(0) + static_cast<uint64_t>(middle >> 64);

  // Fraction of a quarter turn as 128 bits, as a signed number in [-1/2, 1/2).
  const uint64_t middle_word = static_cast<uint64_t>(middle), low_word = static_cast<uint64_t>(low);
  U128 fraction = U128(high << 2 | middle_word >> 62) << 64 | (middle_word << 2 | low_word >> 62);
  uint64_t below = low_word << 2;
  uint64_t quarter = high >> 62;
  const bool negative = fraction >> 127;
  if (negative) {
    quarter += 1;
    below = -below;
    fraction = ~fraction + (below == 0);
  }
  // Normalise, so that a fraction near zero keeps its bits.
  int exponent = -128;
  while (fraction >> 127 == 0 && exponent > -256) {
    fraction = fraction << 1 | below >> 63;
    below <<= 1;
    --exponent;
  }
  const uint64_t head = static_cast<uint64_t>(fraction >> 64) & ~uint64_t(0x7ff);
  const U128 tail = fraction - (U128(head) << 64);
  const double f = __builtin_ldexp(static_cast<double>(head), exponent + 64);
  const double f_low = __builtin_ldexp(static_cast<double>(tail), exponent);

  constexpr double kHalfPi = 0x1.921fb54442d18p+0, kHalfPiRest = 0x1.1a62633145c07p-54;
  const double product = f * kHalfPi;
  const double rest = __builtin_fma(f, kHalfPi, -product) + (f * kHalfPiRest + f_low * kHalfPi);
  const double r = product + rest;
  const double r_low = (product - r) + rest;
  const bool flip = negative != (x < 0);
  if (x < 0) quarter = -quarter;
  return {static_cast<double>(quarter & 3), flip ? -r : r, flip ? -r_low : r_low};
}

template <class V>
AE_INLINE ReducedAngle<rebind<V, double>> reduce(V angle) {
  using D = rebind<V, double>;
  const D x = convert<double>(angle);
  ReducedAngle<D> result;
  result.q = rint(x * D(kTwoOverPi));
  const D first = fma(result.q, D(-kHalfPiHigh), x);
  const D product = result.q * D(kHalfPiMiddle);
  const D second = first - product;
  // What the subtraction lost; the larger of its operands is not known.
  const D back = second - first;
  const D lost = (first - (second - back)) - (product + back);
  const D rest = fma(result.q, D(-kHalfPiLow), lost);
  result.r = second + rest;
  result.r_low = (second - result.r) + rest;

  const mask_of<D> huge = (abs(x) > D(kMiddleAngle)) & (abs(x) < D(kInf<double>));
  if (__builtin_expect(any(huge), 0)) {
    if constexpr (is_scalar<D>) {
      return reduce_huge(x);
    } else {
      for (int lane = 0; lane < lanes_of<D>; ++lane) {
        if (!huge[lane]) continue;
        const ReducedAngle<double> one = reduce_huge(x[lane]);
        result.q.set(lane, one.q);
        result.r.set(lane, one.r);
        result.r_low.set(lane, one.r_low);
      }
    }
  }
  return result;
}

}  // namespace ae::math
