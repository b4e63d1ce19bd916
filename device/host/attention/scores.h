// What forward and backward share: blocks of scores and the products with them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "device/host/attention/attention.h"
#include "device/host/attention/pack.h"
#include "device/host/attention/tile.h"
#include "device/math/exp.h"

namespace ae::device::host::attention {

/// Rows of scores are worked on with this many lanes on every machine, so that their sums have one order.
inline constexpr int kRowLanes = 16;
using RowLane = math::Vec<float, kRowLanes>;
inline constexpr float kNothing = -math::kInf<float>;  // the score of a key that is not seen

/// One tile and one panel of columns, c being the first: finish(r, c + …, start(r, c + …) + sum over k of a[r][k] *
/// b[k][…]) with rows of b `step` apart. Only as many registers of columns are made as `columns` columns need.
template <class A, class Start, class Finish>
AE_INLINE void multiply_panel(A a, const float* b, int64_t step, int64_t depth, int64_t c, int64_t columns, Start start,
                              Finish finish) {
  const auto begin = [&](int r, int v) { return start(r, c + v * kLanes); };
  const auto end = [&](int r, int v, Lane x) { finish(r, c + v * kLanes, x); };
  if (columns - c > kLanes)
    multiply_tile<2>(a, b, step, depth, begin, end);
  else
    multiply_tile<1>(a, b, step, depth, begin, end);
}

/// All panels of a tile's columns, with b in rows of `width` columns, one after another.
template <class A, class Start, class Finish>
AE_INLINE void multiply_rows(A a, const float* b, int64_t depth, int64_t width, Start start, Finish finish) {
  for (int64_t c = 0; c < width; c += kPanel) multiply_panel(a, b + c, width, depth, c, width, start, finish);
}

/// scores[j] += the mask of query `row` and key first + j.
inline void add_mask(const Mask& mask, int64_t row, int64_t first, int64_t count, float* scores) {
  const float* from = mask.data + row * mask.row + first * mask.column;
  if (mask.column == 1)
    for (int64_t j = 0; j < count; ++j) scores[j] += from[j];
  else
    for (int64_t j = 0; j < count; ++j) scores[j] += from[j * mask.column];
}

inline Mask mask_of(const Mask& mask, int64_t batch, int64_t head) {
  Mask part = mask;
  if (part.data) part.data += batch * mask.batch + head * mask.head;
  return part;
}

AE_INLINE RowLane lanes_below(int64_t count, RowLane x, float other) {
  using Index = math::Vec<int32_t, kRowLanes>;
  alignas(64) static constexpr int32_t kIndex[kRowLanes] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return math::select(Index::load(kIndex) < Index(static_cast<int32_t>(count)), x, RowLane(other));
}

template <class Combine, int N>
AE_INLINE float across(math::Vec<float, N> x, Combine combine) {
  if constexpr (N == 2)
    return combine(x[0], x[1]);
  else
    return across(combine(math::low_half(x), math::high_half(x)), combine);
}

struct Add {
  template <class V>
  AE_INLINE V operator()(V a, V b) const {
    return a + b;
  }
};

inline float dot(const float* a, const float* b, int64_t width) {
  RowLane sum(0.0f);
  for (int64_t w = 0; w < width; w += kRowLanes) sum = math::fma(RowLane::load(a + w), RowLane::load(b + w), sum);
  return across(sum, Add());
}

inline float row_max(const float* scores, int64_t visible) {
  RowLane most(kNothing);
  int64_t j = 0;
  for (; j + kRowLanes <= visible; j += kRowLanes) most = math::max_or_second(RowLane::load(scores + j), most);
  if (j < visible) most = math::max_or_second(lanes_below(visible - j, RowLane::load(scores + j), kNothing), most);
  return across(most, [](auto a, auto b) { return math::max_or_second(a, b); });
}

/// What is subtracted of a row's scores: their maximum, or nothing where all are -inf.
inline float shift_of(float max) { return max == kNothing ? 0.0f : max; }

/// Makes exp(score - shift) of the visible scores and zeros of the others up to `columns`. Returns the sums of the
/// lanes.
inline RowLane exponentials(float* scores, int64_t visible, int64_t columns, float shift) {
  RowLane sum(0.0f);
  int64_t j = 0;
  for (; j + kRowLanes <= visible; j += kRowLanes) {
    const RowLane p = math::exp(RowLane::load(scores + j) - RowLane(shift));
    p.store(scores + j);
    sum = sum + p;
  }
  if (j < visible) {
    const RowLane p = lanes_below(visible - j, math::exp(RowLane::load(scores + j) - RowLane(shift)), 0.0f);
    p.store(scores + j);
    sum = sum + p;
    j += kRowLanes;
  }
  for (; j < columns; j += kRowLanes) RowLane(0.0f).store(scores + j);
  return sum;
}

/// The keys of a block that the query with this index sees, counted from the block's first.
inline int64_t visible_keys(const Shape& shape, int64_t query, int64_t block_start, int64_t block_count) {
  if (!shape.causal) return block_count;
  return std::clamp<int64_t>(query + 1 - block_start, 0, block_count);
}

/// `forward` for shapes of at most kFewQueries queries.
void forward_few(const Forward& call, int64_t batch, int64_t head, int64_t first, int64_t count);

}  // namespace ae::device::host::attention
