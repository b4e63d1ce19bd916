// Scaled dot product attention of float32 heads, forward and backward, block by block so that scores never reach
// memory.
//
//   scores = scale * query @ key^T (+ mask);  out = softmax(scores) @ value;  logsumexp = log(sum(exp(scores)))
//
// With `causal`, query i sees the keys 0 … i, however many keys there are. A row that sees nothing (a mask of -inf) has
// zeros for its output and logsumexp, and gradients of zero. Each function does a part of the work that depends on no
// other part; the order of every sum depends on the shape alone, so parts give the same bits however they are grouped.
// Thread safe; scratch memory belongs to the thread: about a megabyte, whatever the lengths.
#pragma once

#include <cstdint>

namespace ae::device::host::attention {

struct Shape {
  int64_t batch = 1, heads = 1;
  int64_t key_heads = 1;  // divides heads: that many neighbouring query heads share one head of keys and values
  int64_t queries = 0, keys = 0, width = 0;
  bool causal = false;
};

/// The rows of all heads of an operand, strides in elements. The numbers of a row are adjacent.
template <class T>
struct Rows {
  T* data = nullptr;
  int64_t batch = 0, head = 0, row = 0;

  Rows of(int64_t batch_index, int64_t head_index) const {
    return {data + batch_index * batch + head_index * head, batch, head, row};
  }
  T* operator[](int64_t index) const { return data + index * row; }
};

/// Added to the scores, one number for each query and key; strides of 0 broadcast. No data: no mask.
struct Mask {
  const float* data = nullptr;
  int64_t batch = 0, head = 0, row = 0, column = 0;
};

struct Forward {
  Shape shape;
  float scale = 1;
  Rows<const float> query, key, value;
  Mask mask;
  Rows<float> out;
  Rows<float> logsumexp;  // rows of one number
};

struct Backward {
  Shape shape;
  float scale = 1;
  Rows<const float> grad, query, key, value, out, logsumexp;
  Mask mask;
  Rows<float> grad_query, grad_key, grad_value;
};

/// Widths that the kernels take: multiples of this, up to kWidest.
inline constexpr int64_t kWidthUnit = 16;
inline constexpr int64_t kWidest = 256;
/// Parts of a head's queries start at multiples of this.
inline constexpr int64_t kQueryUnit = 32;

/// Up to this many queries, the forward pass reads keys and values where they are.
inline constexpr int64_t kFewQueries = 2;

/// Output and logsumexp of the queries [first, first + count) of head `head` of batch item `batch`.
void forward(const Forward& call, int64_t batch, int64_t head, int64_t first, int64_t count);

/// The gradients of key head `key_head` and of all query heads that share it, of batch item `batch`.
void backward(const Backward& call, int64_t batch, int64_t key_head);

}  // namespace ae::device::host::attention
