#include "device/host/access.h"

#include <algorithm>
#include <cstring>

namespace ae::device::host {

void Walk::append(int64_t size, int64_t stride) {
  if (size == 1) return;
  if (rank == 1 && sizes[0] == 1) {
    sizes[0] = size;
    strides[0] = stride;
  } else if (strides[rank - 1] == stride * size) {
    sizes[rank - 1] *= size;
    strides[rank - 1] = stride;
  } else {
    sizes[rank] = size;
    strides[rank] = stride;
    ++rank;
  }
}

int64_t Walk::offset_of(int64_t point) const {
  if (rank == 1) return point * strides[0];
  int64_t offset = 0;
  for (int d = rank - 1; d > 0; --d) {
    offset += point % sizes[d] * strides[d];
    point /= sizes[d];
  }
  return offset + point * strides[0];
}

namespace {

/// A place in a walk, which moves forward.
class Cursor {
 public:
  Cursor(const Walk& walk, int64_t point) : walk_(walk) {
    for (int d = walk.rank - 1; d > 0; --d) {
      index_[d] = point % walk.sizes[d];
      point /= walk.sizes[d];
      offset_ += index_[d] * walk.strides[d];
    }
    index_[0] = point;
    offset_ += point * walk.strides[0];
  }
  int64_t offset() const { return offset_; }
  /// How many points from here on have the innermost stride between them.
  int64_t run() const { return walk_.sizes[walk_.rank - 1] - index_[walk_.rank - 1]; }

  /// Moves on by at most run() points.
  void advance(int64_t n) {
    int d = walk_.rank - 1;
    index_[d] += n;
    offset_ += n * walk_.strides[d];
    while (d > 0 && index_[d] == walk_.sizes[d]) {
      offset_ -= walk_.sizes[d] * walk_.strides[d];
      index_[d] = 0;
      --d;
      ++index_[d];
      offset_ += walk_.strides[d];
    }
  }

 private:
  const Walk& walk_;
  int64_t index_[kMaxRank];
  int64_t offset_ = 0;
};

/// Calls f(offset in elements, stride, place in the register, length) for each run of a rectangle.
template <class F>
inline void for_runs(const Access& access, const Grid& grid, F f) {
  if (grid.inner_n == 0) return;
  const Walk& inner = access.inner;
  const int64_t stride = inner.strides[inner.rank - 1];
  Cursor outer(access.outer, grid.outer0);
  const Cursor first(inner, grid.inner0);
  for (int64_t o = 0; o < grid.outer_n; ++o) {
    if (inner.rank == 1) {
      f(outer.offset() + first.offset(), stride, o * grid.pitch, grid.inner_n);
    } else {
      Cursor at = first;
      for (int64_t i = 0; i < grid.inner_n;) {
        const int64_t n = std::min(at.run(), grid.inner_n - i);
        f(outer.offset() + at.offset(), stride, o * grid.pitch + i, n);
        at.advance(n);
        i += n;
      }
    }
    outer.advance(1);
  }
}

template <class T>
void load_typed(const Access& access, const void* base, const Grid& grid, void* reg) {
  const T* from = static_cast<const T*>(base);
  T* to = static_cast<T*>(reg);
  for_runs(access, grid, [&](int64_t offset, int64_t stride, int64_t at, int64_t n) {
    const T* x = from + offset;
    T* out = to + at;
    if (stride == 1) {
      std::memcpy(out, x, n * sizeof(T));
    } else if (stride == 0) {
      std::fill_n(out, n, *x);
    } else {
      for (int64_t i = 0; i < n; ++i) out[i] = x[i * stride];
    }
  });
}

template <class T>
void store_typed(const Access& access, void* base, const Grid& grid, const void* reg) {
  T* to = static_cast<T*>(base);
  const T* from = static_cast<const T*>(reg);
  for_runs(access, grid, [&](int64_t offset, int64_t stride, int64_t at, int64_t n) {
    T* out = to + offset;
    const T* x = from + at;
    if (stride == 1) {
      std::memmove(out, x, n * sizeof(T));
    } else {
      for (int64_t i = 0; i < n; ++i) out[i * stride] = x[i];
    }
  });
}

}  // namespace

void* Access::rows(void* base, const Grid& grid, bool whole) const {
  if (inner.strides[inner.rank - 1] != 1 || (whole && grid.inner_n != grid.pitch)) return nullptr;
  if (grid.outer_n > 1 && outer.rank != 1) return nullptr;
  int64_t offset = outer.offset_of(grid.outer0);
  if (inner.rank == 1) {
    offset += grid.inner0;
  } else {
    const Cursor at(inner, grid.inner0);
    if (at.run() < grid.inner_n) return nullptr;
    offset += at.offset();
  }
  return static_cast<char*>(base) + offset * size;
}

void* Access::direct(void* base, const Grid& grid) const {
  if (grid.inner_n != grid.pitch || (grid.outer_n > 1 && outer.strides[0] != grid.pitch)) return nullptr;
  return rows(base, grid, true);
}

void load_grid(const Access& access, const void* base, const Grid& grid, void* reg) {
  switch (access.size) {
    case 1: return load_typed<uint8_t>(access, base, grid, reg);
    case 2: return load_typed<uint16_t>(access, base, grid, reg);
    case 4: return load_typed<uint32_t>(access, base, grid, reg);
    default: return load_typed<uint64_t>(access, base, grid, reg);
  }
}

void store_grid(const Access& access, void* base, const Grid& grid, const void* reg) {
  switch (access.size) {
    case 1: return store_typed<uint8_t>(access, base, grid, reg);
    case 2: return store_typed<uint16_t>(access, base, grid, reg);
    case 4: return store_typed<uint32_t>(access, base, grid, reg);
    default: return store_typed<uint64_t>(access, base, grid, reg);
  }
}

void iota_grid(const Access& access, const Grid& grid, int64_t* reg) {
  for_runs(access, grid, [&](int64_t offset, int64_t stride, int64_t at, int64_t n) {
    const int64_t first = access.offset + offset;
    for (int64_t i = 0; i < n; ++i) reg[at + i] = first + i * stride;
  });
}

}  // namespace ae::device::host
