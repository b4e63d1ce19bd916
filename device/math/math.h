// Mathematical functions, each a template over a number type of device/math/vec.h.
//
// Largest errors found with FMA, in units in the last place. Floats: at least every 101st of all (all for exp, tanh,
// erf) against glibc's doubles; doubles: a million random numbers against libquadmath; functions of two arguments with
// eight or ten second ones. tests/python/test_math_accuracy.py measures again, with mpmath. Without FMA hardware errors
// are at most 1.8 (of the floats that should be within 1, erf has 1.10 and sigmoid 1.24 there).
//
// (function, float, double)
//   exp     0.89 0.85   exp2    0.80 0.87   expm1   1.47 1.56   log     0.84 0.78
//   log2    0.87 0.88   log10   0.86 0.93   log1p   1.39 1.33   sin     1.52 0.78
//   cos     1.53 0.75   tan     1.47 0.92   asin    0.68 0.60   acos    0.64 0.59
//   atan    1.50 1.46   atan2   1.50 1.31   sinh    1.61 1.61   cosh    1.31 1.25
//   tanh    0.96 0.94   erf     0.99 0.91   erfc    0.50 1.12   sigmoid 0.77 0.74
//   pow     0.50 0.89   hypot   0.50 0.50
#pragma once

#include "device/math/atan.h"
#include "device/math/erf.h"
#include "device/math/exp.h"
#include "device/math/half.h"
#include "device/math/hypot.h"
#include "device/math/log.h"
#include "device/math/philox.h"
#include "device/math/pow.h"
#include "device/math/sigmoid.h"
#include "device/math/tanh.h"
#include "device/math/trig.h"
#include "device/math/vec.h"
