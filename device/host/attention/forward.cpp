#include <algorithm>
#include <cstdint>

#include "device/host/attention/attention.h"
#include "device/host/attention/scores.h"
#include "device/math/exp.h"
#include "device/math/log.h"

namespace ae::device::host::attention {
namespace {

constexpr int64_t kKeyBlock = 512;
constexpr int kScoreStride = kKeyBlock + 16;  // not a power of two: the rows of a tile fall into different cache sets

/// A block of keys as the kernels read it, and the scores of one tile.
struct Block {
  int64_t start = 0, count = 0;
  float* keys;    // panels
  float* values;  // rows
  float* query;   // one tile
  float* scores;
};

/// One tile of queries against one block of keys.
__attribute__((noinline)) void attend(const Forward& call, const Block& block, const Rows<const float>& query,
                                      const Mask& mask, const Rows<float>& out, int64_t first, int rows, float* max,
                                      float* sum) {
  const Shape& shape = call.shape;
  const int64_t width = shape.width;
  copy_rows(query, first, rows, width, call.scale, block.query);
  const int64_t columns = visible_keys(shape, first + rows - 1, block.start, block.count);
  for (int64_t c = 0; c < columns; c += kPanel)
    multiply_panel(
        Matrix{block.query, width}, block.keys + c * width, kPanel, width, c, columns,
        [](int, int64_t) { return Lane(0.0f); },
        [&](int r, int64_t column, Lane x) { x.store(block.scores + r * kScoreStride + column); });
  float factor[kTileRows] = {}, end_factor[kTileRows] = {}, shift[kTileRows] = {};
  // Row by row in three loops, so that the rows' chains of operations overlap.
  for (int r = 0; r < rows; ++r) {
    float* scores = block.scores + r * kScoreStride;
    const int64_t visible = visible_keys(shape, first + r, block.start, block.count);
    if (mask.data) add_mask(mask, first + r, block.start, visible, scores);
    const float before = block.start == 0 ? kNothing : max[r];
    max[r] = math::max_or_second(row_max(scores, visible), before);
    shift[r] = shift_of(max[r]);
    factor[r] = before;
  }
  RowLane sums[kTileRows];
  for (int r = 0; r < rows; ++r)
    sums[r] = exponentials(block.scores + r * kScoreStride, visible_keys(shape, first + r, block.start, block.count),
                           columns, shift[r]);
  for (int r = 0; r < rows; ++r) {
    const float block_sum = across(sums[r], Add());
    if (block.start == 0) {
      sum[r] = block_sum;
    } else {
      factor[r] = math::exp(factor[r] - shift[r]);
      sum[r] = math::fma(sum[r], factor[r], block_sum);
    }
    end_factor[r] = 1.0f / (sum[r] == 0.0f ? 1.0f : sum[r]);
  }
  const bool begins = block.start == 0;
  const bool ends = !shape.causal ? block.start + block.count == shape.keys
                                  : block.start + columns == std::min(shape.keys, first + rows);
  multiply_rows(
      FixedRows<kScoreStride>{block.scores}, block.values, columns, width,
      [&](int r, int64_t c) {
        return begins || r >= rows ? Lane(0.0f) : Lane::load(out[first + r] + c) * Lane(factor[r]);
      },
      [&](int r, int64_t c, Lane x) {
        if (r < rows) (ends ? x * Lane(end_factor[r]) : x).store(out[first + r] + c);
      });
}

}  // namespace

void forward(const Forward& call, int64_t batch, int64_t head, int64_t first, int64_t count) {
  const Shape& shape = call.shape;
  if (shape.queries <= kFewQueries) return forward_few(call, batch, head, first, count);
  const int64_t width = shape.width, end = first + count;
  const int64_t key_head = head / (shape.heads / shape.key_heads);
  const auto query = call.query.of(batch, head);
  const auto key = call.key.of(batch, key_head), value = call.value.of(batch, key_head);
  const auto out = call.out.of(batch, head), logsumexp = call.logsumexp.of(batch, head);
  const Mask mask = mask_of(call.mask, batch, head);
  const int64_t keys = shape.causal ? std::min(shape.keys, end) : shape.keys;
  const int64_t largest = std::min(kKeyBlock, keys);

  Scratch scratch(scratch_size(panels_size(largest, width)) + scratch_size(round_up(largest, kTileRows) * width) +
                  scratch_size(kTileRows * width) + scratch_size(kTileRows * kScoreStride) +
                  2 * scratch_size(round_up(count, kRowLanes)));
  Block block;
  block.keys = scratch.take(panels_size(largest, width));
  block.values = scratch.take(round_up(largest, kTileRows) * width);
  block.query = scratch.take(kTileRows * width);
  block.scores = scratch.take(kTileRows * kScoreStride);
  float* max = scratch.take(round_up(count, kRowLanes));
  float* sum = scratch.take(round_up(count, kRowLanes));

  for (block.start = 0; block.start < keys; block.start += kKeyBlock) {
    block.count = std::min(kKeyBlock, keys - block.start);
    pack_panels(key, block.start, block.count, width, block.keys);
    copy_rows(value, block.start, block.count, width, 1.0f, block.values);
    const int64_t from = shape.causal ? std::max(first, block.start) : first;
    for (int64_t q = from; q < end; q += kTileRows)
      attend(call, block, query, mask, out, q, static_cast<int>(std::min<int64_t>(kTileRows, end - q)),
             max + (q - first), sum + (q - first));
  }
  for (int64_t q = 0; q < count; q += kRowLanes) {
    const RowLane m = RowLane::load(max + q), total = RowLane::load(sum + q);
    const RowLane shift = math::select(m == RowLane(kNothing), RowLane(0.0f), m);
    const RowLane result = shift + math::log(math::select(total == RowLane(0.0f), RowLane(1.0f), total));
    for (int64_t r = 0; r < std::min<int64_t>(kRowLanes, count - q); ++r) *logsumexp[first + q + r] = result[int(r)];
  }
}

}  // namespace ae::device::host::attention
