// For tests of the tile machine: a slow evaluation of tile programs, one element after the other, and a maker of random
// programs over random layouts.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/host/tile_plan.h"

namespace ae::device::host::testing {

/// A program with everything that it needs to run. Operand i's block is memory[i] unless shared[i] says another one.
struct TileCase {
  TileProgram program;
  Space space;
  std::vector<OperandView> views;
  std::vector<int> slots;  // per operand: index into memory, -1 for iotas
  std::vector<std::vector<std::byte>> memory;
  std::vector<DType> memory_types;
  std::vector<uint64_t> scalars;
};

/// Runs a case by the definition of the primitives; gives the memory after it.
std::vector<std::vector<std::byte>> run_slowly(const TileCase& tile_case);

/// Runs a case on the tile machine, with tile kernels or native code; tasks in the order of their numbers.
std::vector<std::vector<std::byte>> run_on_machine(const TileCase& tile_case, const TileOptions& options,
                                                   bool native = false);

/// Empty when both memories are equal, NaNs' payloads aside; else says where they differ.
std::string difference(const TileCase& tile_case, const std::vector<std::vector<std::byte>>& expected,
                       const std::vector<std::vector<std::byte>>& actual);

using Random = std::mt19937_64;

/// A space of about `points` points; with_reduction: some dimensions are reduced.
Space random_space(Random& random, int64_t points, bool with_reduction);

/// A random program over a space. `operations`: how many instructions besides loads and stores.
TileCase random_case(Random& random, const Space& space, int operations);

}  // namespace ae::device::host::testing
