// Kernel IR to tile program: registers are assigned by one linear scan over the values' lifetimes.
#pragma once

#include "device/tile_program.h"
#include "fusion/ir/kernel.h"

namespace ae::fusion {

/// Translates a verified kernel. Instructions are ordered so that few registers are alive at once; a value dies at its
/// last use, and its register is given to the result of that use where element size and level allow.
device::TileProgram to_tile_program(const Kernel& kernel);

}  // namespace ae::fusion
