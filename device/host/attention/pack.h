// Copies of blocks of rows in the orders that the kernels read, and the thread's scratch memory.
#pragma once

#include <cstdint>

#include "device/host/attention/attention.h"
#include "device/host/attention/tile.h"

namespace ae::device::host::attention {

constexpr int64_t round_up(int64_t x, int64_t unit) { return (x + unit - 1) / unit * unit; }

/// Hands out parts of the thread's scratch memory, which grows to what was asked for; one user at a time.
class Scratch {
 public:
  explicit Scratch(int64_t floats);
  /// 64-byte aligned, uninitialised.
  float* take(int64_t floats);

 private:
  float* next_;
};
/// What `take(floats)` uses up.
constexpr int64_t scratch_size(int64_t floats) { return round_up(floats, 16); }

/// Floats of the panels of `rows` rows.
constexpr int64_t panels_size(int64_t rows, int64_t width) { return round_up(rows, kPanel) * width; }

/// The transpose of rows [first, first + count), in panels of kPanel columns: panels[j / kPanel][w][j % kPanel].
/// Columns beyond `count` are zero.
void pack_panels(const Rows<const float>& from, int64_t first, int64_t count, int64_t width, float* panels);

/// Rows [first, first + count) one after another, times `factor`; then zeros up to a multiple of kTileRows rows.
void copy_rows(const Rows<const float>& from, int64_t first, int64_t count, int64_t width, float factor, float* to);

}  // namespace ae::device::host::attention
