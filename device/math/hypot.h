// hypot: sqrt(x^2 + y^2) without overflow in between; infinite if either is, even beside a NaN.
#pragma once

#include "device/math/vec.h"

namespace ae::math {

/// sqrt(a^2 + b^2) for doubles whose squares neither over- nor underflow: the root of the rounded sum, corrected by
/// what rounding lost.
template <class D>
AE_INLINE D root_of_squares(D a, D b) {
  D a_square, a_low, b_square, b_low, sum, sum_low;
  two_product(a, a, a_square, a_low);
  two_product(b, b, b_square, b_low);
  two_sum(a_square, b_square, sum, sum_low);
  const D root = sqrt(sum);
  D root_square, root_low;
  two_product(root, root, root_square, root_low);
  const D rest = ((sum - root_square) - root_low) + (sum_low + (a_low + b_low));
  return select(root == D(0.0), root, root + rest / (root + root));
}

template <class V>
AE_INLINE V hypot(V x, V y) {
  using T = scalar_of<V>;
  V result;
  if constexpr (sizeof(T) == 4) {
    using D = rebind<V, double>;
    const D a = convert<double>(x), b = convert<double>(y);
    result = convert<float>(sqrt(D(a * a + b * b)));  // the squares are exact
  } else {
    const V a = abs(x), b = abs(y);
    const V larger = select(a > b, a, b);
    const V down = select(larger > V(0x1p500), V(0x1p-600), V(1.0));
    const V factor = select(larger < V(0x1p-400), V(0x1p600), down);
    result = root_of_squares(V(a * factor), V(b * factor)) / factor;
  }
  return select(is_inf(x) | is_inf(y), V(kInf<T>), result);
}

}  // namespace ae::math
