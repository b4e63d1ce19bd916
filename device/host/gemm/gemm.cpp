#include "device/host/gemm/gemm.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "device/host/gemm/pack.h"
#include "device/math/vec.h"

namespace ae::device::host::gemm {
namespace {

using V = math::Vec<float, 16>;
constexpr int64_t kInnerBlock = 1024;
static_assert(kColumnTile == 2 * 16);

/// One tile of sums: kRows rows of two vectors.
template <int kRows>
struct Tile {
  V sums[kRows][2];

  /// a: the first row's first element; b: packed, kColumnTile numbers for each k.
  AE_INLINE void accumulate(const float* a, int64_t row_stride, int64_t inner_stride, const float* b, int64_t k) {
#pragma GCC unroll 14
    for (int r = 0; r < kRows; ++r) sums[r][0] = sums[r][1] = V(0.0f);
    for (int64_t p = 0; p < k; ++p) {
      const V b0 = V::load(b + p * kColumnTile), b1 = V::load(b + p * kColumnTile + 16);
#pragma GCC unroll 14
      for (int r = 0; r < kRows; ++r) {
        const V x = V(a[r * row_stride + p * inner_stride]);
        sums[r][0] = math::fma(x, b0, sums[r][0]);
        sums[r][1] = math::fma(x, b1, sums[r][1]);
      }
    }
  }
};

/// What happens to the sums of a block of the inner dimension.
struct Step {
  const Product& product;
  int64_t column, columns;  // of the output: first, and how many (at most kColumnTile)
  bool first, last;         // block
  float* partial;           // [m, kColumnTile]: sums of the blocks before

  V self_at(int64_t row, int64_t column_in_tile) const {
    const Matrix& self = product.self;
    const float* at = self.data + row * self.row_stride + (column + column_in_tile) * self.column_stride;
    if (self.column_stride == 1 && column_in_tile + 16 <= columns) return V::load(at);
    float lanes[16] = {};
    const int64_t count = std::min<int64_t>(16, columns - column_in_tile);
    for (int64_t l = 0; l < count; ++l) lanes[l] = at[l * self.column_stride];
    return V::load(lanes);
  }

  AE_INLINE void finish(int64_t row, int64_t column_in_tile, V sum) const {
    float* before = partial + row * kColumnTile + column_in_tile;
    if (!first) sum = V::load(before) + sum;
    if (!last) return sum.store(before);
    const int64_t count = columns - column_in_tile;
    if (count <= 0) return;
    if (product.alpha != 1) sum = V(product.alpha) * sum;
    if (product.self.data) {
      const V self = self_at(row, column_in_tile);
      sum = sum + (product.beta == 1 ? self : V(product.beta) * self);
    }
    float* out = product.out + row * product.out_row_stride + column + column_in_tile;
    if (count >= 16) return sum.store(out);
    for (int64_t l = 0; l < count; ++l) out[l] = sum[static_cast<int>(l)];
  }
};

/// kRows rows of a and a packed tile of b: `row` is the first of the output.
template <int kRows>
void run_tile(const Step& step, int64_t row, const Matrix& a, const float* b, int64_t k) {
  Tile<kRows> tile;
  tile.accumulate(a.data, a.row_stride, a.column_stride, b, k);
  for (int r = 0; r < kRows; ++r) {
    step.finish(row + r, 0, tile.sums[r][0]);
    step.finish(row + r, 16, tile.sums[r][1]);
  }
}

using RunTile = void (*)(const Step&, int64_t, const Matrix&, const float*, int64_t);
template <int... kRows>
constexpr RunTile tile_of(int64_t rows, std::integer_sequence<int, kRows...>) {
  constexpr RunTile kTiles[] = {&run_tile<kRows + 1>...};
  return kTiles[rows - 1];
}

/// Rows whose distance is a multiple of the first-level cache's way push each other out of it.
bool rows_collide(const Matrix& a) { return a.column_stride == 1 && a.row_stride % 1024 == 0; }

/// Rows of all tiles but the last: at most kRowTile, about the same for all. A tile of few rows waits for its sums.
int64_t rows_of_tile(int64_t m) {
  const int64_t tiles = std::max<int64_t>((m + kRowTile - 1) / kRowTile, 1);
  return (m + tiles - 1) / tiles;
}

/// Tiles of rows, one after the other, each with its rows beside each other: [k, rows].
void pack_rows(const Matrix& a, int64_t m, int64_t k, float* to) {
  const int64_t tile = rows_of_tile(m);
  for (int64_t row = 0; row < m; row += tile) {
    const int64_t rows = std::min(tile, m - row);
    for (int64_t r = 0; r < rows; ++r) {
      const float* from = a.data + (row + r) * a.row_stride;
      for (int64_t p = 0; p < k; ++p) to[row * k + p * rows + r] = from[p * a.column_stride];
    }
  }
}

int64_t tiles_of(int64_t n) { return (n + kColumnTile - 1) / kColumnTile; }

/// The tile of b's rows [inner, inner + k) that begins at `column`.
void pack_tile(const Matrix& b, int64_t inner, int64_t k, int64_t column, int64_t n, float* to) {
  pack_columns(b.data + inner * b.row_stride + column * b.column_stride, b.row_stride, b.column_stride, k,
               std::min(kColumnTile, n - column), to);
}

/// Memory of a thread, kept for the next product.
float* scratch(int64_t floats) {
  thread_local std::vector<float> memory;
  if (static_cast<int64_t>(memory.size()) < floats + 16) memory.resize(floats + 16);
  const auto address = reinterpret_cast<uintptr_t>(memory.data());
  return reinterpret_cast<float*>((address + 63) / 64 * 64);
}

}  // namespace

bool is_preferred() {
#if defined(AE_MATH_AVX512) && defined(__FMA__)
  static const bool preferred = !__builtin_cpu_is("intel");
  return preferred;
#else
  return false;
#endif
}

int64_t packed_size(int64_t k, int64_t n) { return k * tiles_of(n) * kColumnTile; }

void pack(const Matrix& b, int64_t k, int64_t n, float* to) {
  for (int64_t inner = 0; inner < k; inner += kInnerBlock) {
    const int64_t block = std::min(kInnerBlock, k - inner);
    for (int64_t column = 0; column < n; column += kColumnTile, to += block * kColumnTile)
      pack_tile(b, inner, block, column, n, to);
  }
}

void multiply(const Product& product) {
  const Matrix& a = product.a;
  const int64_t block = std::min(product.k, kInnerBlock);
  const int64_t tiles = tiles_of(product.n), row_tile = rows_of_tile(product.m);
  const bool pack_a = rows_collide(a) && tiles > 1;
  const int64_t packed_b_size = product.packed ? 0 : block * kColumnTile;
  const int64_t packed_a_size = pack_a ? block * product.m : 0;
  const int64_t partial_size = product.k > kInnerBlock ? product.m * tiles * kColumnTile : 0;
  float* packed_b = scratch(packed_b_size + partial_size + packed_a_size);
  float* partial = packed_b + packed_b_size;
  float* packed_a = partial + partial_size;
  for (int64_t inner = 0; inner == 0 || inner < product.k; inner += kInnerBlock) {
    const int64_t k = std::min(kInnerBlock, product.k - inner);
    const auto rows_at = [&](int64_t row, int64_t rows) {
      if (pack_a) return Matrix{packed_a + row * k, 1, rows};
      return Matrix{a.data + row * a.row_stride + inner * a.column_stride, a.row_stride, a.column_stride};
    };
    if (pack_a) pack_rows({a.data + inner * a.column_stride, a.row_stride, a.column_stride}, product.m, k, packed_a);
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int64_t column = tile * kColumnTile, columns = std::min(kColumnTile, product.n - column);
      const float* packed = packed_b;
      if (product.packed)
        packed = product.packed + inner * tiles * kColumnTile + tile * k * kColumnTile;
      else
        pack_tile(product.b, inner, k, column, product.n, packed_b);
      const Step step{
          product, column, columns, inner == 0, inner + k >= product.k, partial + tile * product.m * kColumnTile};
      for (int64_t row = 0; row < product.m; row += row_tile) {
        const int64_t rows = std::min(row_tile, product.m - row);
        const RunTile run = tile_of(rows, std::make_integer_sequence<int, kRowTile>());
        run(step, row, rows_at(row, rows), packed, k);
      }
    }
  }
}

}  // namespace ae::device::host::gemm
