// The gradient of an embedding's weight: the rows of the gradient are added to the rows that their indices name, one
// after the other, as ATen's kernel does; but straight into the output and in pieces, which are stretches of columns.
//
//   embedding_backward  in(grad [indices…, width] (contiguous), indices) -> out [rows, width] (contiguous);
//                       attributes: the row that gets nothing; scale by frequency
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>

#include "engine/library/call.h"
#include "engine/library/operators.h"
#include "engine/record/record.h"

namespace ae::engine::library {
namespace {

constexpr int64_t kPieceElements = int64_t{1} << 15;
constexpr int64_t kColumns = 16;  // pieces are multiples of a cache line of floats

struct Options {
  int64_t padding;
  bool by_frequency;
};

std::vector<int64_t> count_uses(const int64_t* indices, int64_t count, int64_t rows) {
  std::vector<int64_t> uses(rows, 0);
  for (int64_t i = 0; i < count; ++i)
    if (indices[i] >= 0 && indices[i] < rows) ++uses[indices[i]];
  return uses;
}

/// Half types are rounded after each addition, as ATen does it.
template <class T>
void add_rows(const at::Tensor& grad, const at::Tensor& indices, at::Tensor& out, const Options& options) {
  using Compute = std::conditional_t<sizeof(T) == 2, float, T>;
  const int64_t count = indices.numel(), width = out.size(1), rows = out.size(0);
  const int64_t grad_stride = grad.stride(0), out_stride = out.stride(0);
  const auto* index = indices.const_data_ptr<int64_t>();
  const T* source = grad.const_data_ptr<T>();
  T* target = out.mutable_data_ptr<T>();
  for (int64_t row = 0; row < rows; ++row) std::fill_n(target + row * out_stride, width, T(0));
  const std::vector<int64_t> uses = options.by_frequency ? count_uses(index, count, rows) : std::vector<int64_t>();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = index[i];
    if (row < 0 || row >= rows || row == options.padding) continue;
    T* sum = target + row * out_stride;
    const T* addend = source + i * grad_stride;
    const Compute scale = options.by_frequency ? Compute(1) / static_cast<Compute>(uses[row]) : Compute(1);
    for (int64_t c = 0; c < width; ++c)
      sum[c] = static_cast<T>(static_cast<Compute>(sum[c]) + static_cast<Compute>(addend[c]) * scale);
  }
}

std::shared_ptr<const device::LibraryCall> make_embedding_backward(const fusion::NodeView& node) {
  const Piece all = whole(node);
  const auto attributes = attributes_of(node);
  const int64_t width = all[2].sizes[1], count = all[1].numel();
  Operand grad = all[0];
  grad.sizes = {count, width};
  grad.strides = {width, 1};
  const int64_t wanted = std::clamp((grad.numel() + all[2].numel()) / kPieceElements, int64_t{1}, int64_t{8});
  const Cut columns = cut(width, static_cast<int>(wanted), kColumns);
  std::vector<Piece> pieces;
  for (int p = 0; p < columns.count; ++p) {
    const auto part = [&](const Operand& operand) { return operand.narrow(1, columns.start(p), columns.length(p)); };
    pieces.push_back({part(grad), all[1], part(all[2])});
  }
  const Options options{attributes[0], attributes[1] != 0};
  return make_call(std::move(pieces), [options](std::span<at::Tensor> t, Scalars) {
    const at::Tensor indices = t[1].reshape({-1}).to(at::kLong);
    switch (t[0].scalar_type()) {
      case at::kFloat: return add_rows<float>(t[0], indices, t[2], options);
      case at::kDouble: return add_rows<double>(t[0], indices, t[2], options);
      case at::kBFloat16: return add_rows<c10::BFloat16>(t[0], indices, t[2], options);
      default: return add_rows<c10::Half>(t[0], indices, t[2], options);
    }
  });
}

}  // namespace

const int kEmbeddingBackward = register_library("embedding_backward", make_embedding_backward);

}  // namespace ae::engine::library
