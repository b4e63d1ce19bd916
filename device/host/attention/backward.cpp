// The gradients, from the logsumexp of the forward pass: with P = exp(scores - logsumexp),
//
//   grad_value = P^T @ grad;  dS = P * (grad @ value^T - sum(grad * out));
//   grad_query = scale * dS @ key;  grad_key = scale * dS^T @ query
//
// Sums over keys go through blocks of keys in order; sums over queries through the query heads that share the keys,
// then through blocks of queries.
#include <algorithm>
#include <cstdint>

#include "device/host/attention/attention.h"
#include "device/host/attention/scores.h"

namespace ae::device::host::attention {
namespace {

constexpr int64_t kKeyBlock = 128;
constexpr int64_t kQueryBlock = 64;
constexpr int kScoreStride = kKeyBlock + 16;  // not a power of two: the rows of a tile fall into different cache sets

struct KeyBlock {
  int64_t start = 0, count = 0;
  float* keys;         // panels
  float* values;       // panels
  float* scaled_keys;  // rows
};

struct QueryBlock {
  int64_t start = 0, count = 0;
  float* scaled_query;   // rows
  float* grad;           // rows
  float* minus_dot;      // -sum(grad * out) of each row
  float* probabilities;  // rows of kScoreStride
  float* grad_scores;    // rows of kScoreStride
};

/// The operands of one query head and its key head.
struct Head {
  Rows<const float> grad, query, out, logsumexp;
  Mask mask;
  Rows<float> grad_query, grad_key, grad_value;
};

/// One tile of rows of a block of queries, and the columns of the block of keys that it sees.
struct QueryTile {
  int64_t row;
  int rows;
  int64_t columns;
};

QueryTile tile_at(const Shape& shape, const KeyBlock& keys, const QueryBlock& queries, int64_t row) {
  const auto rows = std::min<int64_t>(kTileRows, queries.count - row);
  return {row, static_cast<int>(rows), visible_keys(shape, queries.start + row + rows - 1, keys.start, keys.count)};
}

/// Calls f(tile, c) for each panel of columns c and each tile from row `from` on that sees some of it.
template <class F>
AE_INLINE void for_panels(const Shape& shape, const KeyBlock& keys, const QueryBlock& queries, int64_t from, F f) {
  for (int64_t c = 0; c < keys.count; c += kPanel) {
    for (int64_t row = from; row < queries.count; row += kTileRows) {
      const QueryTile tile = tile_at(shape, keys, queries, row);
      if (tile.columns > c) f(tile, c);
    }
  }
}

/// P of the rows from `from` on.
__attribute__((noinline)) void make_probabilities(const Backward& call, const Head& head, const KeyBlock& keys,
                                                  const QueryBlock& queries, int64_t from) {
  const Shape& shape = call.shape;
  const int64_t width = shape.width;
  for_panels(shape, keys, queries, from, [&](const QueryTile& tile, int64_t c) {
    float* p = queries.probabilities + tile.row * kScoreStride;
    multiply_panel(
        Matrix{queries.scaled_query + tile.row * width, width}, keys.keys + c * width, kPanel, width, c, tile.columns,
        [](int, int64_t) { return Lane(0.0f); },
        [p](int r, int64_t column, Lane x) { x.store(p + r * kScoreStride + column); });
  });
  for (int64_t row = from; row < queries.count; row += kTileRows) {
    const QueryTile tile = tile_at(shape, keys, queries, row);
    for (int64_t r = row; r < row + tile.rows; ++r) {
      float* p = queries.probabilities + r * kScoreStride;
      const int64_t visible = visible_keys(shape, queries.start + r, keys.start, keys.count);
      if (head.mask.data) add_mask(head.mask, queries.start + r, keys.start, visible, p);
      exponentials(p, visible, tile.columns, *head.logsumexp[queries.start + r]);
    }
  }
}

/// dS of the rows from `from` on, and what they add to grad_query.
__attribute__((noinline)) void make_grad_scores(const Backward& call, const Head& head, const KeyBlock& keys,
                                                const QueryBlock& queries, int64_t from) {
  const Shape& shape = call.shape;
  const int64_t width = shape.width;
  for_panels(shape, keys, queries, from, [&](const QueryTile& tile, int64_t c) {
    const float* p = queries.probabilities + tile.row * kScoreStride;
    float* ds = queries.grad_scores + tile.row * kScoreStride;
    multiply_panel(
        Matrix{queries.grad + tile.row * width, width}, keys.values + c * width, kPanel, width, c, tile.columns,
        [&](int r, int64_t) { return Lane(queries.minus_dot[tile.row + r]); },
        [p, ds](int r, int64_t column, Lane x) {
          (x * Lane::load(p + r * kScoreStride + column)).store(ds + r * kScoreStride + column);
        });
  });
  for (int64_t row = from; row < queries.count; row += kTileRows) {
    const QueryTile tile = tile_at(shape, keys, queries, row);
    const int64_t first = queries.start + row;
    multiply_rows(
        FixedRows<kScoreStride>{queries.grad_scores + row * kScoreStride}, keys.scaled_keys, tile.columns, width,
        [&](int r, int64_t c) {
          return keys.start == 0 || r >= tile.rows ? Lane(0.0f) : Lane::load(head.grad_query[first + r] + c);
        },
        [&](int r, int64_t c, Lane x) {
          if (r < tile.rows) x.store(head.grad_query[first + r] + c);
        });
  }
}

/// A tile of keys' gradient += the product of transposed `scores` (P or dS) and rows of a block of queries.
__attribute__((noinline)) void key_tile(const float* scores, const float* rows_of_queries, int64_t count, int64_t width,
                                        const Rows<float>& grad, int64_t first, int rows) {
  multiply_rows(
      FixedColumns<kScoreStride>{scores}, rows_of_queries, count, width,
      [&](int r, int64_t c) { return r < rows ? Lane::load(grad[first + r] + c) : Lane(0.0f); },
      [&](int r, int64_t c, Lane x) {
        if (r < rows) x.store(grad[first + r] + c);
      });
}

void load_queries(const Backward& call, const Head& head, QueryBlock& block) {
  const int64_t width = call.shape.width;
  copy_rows(head.query, block.start, block.count, width, call.scale, block.scaled_query);
  copy_rows(head.grad, block.start, block.count, width, 1.0f, block.grad);
  for (int64_t r = 0; r < block.count; ++r)
    block.minus_dot[r] = -dot(block.grad + r * width, head.out[block.start + r], width);
  std::fill(block.minus_dot + block.count, block.minus_dot + kQueryBlock, 0.0f);
}

/// All queries of a head against one block of keys.
void head_against(const Backward& call, const Head& head, const KeyBlock& keys, QueryBlock& block) {
  const Shape& shape = call.shape;
  const int64_t width = shape.width;
  for (block.start = shape.causal ? keys.start / kQueryBlock * kQueryBlock : 0; block.start < shape.queries;
       block.start += kQueryBlock) {
    block.count = std::min(kQueryBlock, shape.queries - block.start);
    load_queries(call, head, block);
    // Causal: tiles before the block of keys see none of it.
    const int64_t from = shape.causal ? std::max<int64_t>(0, keys.start - block.start) : 0;
    make_probabilities(call, head, keys, block, from);
    make_grad_scores(call, head, keys, block, from);
    for (int64_t j = 0; j < keys.count; j += kTileRows) {
      const int64_t sees = shape.causal ? std::max<int64_t>(0, keys.start + j - block.start) : 0;
      if (sees >= block.count) break;
      const int rows = static_cast<int>(std::min<int64_t>(kTileRows, keys.count - j));
      key_tile(block.probabilities + sees * kScoreStride + j, block.grad + sees * width, block.count - sees, width,
               head.grad_value, keys.start + j, rows);
      key_tile(block.grad_scores + sees * kScoreStride + j, block.scaled_query + sees * width, block.count - sees,
               width, head.grad_key, keys.start + j, rows);
    }
  }
}

void clear(const Rows<float>& rows, int64_t first, int64_t count, int64_t width) {
  for (int64_t r = first; r < first + count; ++r) std::fill(rows[r], rows[r] + width, 0.0f);
}

}  // namespace

void backward(const Backward& call, int64_t batch, int64_t key_head) {
  const Shape& shape = call.shape;
  const int64_t width = shape.width, group = shape.heads / shape.key_heads;
  const auto key = call.key.of(batch, key_head), value = call.value.of(batch, key_head);
  Head head;
  head.grad_key = call.grad_key.of(batch, key_head);
  head.grad_value = call.grad_value.of(batch, key_head);

  constexpr int64_t kScores = kQueryBlock * kScoreStride;
  Scratch scratch(3 * kKeyBlock * width + 2 * kQueryBlock * width + kQueryBlock + 2 * kScores);
  KeyBlock keys;
  keys.keys = scratch.take(kKeyBlock * width);
  keys.values = scratch.take(kKeyBlock * width);
  keys.scaled_keys = scratch.take(kKeyBlock * width);
  QueryBlock block;
  block.scaled_query = scratch.take(kQueryBlock * width);
  block.grad = scratch.take(kQueryBlock * width);
  block.minus_dot = scratch.take(kQueryBlock);
  block.probabilities = scratch.take(kScores);
  block.grad_scores = scratch.take(kScores);

  for (keys.start = 0; keys.start < shape.keys; keys.start += kKeyBlock) {
    keys.count = std::min(kKeyBlock, shape.keys - keys.start);
    pack_panels(key, keys.start, keys.count, width, keys.keys);
    pack_panels(value, keys.start, keys.count, width, keys.values);
    copy_rows(key, keys.start, keys.count, width, call.scale, keys.scaled_keys);
    clear(head.grad_key, keys.start, keys.count, width);
    clear(head.grad_value, keys.start, keys.count, width);
    for (int64_t h = key_head * group; h < (key_head + 1) * group; ++h) {
      head.grad = call.grad.of(batch, h);
      head.query = call.query.of(batch, h);
      head.out = call.out.of(batch, h);
      head.logsumexp = call.logsumexp.of(batch, h);
      head.mask = mask_of(call.mask, batch, h);
      head.grad_query = call.grad_query.of(batch, h);
      head_against(call, head, keys, block);
    }
  }
}

}  // namespace ae::device::host::attention
