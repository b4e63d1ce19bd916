#include "device/host/gemm/pack.h"

#include <algorithm>
#include <cstring>

#include "device/host/gemm/gemm.h"
#include "device/math/vec.h"

namespace ae::device::host::gemm {
namespace {

using V = math::Vec<float, 16>;

#ifdef AE_MATH_AVX512
/// Takes lanes from a and b in the pattern that lo and hi halves of a pair of groups of `kStep` lanes have.
template <int kStep, bool kHigh>
AE_INLINE V interleave(V a, V b) {
  return [&]<int... kLane>(std::integer_sequence<int, kLane...>) {
    // Lane l of the result: within each pair of groups, the first group comes from a, the second from b.
    return V(
        __builtin_shufflevector(
            a.v, b.v, ((kLane / kStep) % 2 == 0 ? kLane + (kHigh ? kStep : 0) : 16 + kLane - (kHigh ? 0 : kStep))...),
        0);
  }(std::make_integer_sequence<int, 16>{});
}

/// One round of a transposition: swaps the off-diagonal blocks of kStep x kStep.
template <int kStep>
AE_INLINE void swap_blocks(V (&rows)[16]) {
#pragma GCC unroll 16
  for (int r = 0; r < 16; ++r) {
    if (r & kStep) continue;
    const V a = rows[r], b = rows[r + kStep];
    rows[r] = interleave<kStep, false>(a, b);
    rows[r + kStep] = interleave<kStep, true>(a, b);
  }
}

/// 16 rows of 16 numbers become columns.
void transpose_block(const float* from, int64_t stride, float* to) {
  V rows[16];
#pragma GCC unroll 16
  for (int r = 0; r < 16; ++r) rows[r] = V::load(from + r * stride);
  swap_blocks<8>(rows);
  swap_blocks<4>(rows);
  swap_blocks<2>(rows);
  swap_blocks<1>(rows);
#pragma GCC unroll 16
  for (int r = 0; r < 16; ++r) rows[r].store(to + r * kColumnTile);
}
#else
void transpose_block(const float* from, int64_t stride, float* to) {
  for (int r = 0; r < 16; ++r)
    for (int c = 0; c < 16; ++c) to[c * kColumnTile + r] = from[r * stride + c];
}
#endif

}  // namespace

void pack_columns(const float* from, int64_t row_stride, int64_t column_stride, int64_t k, int64_t columns, float* to) {
  const bool whole = columns == kColumnTile;
  if (whole && column_stride == 1) {
    for (int64_t p = 0; p < k; ++p) {
      V::load(from + p * row_stride).store(to + p * kColumnTile);
      V::load(from + p * row_stride + 16).store(to + p * kColumnTile + 16);
    }
    return;
  }
  int64_t p = 0;
  if (whole && row_stride == 1) {
    for (; p + 16 <= k; p += 16) {
      transpose_block(from + p, column_stride, to + p * kColumnTile);
      transpose_block(from + p + 16 * column_stride, column_stride, to + p * kColumnTile + 16);
    }
  }
  for (; p < k; ++p) {
    for (int64_t j = 0; j < columns; ++j) to[p * kColumnTile + j] = from[p * row_stride + j * column_stride];
    std::fill(to + p * kColumnTile + columns, to + (p + 1) * kColumnTile, 0.0f);
  }
}

}  // namespace ae::device::host::gemm
