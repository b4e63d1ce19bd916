// Random programs: views that overlap, in-place writes, reductions, library operators, buffers that nobody sees.
#pragma once

#include <random>

#include "tests/cpp/support/program.h"

namespace ae::fusion::testing {

/// Everything follows from the seed.
Program random_program(uint32_t seed);

/// Random places to cut a program.
std::vector<bool> random_cuts(const Program& program, uint32_t seed);

}  // namespace ae::fusion::testing
