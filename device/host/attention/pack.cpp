#include "device/host/attention/pack.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

namespace ae::device::host::attention {
namespace {

struct Free {
  void operator()(float* p) const { std::free(p); }
};
struct Memory {
  std::unique_ptr<float, Free> floats;
  int64_t size = 0;
};
thread_local Memory t_memory;

/// The lanes of a and b in turn, beginning with lane kFirst.
template <int kFirst>
AE_INLINE Lane interleave(Lane a, Lane b) {
  return [&]<int... i>(std::integer_sequence<int, i...>) {
    return Lane(__builtin_shufflevector(a.v, b.v, (kFirst + i / 2 + (i % 2) * kLanes)...), 0);
  }(std::make_integer_sequence<int, kLanes>{});
}

/// A square of numbers is transposed by as many perfect shuffles of its rows as its side has bits.
AE_INLINE void transpose(Lane (&rows)[kLanes]) {
#pragma GCC unroll 4
  for (int side = kLanes; side > 1; side /= 2) {
    Lane shuffled[kLanes];
#pragma GCC unroll 8
    for (int i = 0; i < kLanes / 2; ++i) {
      shuffled[2 * i] = interleave<0>(rows[i], rows[i + kLanes / 2]);
      shuffled[2 * i + 1] = interleave<kLanes / 2>(rows[i], rows[i + kLanes / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) rows[i] = shuffled[i];
  }
}

}  // namespace

Scratch::Scratch(int64_t floats) {
  if (t_memory.size < floats) {
    t_memory.floats.reset(static_cast<float*>(std::aligned_alloc(64, round_up(floats, 16) * sizeof(float))));
    t_memory.size = t_memory.floats ? floats : 0;
    if (!t_memory.floats) throw std::bad_alloc();
  }
  next_ = t_memory.floats.get();
}

float* Scratch::take(int64_t floats) { return std::exchange(next_, next_ + scratch_size(floats)); }

void pack_panels(const Rows<const float>& from, int64_t first, int64_t count, int64_t width, float* panels) {
  for (int64_t start = 0; start < count; start += kLanes) {
    float* to = panels + start / kPanel * kPanel * width + start % kPanel;
    const int64_t rows = std::min<int64_t>(kLanes, count - start);
    for (int64_t w = 0; w < width; w += kLanes) {
      Lane square[kLanes];
      if (rows == kLanes) {
#pragma GCC unroll 16
        for (int r = 0; r < kLanes; ++r) square[r] = Lane::load(from[first + start + r] + w);
      } else {
#pragma GCC unroll 16
        for (int r = 0; r < kLanes; ++r) square[r] = r < rows ? Lane::load(from[first + start + r] + w) : Lane(0.0f);
      }
      transpose(square);
#pragma GCC unroll 16
      for (int r = 0; r < kLanes; ++r) square[r].store(to + (w + r) * kPanel);
    }
  }
}

void copy_rows(const Rows<const float>& from, int64_t first, int64_t count, int64_t width, float factor, float* to) {
  for (int64_t r = 0; r < count; ++r, to += width) {
    const float* row = from[first + r];
    for (int64_t w = 0; w < width; w += kLanes) (Lane::load(row + w) * Lane(factor)).store(to + w);
  }
  std::fill(to, to + (round_up(count, kTileRows) - count) * width, 0.0f);
}

}  // namespace ae::device::host::attention
