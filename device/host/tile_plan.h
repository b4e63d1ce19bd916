// How one kernel runs over one index space: layout of the tiles, accesses of the operands, parallelism. Made once when
// a program is compiled; nothing in it changes afterwards.
#pragma once

#include <memory>
#include <vector>

#include "device/host/access.h"
#include "device/host/tile_code.h"

namespace ae::device::host {

enum class Layout : uint8_t {
  flat,     // no reduced dimensions: a tile is a row of kept points
  rows,     // a tile's row is a kept point, its columns are reduced points
  columns,  // a tile's row is a reduced point, its columns are kept points
};

/// For tests: forces choices that never change results.
struct TileOptions {
  int64_t tile_elements = 0;  // about how many elements a tile has; 0: chosen
  int layout = -1;            // of reductions: 0 rows, 1 columns; -1: chosen
  int splits = 0;             // pieces that a separable reduction is cut into; 0: chosen
};

struct TilePlan {
  std::shared_ptr<const TileCode> code;
  Layout layout = Layout::flat;
  int64_t kept = 1, reduced = 1;  // points
  int64_t tile_kept = 1;          // kept points of a tile
  int64_t block_reduced = 1;      // reduced points that are run through at a time
  int64_t chunks = 1;             // canonical chunks of a separable reduction
  int64_t splits = 1, chunks_per_split = 1;
  int64_t tiles = 0;      // tasks that can run side by side: kept tiles times splits
  bool by_phase = false;  // separable reduction
  double tile_cost = 0;   // time of a tile in units of an addition's

  std::vector<Access> accesses;       // of loads, stores and iotas, and first an empty one: slot -1 and size 0
  std::vector<uint16_t> access_of;    // per instruction: position in `accesses`
  std::vector<uint8_t> direct;        // per instruction, loads and stores: may work on memory without a copy
  std::vector<uint8_t> only_reduced;  // per instruction: loads that reductions alone read, in their memory if possible
  std::vector<uint16_t> direct_stores;  // instructions
  std::vector<int32_t> scalars;         // positions in the program's scalars

  // Scratch memory of a thread: buffers, accumulators and partial results of reductions; bytes.
  std::vector<int64_t> buffer_offsets;
  std::vector<int64_t> accumulator_offsets, partial_offsets;
  int64_t scratch_bytes = 0;
  /// Partial results of all tiles, when the reduction is split over tasks; offsets into memory of the launch.
  std::vector<int64_t> shared_offsets;
  int64_t shared_bytes = 0;

  const Access& access(size_t instr) const { return accesses[access_of[instr]]; }
  int64_t kept_tiles() const { return splits > 1 ? tiles / splits : tiles; }
};

TilePlan plan_tiles(const Segment& segment, const TileOptions& options = {});

}  // namespace ae::device::host
