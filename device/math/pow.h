// pow.
#pragma once

#include "device/math/exp.h"
#include "device/math/log.h"

namespace ae::math {

/// x^y for x >= 0 in float, in double arithmetic of about 34 bits: 2^(y log2 x). Not for the cases that `pow` treats.
template <class D>
AE_INLINE D pow_of_float(D x, D y) {
  // log2(1 + f) / f, error 2^-35.8
  static constexpr double kLog2[] = {
      0x1.71547652a1eb2p+0,  -0x1.715476565c909p-1, 0x1.ec709ebbddd27p-2,  -0x1.71547097532f0p-2, 0x1.277651df7dc95p-2,
      -0x1.ec72b59479aaap-3, 0x1.a63f4bac93dcfp-3,  -0x1.71417777ef9cdp-3, 0x1.4528baa3914e7p-3,  -0x1.252ea26105fa4p-3,
      0x1.2873786eab069p-3,  -0x1.248c8b0a4a708p-3, 0x1.3ceb117c2f17fp-4};
  // 2^r on |r| <= 1/2, error 2^-34.5
  static constexpr double kExp2[] = {0x1.ffffffffabdefp-1,  0x1.62e42ff116572p-1, 0x1.ebfbe0a4982f1p-3,
                                     0x1.c6b08aae2fc2ap-5,  0x1.3b29dc572b744p-7, 0x1.5d8a716d786dep-10,
                                     0x1.446a1265a8088p-13, 0x1.fe16acd332df4p-17};
  D k, f;
  log_parts(x, k, f);
  const D logarithm = log_special(x, D(fma(f, horner(f, kLog2), k)));
  const D power = min_or_second(D(200.0), max_or_second(D(-200.0), D(y * logarithm)));
  const D n = rint(power);
  return scale_by_power_of_two(horner(D(power - n), kExp2), n);
}

/// -log(j / 256) for j from kFirst on, as a sum of two doubles.
struct LogTable {
  static constexpr int kFirst = 180, kLast = 363;
  double high[kLast - kFirst + 1], low[kLast - kFirst + 1];

  /// In fixed point with 120 bits, by log((j + 1) / j) = 2 atanh(1 / (2 j + 1)) upwards and downwards from j = 256.
  consteval LogTable() : high{}, low{} {
    __int128 up = 0, down = 0;
    for (int j = 256; j <= kLast; ++j) {
      set(j, up);
      up += step(j);
    }
    for (int j = 256; j >= kFirst; --j) {
      set(j, down);
      down -= step(j - 1);
    }
  }

 private:
  static constexpr __int128 step(int j) {
    const __int128 d = 2 * j + 1;
    __int128 power = (__int128(1) << 120) / d, sum = 0;
    for (int i = 1; power > 0; i += 2, power /= d * d) sum += power / i;
    return 2 * sum;
  }
  constexpr void set(int j, __int128 logarithm) {
    const double head = static_cast<double>(-logarithm);
    high[j - kFirst] = head * 0x1p-120;
    low[j - kFirst] = static_cast<double>(-logarithm - static_cast<__int128>(head)) * 0x1p-120;
  }
};
inline constexpr LogTable kLogTable;

/// log(x) of a positive finite x as high + low, to about 70 bits: 2^k (1 + g) = x, j = 256 / (1 + g) rounded,
/// log(x) = k ln 2 - log(j / 256) + log(1 + f) with f = (1 + g) j / 256 - 1 exact and |f| < 2^-8.
template <class D>
AE_INLINE void precise_log(D x, D& high, D& low) {
  using C = LogConstants<double>;
  D k, g;
  log_parts(x, k, g);
  const D m = g + D(1.0);  // exact: g came from m
  const D j = rint(D(256.0) / m);
  const auto index = convert<int64_t>(j) - rebind<D, int64_t>(LogTable::kFirst);

  D product, product_low;
  two_product(m, D(j * D(0x1p-8)), product, product_low);
  const D f = (product - D(1.0)) + product_low;
  D square, square_low;
  two_product(f, D(f * D(-0.5)), square, square_low);
  // f^3 / 3 - f^4 / 4 …: Taylor's series is enough up to 2^-8.
  static constexpr double kSeries[] = {1.0 / 3, -1.0 / 4, 1.0 / 5, -1.0 / 6, 1.0 / 7, -1.0 / 8};
  const D cube = f * f * f * horner(f, kSeries);

  D sum, lost1, lost2, lost3;
  two_sum(D(k * D(C::kLn2High)), look_up(kLogTable.high, index), sum, lost1);
  two_sum(sum, f, sum, lost2);
  two_sum(sum, square, sum, lost3);
  const D rest = fma(k, D(C::kLn2Low), look_up(kLogTable.low, index)) + (square_low + cube);
  const D tail = (lost1 + lost2) + (lost3 + rest);
  high = sum + tail;
  low = (sum - high) + tail;
}

/// x^y for x >= 0 in double. Not for the cases that `pow` treats.
template <class D>
AE_INLINE D pow_of_double(D x, D y) {
  D high, low;
  precise_log(x, high, low);
  const mask_of<D> ordinary = (x > D(0.0)) & (x < D(kInf<double>));
  high = log_special(x, high);
  low = select(ordinary, low, D(0.0));
  // An exponent beyond 2^900 leads to 0, 1 or infinity as 2^900 does, without an overflow in the exact product.
  y = min_or_second(D(0x1p900), max_or_second(D(-0x1p900), y));
  D power, power_low;
  two_product(y, high, power, power_low);
  power_low = select(abs(power) < D(800.0), D(power_low + y * low), D(0.0));
  D n, r, r_low;
  exp_parts(clamp_for_exp(power), n, r, r_low);
  return scale_by_power_of_two(D(D(1.0) + (r + fma(power_low, D(1.0) + r, r_low))), n);
}

template <class V>
AE_INLINE V pow(V x, V y) {
  using T = scalar_of<V>;
  const V zero = V(T(0)), one = V(T(1));
  const V magnitude = abs(x);
  V result;
  if constexpr (sizeof(T) == 4) {
    result = convert<float>(pow_of_float(convert<double>(magnitude), convert<double>(y)));
  } else {
    result = pow_of_double(magnitude, y);
  }
  // A negative base (also -0) needs an integral exponent; an odd one gives the result its sign.
  const V half = y * V(T(0.5));
  const mask_of<V> integral = rint(y) == y;
  const mask_of<V> odd = integral & (rint(half) != half);
  result = select(odd, copysign(result, x), result);
  const mask_of<V> invalid = (x < zero) & (x > V(-kInf<T>)) & mask_not(integral);
  result = select(invalid, V(kNaN<T>), result);
  // 1 to any power, and -1 to an infinite one, is 1; so is anything to the power of 0.
  const mask_of<V> to_one = (x == one) | (y == zero) | ((x == V(T(-1))) & is_inf(y));
  return select(to_one, one, result);
}

}  // namespace ae::math
