// How a rectangle of a launch's index space lies in an operand's memory.
#pragma once

#include <cstdint>

#include "device/tile_program.h"

namespace ae::device::host {

/// A row-major walk over some of a space's dimensions, for one operand; dimensions that lie together are merged.
/// There is at least one dimension.
struct Walk {
  int rank = 1;
  int64_t sizes[kMaxRank] = {1};
  int64_t strides[kMaxRank] = {0};

  /// Appends an inner dimension, merging it with the one before where the strides allow it.
  void append(int64_t size, int64_t stride);
  /// Offset in elements of the point with this row-major number.
  int64_t offset_of(int64_t point) const;
};

/// Points [outer0, outer0 + outer_n) x [inner0, inner0 + inner_n) of two walks; in a register, row o of it starts at
/// element o * pitch.
struct Grid {
  int64_t outer0 = 0, outer_n = 1, inner0 = 0, inner_n = 0, pitch = 0;
};

/// An operand as one instruction sees it.
struct Access {
  int32_t slot = -1;
  uint8_t size = 0;    // of an element
  int64_t offset = 0;  // in elements
  Walk outer, inner;

  /// Address of the rectangle when it lies in memory as it does in a register, padding aside; else null. Only for
  /// rectangles without padding.
  void* direct(void* base, const Grid& grid) const;
  /// Address of the rectangle when its rows lie in memory as such, outer.strides[0] elements apart; else null. `whole`:
  /// only rows of whole groups.
  void* rows(void* base, const Grid& grid, bool whole) const;
};

/// base: the address of the operand's element at the access's offset.
void load_grid(const Access& access, const void* base, const Grid& grid, void* reg);
void store_grid(const Access& access, void* base, const Grid& grid, const void* reg);
/// Positions instead of memory.
void iota_grid(const Access& access, const Grid& grid, int64_t* reg);

}  // namespace ae::device::host
