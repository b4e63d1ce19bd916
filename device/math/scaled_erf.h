// erfcx(x) = e^(x^2) erfc(x), and log_ndtr, the logarithm of the normal distribution function; floats in double.
#pragma once

#include "device/math/erf.h"
#include "device/math/log.h"

namespace ae::math {

/// For x >= 1/2.
template <class D>
AE_INLINE D erfcx_large(D x) {
  const D bounded = min_or_second(D(28.0), x);
  const D u = (bounded - D(2.5)) / (bounded + D(2.5));
  const D slope = u * horner(u, ErfConstants<double>::kScaledErfcRest);
  const D near = (D(ErfConstants<double>::kScaledErfcFirst) + slope) / fma(D(2.0), bounded, D(1.0));
  // The asymptotic series; in 1 / x^2.
  static constexpr double kSeries[] = {1.0, -0.5, 0.75, -1.875, 6.5625, -29.53125, 162.421875, -1055.7421875};
  const D inverse = D(1.0) / x;
  const D far = D(0x1.20dd750429b6dp-1) * inverse * horner(D(inverse * inverse), kSeries);  // 1 / sqrt(pi)
  return select(x < D(28.0), near, select(x == x, far, x));
}

/// e^(x^2), with what the square's last rounding loses.
template <class D>
AE_INLINE D exp_of_square(D x) {
  D square, square_low;
  two_product(x, x, square, square_low);
  const D power = exp(square);
  return select(square < D(700.0), fma(power, square_low, power), power);
}

template <class D>
AE_INLINE D erfcx_of_double(D x) {
  const D magnitude = abs(x);
  const D large = erfcx_large(max_or_second(D(0.5), magnitude));
  const D power = exp_of_square(x);
  const D small = power * (D(1.0) - erf_small(x));
  const D by_sign = select(x < D(0.0), D(power + power - large), large);
  return select(magnitude < D(0.5), small, by_sign);
}

template <class V>
AE_INLINE V erfcx(V number) {
  using D = rebind<V, double>;
  return convert<scalar_of<V>>(D(erfcx_of_double(D(convert<double>(number)))));
}

template <class V>
AE_INLINE V log_ndtr(V number) {
  using D = rebind<V, double>;
  const D t = convert<double>(number) * D(0x1.6a09e667f3bcdp-1);  // sqrt(1/2)
  const D below = log(D(D(0.5) * erfcx_large(max_or_second(D(0.5), D(-t))))) - t * t;
  const D above = log1p(D(D(-0.5) * erfc(t)));
  return convert<scalar_of<V>>(D(select(t < D(-1.0), below, above)));
}

}  // namespace ae::math
