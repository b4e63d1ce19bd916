// The forward pass of few queries, as when one token after another is generated: keys and values are read where they
// are, once for each query, since there is nothing that packed copies of them could be used again for.
#include <algorithm>
#include <cstdint>

#include "device/host/attention/attention.h"
#include "device/host/attention/scores.h"
#include "device/math/log.h"

namespace ae::device::host::attention {
namespace {

/// Calls f<registers>(first column) for all columns of a row: kMost registers at a time, then one by one.
template <int kMost, class F>
AE_INLINE void for_columns(int64_t width, F f) {
  int64_t c = 0;
  for (; c + kMost * kRowLanes <= width; c += kMost * kRowLanes) f.template operator()<kMost>(c);
  for (; c < width; c += kRowLanes) f.template operator()<1>(c);
}

/// out = sum over the keys of probability * value, times `factor`.
void weigh(const float* probabilities, const Rows<const float>& value, int64_t keys, int64_t width, float factor,
           float* out) {
  for_columns<4>(width, [&]<int kVecs>(int64_t c) {
    RowLane sum[kVecs];
    for (RowLane& s : sum) s = RowLane(0.0f);
    for (int64_t j = 0; j < keys; ++j) {
      const RowLane p(probabilities[j]);
      const float* row = value[j] + c;
      for (int v = 0; v < kVecs; ++v) sum[v] = math::fma(p, RowLane::load(row + v * kRowLanes), sum[v]);
    }
    for (int v = 0; v < kVecs; ++v) (sum[v] * RowLane(factor)).store(out + c + v * kRowLanes);
  });
}

}  // namespace

void forward_few(const Forward& call, int64_t batch, int64_t head, int64_t first, int64_t count) {
  const Shape& shape = call.shape;
  const int64_t width = shape.width;
  const int64_t key_head = head / (shape.heads / shape.key_heads);
  const auto query = call.query.of(batch, head);
  const auto key = call.key.of(batch, key_head), value = call.value.of(batch, key_head);
  const auto out = call.out.of(batch, head), logsumexp = call.logsumexp.of(batch, head);
  const Mask mask = mask_of(call.mask, batch, head);

  const int64_t columns = round_up(shape.keys, kRowLanes);
  Scratch scratch(scratch_size(width) + columns);
  float* scaled = scratch.take(width);
  float* scores = scratch.take(columns);
  for (int64_t q = first; q < first + count; ++q) {
    const int64_t visible = visible_keys(shape, q, 0, shape.keys);
    for (int64_t w = 0; w < width; w += kRowLanes)
      (RowLane::load(query[q] + w) * RowLane(call.scale)).store(scaled + w);
    for (int64_t j = 0; j < visible; ++j) scores[j] = dot(scaled, key[j], width);
    if (mask.data) add_mask(mask, q, 0, visible, scores);
    const float most = row_max(scores, visible);
    const float shift = shift_of(most);
    const float sum = across(exponentials(scores, visible, visible, shift), Add());
    const float total = sum == 0.0f ? 1.0f : sum;
    weigh(scores, value, visible, width, 1.0f / total, out[q]);
    *logsumexp[q] = shift + math::log(total);
  }
}

}  // namespace ae::device::host::attention
