// The functions of device/math by name, for the tests that go through all of them.
#pragma once

#include "device/math/math.h"
#include "device/math/special.h"

// X(name)
// clang-format off
#define AE_UNARY_MATH(X)                                                                      \
  X(exp) X(exp2) X(expm1) X(log) X(log2) X(log10) X(log1p) X(sin) X(cos) X(tan) X(asin)       \
  X(acos) X(atan) X(sinh) X(cosh) X(tanh) X(erf) X(erfc) X(sigmoid) X(sqrt)
#define AE_SPECIAL_MATH(X)                                                                    \
  X(asinh) X(acosh) X(atanh) X(erfinv) X(erfcx) X(lgamma) X(digamma) X(trigamma)              \
  X(i0) X(i0e) X(i1) X(i1e) X(ndtri) X(log_ndtr)
#define AE_BINARY_MATH(X) X(pow) X(atan2) X(hypot)
// clang-format on
