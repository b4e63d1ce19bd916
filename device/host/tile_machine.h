// Runs tile programs: interprets a program's instructions tile by tile.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/host/tile_plan.h"

namespace ae::device::host {

/// Runs tiles [first, last) of a plan on the calling thread. `addresses[slot]` is the first byte of a slot's block;
/// `scalars` are the program's; `shared` is memory of plan.shared_bytes that all tasks of the launch share.
void run_tiles(const TilePlan& plan, int64_t first, int64_t last, void* const* addresses, const uint64_t* scalars,
               std::byte* shared);

/// After all tiles of a plan with splits: puts the pieces' results together.
void finish_tiles(const TilePlan& plan, void* const* addresses, const uint64_t* scalars, std::byte* shared);

}  // namespace ae::device::host
