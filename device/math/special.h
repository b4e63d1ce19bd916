// Special functions, each a template over a number type as those of math.h. Floats are computed in double and rounded
// once, so they are within 1 unit in the last place nearly everywhere; tests/python/test_math_accuracy.py has the
// bounds.
#pragma once

#include "device/math/bessel.h"
#include "device/math/gamma.h"
#include "device/math/inverse_erf.h"
#include "device/math/inverse_hyperbolic.h"
#include "device/math/scaled_erf.h"
