// Attention by ATen's flash kernels for CPU, written straight into the outputs.
//
//   attention           in(query, key, value[, mask]) -> out, logsumexp [batch, heads, length]
//   attention_backward  in(grad, query, key, value, out, logsumexp[, mask]) -> grad_query, grad_key, grad_value
// All four-dimensional: [batch, heads, length, width]. Attribute 0: causal; attribute 1: there is a scale, scalar 0;
// attribute 2: there is a mask (floating point).
// Pieces are groups of the batch, or of the heads when the batch is 1.

// The kernels are reached through dispatch stubs, whose signatures inside libtorch depend on these.
#if defined(__x86_64__)
#define HAVE_AVX512_CPU_DEFINITION
#define HAVE_AVX2_CPU_DEFINITION
#endif
#include <ATen/native/transformers/attention.h>

#include <optional>

#include "engine/library/call.h"
#include "engine/library/operators.h"
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

/// ATen's kernels take [batch, length, heads, width] for what they write, and for all operands of the backward.
at::Tensor turn(const at::Tensor& tensor) { return tensor.transpose(1, 2); }

Call make_attention(const fusion::NodeView& node) {
  return make_call(groups_of(whole(node), 0, 1), [options = options_of(node)](Tensors t, Scalars scalars) {
    std::optional<at::Tensor> mask;
    if (options.masked) mask = t[3];
    at::native::flash_attention_kernel(at::kCPU, turn(t[t.size() - 2]), turn(t[t.size() - 1]), t[0], t[1], t[2], 0.0,
                                       options.causal, mask, scale_of(options, scalars));
  });
}

Call make_attention_backward(const fusion::NodeView& node) {
  return make_call(groups_of(whole(node), 1, 2), [options = options_of(node)](Tensors t, Scalars scalars) {
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
