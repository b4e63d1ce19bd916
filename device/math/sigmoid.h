// sigmoid: 1 / (1 + e^-x).
#pragma once

#include "device/math/exp.h"

namespace ae::math {

/// With e = e^-|x| = 2^n (1 + y): 1 / (1 + e), or e / (1 + e) for negative x. The quotient gets one Newton correction
/// that also takes in what rounding 1 + y and 1 + e lost; 2^n is applied at the end, so that results below the
/// normal numbers are rounded once.
template <class V>
AE_INLINE V sigmoid(V x) {
  using T = scalar_of<V>;
  const V one = V(T(1));
  const V magnitude = abs(x);
  V n, y, y_low;
  exp_parts(max_or_second(V(ExpConstants<T>::kLowest), V(-magnitude)), n, y, y_low);
  const mask_of<V> negative = x < V(T(0));

  const V p = one + y;
  const V p_low = (y - (p - one)) + y_low;
  const V e = scale_by_power_of_two(p, n);
  const V e_low = scale_by_power_of_two(p_low, n);
  const V d = one + e;
  const V d_low = (e - (d - one)) + e_low;

  const V top = select(negative, p, one);
  const V top_low = select(negative, p_low, V(T(0)));
  const V inverse = one / d;
  const V q = top * inverse;
  const V error = fma(-q, d, top) + (top_low - q * d_low);
  const V corrected = fma(error, inverse, q);
  return scale_by_power_of_two(corrected, select(negative, n, V(T(0))));
}

}  // namespace ae::math
