// asinh, acosh, atanh, by way of log1p; floats in double.
#pragma once

#include "device/math/log.h"

namespace ae::math {

/// Beyond, adding 1 to the square is lost.
inline constexpr double kHyperbolicLarge = 0x1p28;
inline constexpr double kLn2 = 0x1.62e42fefa39efp-1;

template <class V>
AE_INLINE V asinh(V number) {
  using D = rebind<V, double>;
  const D x = convert<double>(number);
  const D magnitude = abs(x), square = magnitude * magnitude;
  const D small = log1p(D(magnitude + square / (D(1.0) + sqrt(D(D(1.0) + square)))));
  const D large = log(magnitude) + D(kLn2);
  return convert<scalar_of<V>>(D(xor_sign(D(select(magnitude < D(kHyperbolicLarge), small, large)), x)));
}

/// NaN below 1.
template <class V>
AE_INLINE V acosh(V number) {
  using D = rebind<V, double>;
  const D x = convert<double>(number);
  const D above = x - D(1.0);
  const D small = log1p(D(above + sqrt(D(above * (above + D(2.0))))));
  const D large = log(x) + D(kLn2);
  const D result = select(x < D(kHyperbolicLarge), small, large);
  return convert<scalar_of<V>>(D(select(x < D(1.0), D(kNaN<double>), result)));
}

template <class V>
AE_INLINE V atanh(V number) {
  using D = rebind<V, double>;
  const D x = convert<double>(number);
  const D magnitude = abs(x);
  const D ratio = (magnitude + magnitude) / (D(1.0) - magnitude);
  return convert<scalar_of<V>>(D(xor_sign(D(D(0.5) * log1p(ratio)), x)));
}

}  // namespace ae::math
