// Convolution, forward and backward, as PyTorch calls it on PrivateUse1 devices. Arguments have been checked by then;
// what a direct call gets wrong, empty tensors and dtypes that CPU refuses run on the host, which says so.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/sum.h>

#include <array>
#include <optional>
#include <tuple>

#include "engine/library/convolution.h"
#include "engine/record/kernel.h"
#include "engine/record/result.h"
#include "engine/runtime.h"

namespace ae::engine {
namespace {

using at::Tensor;
using c10::IntArrayRef;
using fusion::FlushReason;
using Options = library::ConvolutionOptions;

Tensor read_on_host(const Tensor& tensor) { return host_alias(tensor, false, FlushReason::fallback); }

std::optional<Tensor> read_on_host(const std::optional<Tensor>& tensor) {
  return has(tensor) ? std::optional(read_on_host(*tensor)) : std::nullopt;
}

Tensor convolution_on_host(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                           const Options& o, int64_t groups) {
  const Tensor x = read_on_host(input), w = read_on_host(weight);
  const std::optional<Tensor> b = read_on_host(bias);
  const Tensor out = run_on_host([&] {
    return at::convolution(x, w, b, o.stride, o.padding, o.dilation, o.transposed, o.output_padding, groups);
  });
  count_fallback("aten::convolution");
  return adopt(out);
}

std::tuple<Tensor, Tensor, Tensor> backward_on_host(const Tensor& grad, const Tensor& input, const Tensor& weight,
                                                    const Options& o, int64_t groups, std::array<bool, 3> mask) {
  const Tensor g = read_on_host(grad), x = read_on_host(input), w = read_on_host(weight);
  const int64_t channels = grad.size(1);
  const auto [grad_input, grad_weight, grad_bias] = run_on_host([&] {
    return at::convolution_backward(g, x, w, IntArrayRef(channels), o.stride, o.padding, o.dilation, o.transposed,
                                    o.output_padding, groups, mask);
  });
  count_fallback("aten::convolution_backward");
  const auto back = [](const Tensor& host) { return host.defined() ? adopt(host) : Tensor(); };
  return {back(grad_input), back(grad_weight), back(grad_bias)};
}

/// The sizes of a convolution's result; none if an argument is not as it has to be, or without oneDNN: that setting is
/// for now, and a piece would see the one of its time.
std::optional<at::DimVector> result_sizes(const Tensor& input, const Tensor& weight, const Options& o, int64_t groups) {
  const int64_t dim = input.dim();
  if (!at::globalContext().userEnabledMkldnn()) return std::nullopt;
  if (dim < 3 || dim > 5 || weight.dim() != dim || groups < 1 || input.numel() == 0 || weight.numel() == 0)
    return std::nullopt;
  const auto spatial = static_cast<size_t>(dim - 2);
  for (const IntArrayRef list : {o.stride, o.padding, o.dilation, o.output_padding})
    if (list.size() != spatial) return std::nullopt;
  if (input.scalar_type() != weight.scalar_type() || !contains(kFloats, input.scalar_type())) return std::nullopt;
  const IntArrayRef in = input.sizes(), kernel = weight.sizes();
  if (kernel[0] % groups != 0 || in[1] != (o.transposed ? kernel[0] : kernel[1] * groups)) return std::nullopt;
  at::DimVector sizes{in[0], o.transposed ? kernel[1] * groups : kernel[0]};
  for (size_t d = 0; d < spatial; ++d) {
    if (o.stride[d] < 1 || o.dilation[d] < 1 || o.padding[d] < 0 || o.output_padding[d] < 0) return std::nullopt;
    const int64_t reach = o.dilation[d] * (kernel[d + 2] - 1) + 1;
    if (o.transposed && o.output_padding[d] >= std::max(o.stride[d], o.dilation[d])) return std::nullopt;
    const int64_t padded = in[d + 2] + 2 * o.padding[d];
    if (!o.transposed && padded < reach) return std::nullopt;
    sizes.push_back(o.transposed ? (in[d + 2] - 1) * o.stride[d] - 2 * o.padding[d] + reach + o.output_padding[d]
                                 : (padded - reach) / o.stride[d] + 1);
    if (sizes.back() < 1) return std::nullopt;
  }
  return sizes;
}

/// A result in the format that CPU's backends give: channels last if the input or the weight is; but in three
/// dimensions only oneDNN has that.
Tensor make_result(IntArrayRef sizes, const Tensor& input, const Tensor& weight) {
  const at::ScalarType type = input.scalar_type();
  const auto last = [](const Tensor& tensor) { return tensor.suggest_memory_format() != at::MemoryFormat::Contiguous; };
  const bool one_dnn = type == at::kFloat || type == at::kBFloat16;
  if ((last(input) || last(weight)) && (sizes.size() == 4 || one_dnn))
    return make_tensor(
        sizes, sizes.size() == 4 ? c10::get_channels_last_strides_2d(sizes) : c10::get_channels_last_strides_3d(sizes),
        type);
  return make_tensor(sizes, type);
}

Tensor convolution(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride,
                   IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                   int64_t groups) {
  check_devices({&input, &weight});
  if (has(bias)) check_devices({&*bias});
  const Options options{stride, padding, dilation, transposed, output_padding};
  const auto sizes = result_sizes(input, weight, options, groups);
  const bool fits = sizes && (!has(bias) || (bias->dim() == 1 && bias->sizes()[0] == (*sizes)[1] &&
                                             bias->scalar_type() == input.scalar_type()));
  if (!fits) return convolution_on_host(input, weight, bias, options, groups);
  const Tensor out = make_result(*sizes, input, weight);
  library::record_convolution(input, weight, bias, options, out);
  return out;
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(const Tensor& grad, const Tensor& input, const Tensor& weight,
                                                        IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                                                        bool transposed, IntArrayRef output_padding, int64_t groups,
                                                        std::array<bool, 3> mask) {
  check_devices({&grad, &input, &weight});
  const Options options{stride, padding, dilation, transposed, output_padding};
  const auto sizes = result_sizes(input, weight, options, groups);
  if (!sizes || !grad.sizes().equals(*sizes) || grad.scalar_type() != input.scalar_type())
    return backward_on_host(grad, input, weight, options, groups, mask);
  std::tuple<Tensor, Tensor, Tensor> grads;
  auto& [grad_input, grad_weight, grad_bias] = grads;
  if (mask[0]) {
    grad_input = make_result(input.sizes(), input, weight);
    library::record_convolution_grad_input(grad, weight, options, grad_input);
  }
  if (mask[1]) {
    grad_weight = make_result(weight.sizes(), input, weight);
    library::record_convolution_grad_weight(grad, input, options, grad_weight);
  }
  if (mask[2]) {
    at::DimVector dims{0};
    for (int64_t d = 2; d < grad.dim(); ++d) dims.push_back(d);
    grad_bias = at::sum(grad, dims);
  }
  return grads;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("convolution_overrideable", &convolution);
  m.impl("convolution_backward_overrideable", &convolution_backward);
}

}  // namespace
}  // namespace ae::engine
