// Attention, written straight into the outputs: float32 by device/host/attention, other types, odd widths and reduced
// precision (precision.h) by ATen's flash kernels for CPU. Shapes, strides, dtypes and that setting alone decide.
//
//   attention           in(query, key, value[, mask]) -> out, logsumexp [batch, heads, length]
//   attention_backward  in(grad, query, key, value, out, logsumexp[, mask]) -> grad_query, grad_key, grad_value
// All four-dimensional: [batch, heads, length, width]. Attribute 0: causal; attribute 1: there is a scale, scalar 0;
// attribute 2: there is a mask (floating point).
// Our pieces are groups of heads or, forward, parts of a head's queries. ATen's are groups of the batch, or of the
// heads when the batch is 1.

// The kernels are reached through dispatch stubs, whose signatures inside libtorch depend on these.
#if defined(__x86_64__)
#define HAVE_AVX512_CPU_DEFINITION
#define HAVE_AVX2_CPU_DEFINITION
#endif
#include <ATen/native/transformers/attention.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "device/host/attention/attention.h"
#include "engine/library/call.h"
#include "engine/library/operators.h"
#include "engine/library/precision.h"
#include "engine/record/record.h"

namespace ae::engine::library {
namespace {

using Call = std::shared_ptr<const device::LibraryCall>;
using Tensors = std::span<at::Tensor>;

constexpr double kSmallAttention = 2e6;  // floating-point operations that are not worth a second piece
constexpr int kPieces = 8;

/// The operands cut along the batch, or along the heads. A mask that is broadcast there is not cut. `query` and `key`
/// are positions of these operands.
std::vector<Piece> groups_of(const Piece& all, size_t query, size_t key) {
  const Operand &q = all[query], &k = all[key];
  const double operations = 4.0 * static_cast<double>(q.numel()) * static_cast<double>(k.sizes[2]);
  const bool by_heads = q.sizes[0] == 1 && q.sizes[1] == k.sizes[1];
  const int dim = by_heads ? 1 : 0;
  const Cut groups = cut(q.sizes[dim], operations < kSmallAttention ? 1 : kPieces);
  std::vector<Piece> pieces(groups.count);
  for (int p = 0; p < groups.count; ++p) {
    for (const Operand& operand : all) {
      const bool whole = operand.dim() < 3 || operand.sizes[dim] != q.sizes[dim];
      pieces[p].push_back(whole ? operand : operand.narrow(dim, groups.start(p), groups.length(p)));
    }
  }
  return pieces;
}

struct Options {
  bool causal, scaled, masked;
};

Options options_of(const fusion::NodeView& node) {
  const auto attributes = attributes_of(node);
  return {attributes[0] != 0, attributes[1] != 0, attributes[2] != 0};
}

std::optional<double> scale_of(const Options& options, Scalars scalars) {
  return options.scaled ? std::optional(scalars[0]) : std::nullopt;
}

// ------------------------------------------------------------------------------------------------------ Our kernels

namespace host = device::host::attention;

constexpr double kPieceAim = 3e6;  // floating-point operations of a piece, about 50 us
constexpr int kMostPieces = 16;
constexpr int64_t kFewHeads = 8;  // fewer heads than this are cut

/// Heads [first_head, first_head + heads) of the batch's, queries [first, first + count) of each.
struct Part {
  int64_t first_head, heads, first, count;
};

double operations_of(const host::Shape& shape) {
  return (shape.causal ? 2.0 : 4.0) * static_cast<double>(shape.batch * shape.heads * shape.queries) *
         static_cast<double>(shape.keys * shape.width);
}

std::vector<Part> head_parts(int64_t heads, double operations, int64_t queries) {
  const Cut groups = cut(heads, static_cast<int>(std::clamp(operations / kPieceAim, 1.0, double(kMostPieces))));
  std::vector<Part> parts;
  for (int p = 0; p < groups.count; ++p) parts.push_back({groups.start(p), groups.length(p), 0, queries});
  return parts;
}

/// Where part `index` of `count` begins, so that all have the same work: row i of a causal head has i keys.
int64_t query_boundary(const host::Shape& shape, int index, int count) {
  const double share = static_cast<double>(index) / count;
  const double rows = static_cast<double>(shape.queries) * (shape.causal ? std::sqrt(share) : share);
  const auto units = static_cast<int64_t>(rows / host::kQueryUnit + 0.5);
  return index == count ? shape.queries : std::min(units * host::kQueryUnit, shape.queries);
}

std::vector<Part> forward_parts(const host::Shape& shape) {
  const double operations = operations_of(shape);
  const int64_t heads = shape.batch * shape.heads;
  if (heads >= kFewHeads || operations < 2 * kPieceAim * static_cast<double>(heads))
    return head_parts(heads, operations, shape.queries);
  const int count = static_cast<int>(std::min(operations / kPieceAim, double(kMostPieces))) / static_cast<int>(heads);
  std::vector<Part> parts;
  for (int64_t head = 0; head < heads; ++head) {
    for (int p = 0; p < count; ++p) {
      const int64_t first = query_boundary(shape, p, count), end = query_boundary(shape, p + 1, count);
      if (first < end) parts.push_back({head, 1, first, end - first});
    }
  }
  return parts;
}

host::Shape shape_of(const Operand& query, const Operand& key, bool causal) {
  return {query.sizes[0], query.sizes[1], key.sizes[1], query.sizes[2], key.sizes[2], query.sizes[3], causal};
}

/// Whether our kernels can take these operands, of which `heads` have rows of the heads' width.
bool can_be_ours(const fusion::NodeView& node, std::span<const Operand> all, std::initializer_list<size_t> heads) {
  if (reduces_products(node)) return false;
  for (const Operand& operand : all)
    if (operand.dtype != at::kFloat) return false;
  return std::all_of(heads.begin(), heads.end(), [&](size_t i) {
    const Operand& operand = all[i];
    const int64_t width = operand.sizes[3];
    return operand.strides[3] == 1 && width % host::kWidthUnit == 0 && width <= host::kWidest;
  });
}

// Whether ours are the faster ones. With less than a tile of queries and many keys, most of our time goes into packing.
constexpr int64_t kTile = 8;
bool forward_is_faster(const host::Shape& shape) {
  return shape.queries <= host::kFewQueries || shape.queries >= kTile || shape.keys <= 256;
}
bool backward_is_faster(const host::Shape& shape) { return shape.queries >= kTile || shape.keys <= 64; }

template <class T>
host::Rows<T> rows_of(const Operand& operand, void* base) {
  return {static_cast<T*>(base) + operand.offset, operand.strides[0], operand.strides[1], operand.strides[2]};
}

host::Mask mask_of(const Operand& mask, void* base, const host::Shape& shape) {
  const Operand wide = mask.expand({shape.batch, shape.heads, shape.queries, shape.keys});
  return {static_cast<const float*>(base) + wide.offset, wide.strides[0], wide.strides[1], wide.strides[2],
          wide.strides[3]};
}

class OurAttention : public device::LibraryCall {
 public:
  OurAttention(Piece all, Options options, host::Shape shape, std::vector<Part> parts)
      : all_(std::move(all)), options_(options), shape_(shape), parts_(std::move(parts)) {}
  int pieces() const override { return static_cast<int>(parts_.size()); }

 protected:
  float scale(const uint64_t* scalars) const {
    const double root = std::sqrt(static_cast<double>(shape_.width));
    return static_cast<float>(scale_of(options_, Scalars(scalars)).value_or(1 / root));
  }
  template <class T>
  host::Rows<T> rows(void* const* addresses, size_t i) const {
    return rows_of<T>(all_[i], addresses[i]);
  }
  host::Mask mask(void* const* addresses, size_t i) const {
    return options_.masked ? mask_of(all_[i], addresses[i], shape_) : host::Mask{};
  }

  const Piece all_;
  const Options options_;
  const host::Shape shape_;
  const std::vector<Part> parts_;
};

class OurForward final : public OurAttention {
 public:
  using OurAttention::OurAttention;
  void run(int piece, void* const* addresses, const uint64_t* scalars) const override {
    const size_t outputs = all_.size() - 2;
    const auto in = [&](size_t i) { return rows<const float>(addresses, i); };
    const host::Forward call{shape_,
                             scale(scalars),
                             in(0),
                             in(1),
                             in(2),
                             mask(addresses, 3),
                             rows<float>(addresses, outputs),
                             rows<float>(addresses, outputs + 1)};
    const Part& part = parts_[piece];
    for (int64_t i = part.first_head; i < part.first_head + part.heads; ++i)
      host::forward(call, i / shape_.heads, i % shape_.heads, part.first, part.count);
  }
};

class OurBackward final : public OurAttention {
 public:
  using OurAttention::OurAttention;
  void run(int piece, void* const* addresses, const uint64_t* scalars) const override {
    const size_t outputs = all_.size() - 3;
    const auto in = [&](size_t i) { return rows<const float>(addresses, i); };
    const auto out = [&](size_t i) { return rows<float>(addresses, outputs + i); };
    const host::Backward call{shape_, scale(scalars),     in(0),  in(1),  in(2), in(3), in(4),
                              in(5),  mask(addresses, 6), out(0), out(1), out(2)};
    const Part& part = parts_[piece];
    for (int64_t i = part.first_head; i < part.first_head + part.heads; ++i)
      host::backward(call, i / shape_.key_heads, i % shape_.key_heads);
  }
};

// ---------------------------------------------------------------------------------------------------- ATen's kernels

/// ATen's kernels take [batch, length, heads, width] for what they write, and for all operands of the backward.
at::Tensor turn(const at::Tensor& tensor) { return tensor.transpose(1, 2); }

Call make_attention(const fusion::NodeView& node) {
  const Options options = options_of(node);
  const Piece all = whole(node);
  const host::Shape shape = shape_of(all[0], all[1], options.causal);
  if (can_be_ours(node, all, {0, 1, 2, all.size() - 2}) && forward_is_faster(shape))
    return std::make_shared<OurForward>(all, options, shape, forward_parts(shape));
  return make_call(groups_of(all, 0, 1), [options](Tensors t, Scalars scalars) {
    std::optional<at::Tensor> mask;
    if (options.masked) mask = t[3];
    at::native::flash_attention_kernel(at::kCPU, turn(t[t.size() - 2]), turn(t[t.size() - 1]), t[0], t[1], t[2], 0.0,
                                       options.causal, mask, scale_of(options, scalars));
  });
}

Call make_attention_backward(const fusion::NodeView& node) {
  const Options options = options_of(node);
  const Piece all = whole(node);
  const size_t outputs = all.size() - 3;
  const host::Shape shape = shape_of(all[1], all[2], options.causal);
  if (can_be_ours(node, all, {0, 1, 2, 3, 4, outputs, outputs + 1, outputs + 2}) && backward_is_faster(shape)) {
    const double operations = 2.5 * operations_of(shape);  // five products, where the forward pass has two
    return std::make_shared<OurBackward>(all, options, shape,
                                         head_parts(shape.batch * shape.key_heads, operations, shape.queries));
  }
  return make_call(groups_of(all, 1, 2), [options](Tensors t, Scalars scalars) {
    std::optional<at::Tensor> mask;
    if (options.masked) mask = t[6];
    const at::Tensor* grads = &t[t.size() - 3];
    for (int i = 0; i < 3; ++i) grads[i].zero_();
    at::native::flash_attention_backward_kernel(at::kCPU, turn(grads[0]), turn(grads[1]), turn(grads[2]), turn(t[0]),
                                                turn(t[1]), turn(t[2]), turn(t[3]), turn(t[4]), turn(t[5]), 0.0,
                                                options.causal, mask, scale_of(options, scalars));
  });
}

}  // namespace

const int kAttention = register_library("attention", make_attention);
const int kAttentionBackward = register_library("attention_backward", make_attention_backward);

}  // namespace ae::engine::library
