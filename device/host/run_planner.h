// Finds the runs of a tile code, has them compiled, and makes the code that uses them.
#pragma once

#include <memory>

#include "device/host/native/compiler_process.h"
#include "device/host/tile_code.h"

namespace ae::device::host {

/// The native version of a code, for blocks whose rows are kept points (`rows`) or not. Instructions are put in an
/// order in which those that can be compiled stand together; the others keep their tile kernels. Null when nothing is
/// gained. Throws std::runtime_error when the compiler fails.
std::shared_ptr<const TileCode> compile_runs(const TileCode& code, bool rows, native::CompilerProcess& compiler);

}  // namespace ae::device::host
