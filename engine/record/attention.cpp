// Scaled dot product attention: the flash kernels run wherever they would run on the CPU; elsewhere PyTorch's own
// composition of matrix products and softmax does.
#include <ATen/ExpandUtils.h>
#include <ATen/SDPBackend.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/_fused_sdp_choice_cpu_dispatch.h>
#include <ATen/ops/empty.h>

#include <array>
#include <tuple>

#include "engine/library/operators.h"
#include "engine/record/kernel.h"
#include "engine/record/result.h"

namespace ae::engine {

using at::Tensor;

/// CPU's own choice, which looks at shapes, strides, dtypes and settings only.
int64_t choose_attention(const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& mask,
                         double dropout, bool causal, std::optional<double> scale, bool grouped) {
  std::optional<Tensor> plain = mask;
  // On devices that are not the CPU, the rule asks for more of a mask's strides than the CPU's kernel does.
  if (has(mask) && mask->dim() > 0 && mask->stride(-1) != 1) {
    plain = at::empty(mask->sizes(), mask->options().device(at::kMeta));
    plain->set_requires_grad(mask->requires_grad());
  }
  const int64_t choice = at::cpu::_fused_sdp_choice(query, key, value, plain, dropout, causal, scale, grouped);
  return choice == static_cast<int64_t>(at::SDPBackend::flash_attention)
             ? static_cast<int64_t>(at::SDPBackend::overrideable)
             : choice;
}

namespace {

/// Contiguous [batch, length, heads, …] seen as [batch, heads, length, …].
Tensor make_turned(const Tensor& like, int64_t dims, at::ScalarType type) {
  const auto sizes = like.sizes().slice(0, dims);
  at::DimVector strides(dims);
  const int64_t width = dims == 4 ? sizes[3] : 1;
  strides[0] = sizes[1] * sizes[2] * width;
  strides[1] = width;
  strides[2] = sizes[1] * width;
  if (dims == 4) strides[3] = 1;
  return make_tensor(sizes, strides, type);
}

std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor> attention(
    const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& bias, double dropout,
    bool causal, bool return_debug_mask, std::optional<double> scale) {
  check_devices({&query, &key, &value});
  if (has(bias)) check_devices({&*bias});
  TORCH_CHECK(choose_attention(query, key, value, bias, dropout, causal, scale, /*grouped=*/true) ==
                      static_cast<int64_t>(at::SDPBackend::overrideable) &&
                  !return_debug_mask &&
                  (!has(bias) || bias->scalar_type() == query.scalar_type() ||
                   bias->scalar_type() == compute_scalar_type(query.scalar_type())),
              "scaled_dot_product_attention: these arguments are not for the fused kernel of the neuron device; call "
              "torch.nn.functional.scaled_dot_product_attention, which chooses");
  const Tensor out =
      query.is_non_overlapping_and_dense()
          ? make_tensor(query.sizes(), query.strides(), query.scalar_type())
          : make_tensor(query.sizes(), at::infer_dense_strides(query.sizes(), query.strides()), query.scalar_type());
  const Tensor logsumexp = make_turned(query, 3, compute_scalar_type(query.scalar_type()));
  c10::SmallVector<Tensor, 4> inputs{query, key, value};
  if (has(bias)) inputs.push_back(*bias);
  if (query.numel() != 0)
    record_library(library::kAttention, inputs, {out, logsumexp}, {causal, scale.has_value(), has(bias)},
                   {scale.value_or(0)});
  return {out, logsumexp, Tensor(), Tensor(), query.size(2), key.size(2), Tensor(), Tensor(), Tensor()};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> attention_backward(
    const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& bias,
    std::array<bool, 4> mask, const Tensor& out, const Tensor& logsumexp, const Tensor&, const Tensor&, c10::SymInt,
    c10::SymInt, double, bool causal, const Tensor&, const Tensor&, std::optional<double> scale) {
  TORCH_CHECK(!(mask[3] && bias.defined()),
              "scaled_dot_product_attention: the fused kernel of the neuron device has no "
              "gradient of its mask");
  check_devices({&grad, &query, &key, &value, &out, &logsumexp});
  const Tensor grads[] = {make_turned(query, 4, query.scalar_type()), make_turned(key, 4, key.scalar_type()),
                          make_turned(value, 4, value.scalar_type())};
  c10::SmallVector<Tensor, 7> inputs{grad, query, key, value, out, logsumexp};
  if (bias.defined()) inputs.push_back(bias);
  if (query.numel() != 0)
    record_library(library::kAttentionBackward, inputs, grads, {causal, scale.has_value(), bias.defined()},
                   {scale.value_or(0)});
  return {grads[0], grads[1], grads[2], Tensor()};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_fused_sdp_choice", choose_attention);
  m.impl("_scaled_dot_product_fused_attention_overrideable", attention);
  m.impl("_scaled_dot_product_fused_attention_overrideable_backward", attention_backward);
}

}  // namespace
}  // namespace ae::engine

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &ae::engine::choose_attention)
}  // namespace at::native
