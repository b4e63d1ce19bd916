// The inner product kernel: a tile of kTileRows rows and one or two registers of columns, kept in registers.
#pragma once

#include <cstdint>

#include "device/math/vec.h"

namespace ae::device::host::attention {

inline constexpr int kLanes = math::kRegisterBytes / static_cast<int>(sizeof(float));
inline constexpr int kPanel = 2 * kLanes;                             // columns of a full tile
inline constexpr int kTileRows = math::kRegisterBytes == 64 ? 8 : 4;  // what the machine's registers hold
using Lane = math::Vec<float, kLanes>;

/// Factors of a product's rows r and of its inner index k, at p[r * row + k * step].
struct Matrix {
  const float* p;
  int64_t row;
  AE_INLINE float at(int r, int64_t k) const { return p[r * row + k]; }
};
/// The same with a row stride known to the compiler.
template <int kRow>
struct FixedRows {
  const float* p;
  AE_INLINE float at(int r, int64_t k) const { return p[r * kRow + k]; }
};
/// The transpose of FixedRows.
template <int kRow>
struct FixedColumns {
  const float* p;
  AE_INLINE float at(int r, int64_t k) const { return p[k * kRow + r]; }
};

/// For each row r and register v of columns: finish(r, v, start(r, v) + sum over k in order of a.at(r, k) * b[k][v]).
template <int kVecs, class A, class Start, class Finish>
AE_INLINE void multiply_tile(A a, const float* b, int64_t b_step, int64_t depth, Start start, Finish finish) {
  Lane sum[kTileRows][kVecs];
#pragma GCC unroll 8
  for (int r = 0; r < kTileRows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kVecs; ++v) sum[r][v] = start(r, v);
  for (int64_t k = 0; k < depth; ++k, b += b_step) {
    Lane right[kVecs];
#pragma GCC unroll 2
    for (int v = 0; v < kVecs; ++v) right[v] = Lane::load(b + v * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kTileRows; ++r) {
      const Lane left(a.at(r, k));
#pragma GCC unroll 2
      for (int v = 0; v < kVecs; ++v) sum[r][v] = math::fma(left, right[v], sum[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kTileRows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kVecs; ++v) finish(r, v, sum[r][v]);
}

}  // namespace ae::device::host::attention
