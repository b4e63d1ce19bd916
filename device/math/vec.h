// The number types that mathematical functions are written over (vec_type.h) and the operations that they have.
#pragma once

#include "device/math/building_blocks.h"
#include "device/math/vec_arithmetic.h"
#include "device/math/vec_convert.h"
#include "device/math/vec_type.h"
