// Embedding and the gradient of its weight.
#include "engine/library/operators.h"
#include "engine/record/update.h"

namespace ae::engine {
namespace {

using at::Tensor;

Tensor embedding(const Tensor& weight, const Tensor& indices, c10::SymInt padding_idx, bool scale_grad_by_freq,
                 bool sparse) {
  check_devices({&weight, &indices});
  if (weight.dim() != 2 || !is_index(indices) || weight.numel() == 0 || indices.numel() == 0 ||
      !is_recordable(weight.scalar_type())) {
    return Fallback<Tensor(const Tensor&, const Tensor&, c10::SymInt, bool, bool)>::call(
        "embedding", weight, indices, padding_idx, scale_grad_by_freq, sparse);
  }
  const auto fail = [](int64_t) { TORCH_CHECK_INDEX(false, "index out of range in self"); };
  const bool checked = check_values(indices, 0, weight.sizes()[0] - 1, fail);
  at::DimVector shape(indices.sizes());
  shape.push_back(weight.sizes()[1]);
  const Tensor out = make_tensor(shape, weight.scalar_type());
  record_library(library::kEmbedding, {weight, indices}, {out}, {}, {}, /*can_fail=*/!checked);
  return out;
}

Tensor embedding_dense_backward(const Tensor& grad, const Tensor& indices, c10::SymInt num_weights,
                                c10::SymInt padding_idx, bool scale_grad_by_freq) {
  check_devices({&grad, &indices});
  const int64_t rows = num_weights.expect_int(), padding = padding_idx.expect_int();
  const bool shapes_fit = grad.dim() == indices.dim() + 1 && rows > 0 && grad.numel() != 0 &&
                          grad.sizes().slice(0, indices.dim()).equals(indices.sizes());
  if (!shapes_fit || !is_index(indices) || !contains(kFloats, grad.scalar_type())) {
    return Fallback<Tensor(const Tensor&, const Tensor&, c10::SymInt, c10::SymInt, bool)>::call(
        "embedding_dense_backward", grad, indices, num_weights, padding_idx, scale_grad_by_freq);
  }
  const Tensor out = make_tensor({rows, grad.sizes().back()}, grad.scalar_type());
  record_library(library::kEmbeddingBackward, {grad.contiguous(), indices}, {out}, {padding, scale_grad_by_freq});
  return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("embedding", embedding);
  m.impl("embedding_dense_backward", embedding_dense_backward);
}

}  // namespace
}  // namespace ae::engine
