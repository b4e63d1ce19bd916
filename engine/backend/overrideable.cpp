// Operators that PyTorch calls on PrivateUse1 devices only, so that no CPU kernel of the same name could stand in:
// convolution, and the cells of LSTM and GRU, which are written with other operators and so are recorded.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

#include <array>
#include <optional>
#include <tuple>

#include "engine/backend/fallback.h"
#include "engine/backend/storage.h"
#include "engine/runtime.h"

namespace ae::engine {
namespace {

using at::Tensor;
using c10::IntArrayRef;
using fusion::FlushReason;

Tensor read_on_host(const Tensor& tensor) { return host_alias(tensor, false, FlushReason::fallback); }

Tensor convolution(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride,
                   IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                   int64_t groups) {
  const Tensor x = read_on_host(input), w = read_on_host(weight);
  std::optional<Tensor> b;
  if (bias && bias->defined()) b = read_on_host(*bias);
  const Tensor out = run_on_host(
      [&] { return at::convolution(x, w, b, stride, padding, dilation, transposed, output_padding, groups); });
  count_fallback("aten::convolution");
  return adopt(out);
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(const Tensor& grad, const Tensor& input, const Tensor& weight,
                                                        IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                                                        bool transposed, IntArrayRef output_padding, int64_t groups,
                                                        std::array<bool, 3> mask) {
  const Tensor g = read_on_host(grad), x = read_on_host(input), w = read_on_host(weight);
  const int64_t channels = grad.size(1);
  const auto [grad_input, grad_weight, grad_bias] = run_on_host([&] {
    return at::convolution_backward(g, x, w, IntArrayRef(channels), stride, padding, dilation, transposed,
                                    output_padding, groups, mask);
  });
  count_fallback("aten::convolution_backward");
  const auto back = [](const Tensor& host) { return host.defined() ? adopt(host) : Tensor(); };
  return {back(grad_input), back(grad_weight), back(grad_bias)};
}

Tensor with_bias(const Tensor& gates, const std::optional<Tensor>& bias) {
  return bias && bias->defined() ? gates + *bias : gates;
}

// Gates are input, forget, cell, output; the workspace holds their activations.
std::tuple<Tensor, Tensor, Tensor> lstm_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& cx,
                                             const std::optional<Tensor>& input_bias,
                                             const std::optional<Tensor>& hidden_bias) {
  const auto gates = with_bias(with_bias(input_gates + hidden_gates, input_bias), hidden_bias).chunk(4, 1);
  const Tensor in = at::sigmoid(gates[0]), forget = at::sigmoid(gates[1]);
  const Tensor cell = at::tanh(gates[2]), out = at::sigmoid(gates[3]);
  const Tensor cy = forget * cx + in * cell;
  const Tensor hy = out * at::tanh(cy);
  return {hy, cy, at::cat({in, forget, cell, out}, 1)};
}

std::tuple<Tensor, Tensor, Tensor> lstm_cell_backward(const std::optional<Tensor>& grad_hy,
                                                      const std::optional<Tensor>& grad_cy, const Tensor& cx,
                                                      const Tensor& cy, const Tensor& workspace, bool has_bias) {
  const auto gates = workspace.chunk(4, 1);
  const Tensor &in = gates[0], &forget = gates[1], &cell = gates[2], &out = gates[3];
  const Tensor tanh_cy = at::tanh(cy);
  Tensor grad_cell_state, grad_out;
  if (grad_hy && grad_hy->defined()) {
    grad_cell_state = *grad_hy * out * (1 - tanh_cy * tanh_cy);
    grad_out = *grad_hy * tanh_cy * (1 - out) * out;
  } else {
    grad_out = at::zeros_like(out);
  }
  if (grad_cy && grad_cy->defined())
    grad_cell_state = grad_cell_state.defined() ? grad_cell_state + *grad_cy : *grad_cy;
  if (!grad_cell_state.defined()) return {};
  const Tensor grad_in = grad_cell_state * cell * (1 - in) * in;
  const Tensor grad_forget = grad_cell_state * cx * (1 - forget) * forget;
  const Tensor grad_cell = grad_cell_state * in * (1 - cell * cell);
  const Tensor grad_gates = at::cat({grad_in, grad_forget, grad_cell, grad_out}, 1);
  return {grad_gates, grad_cell_state * forget, has_bias ? grad_gates.sum(0) : Tensor()};
}

// Gates are reset, update, new; the workspace holds their activations, hx, and the hidden part of the new gate.
std::tuple<Tensor, Tensor> gru_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& hx,
                                    const std::optional<Tensor>& input_bias, const std::optional<Tensor>& hidden_bias) {
  const auto from_input = with_bias(input_gates, input_bias).chunk(3, 1);
  const auto from_hidden = with_bias(hidden_gates, hidden_bias).chunk(3, 1);
  const Tensor reset = at::sigmoid(from_input[0] + from_hidden[0]),
               update = at::sigmoid(from_input[1] + from_hidden[1]);
  const Tensor fresh = at::tanh(from_input[2] + reset * from_hidden[2]);
  return {fresh + update * (hx - fresh), at::cat({reset, update, fresh, hx, from_hidden[2]}, 1)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> gru_cell_backward(const Tensor& grad_hy, const Tensor& workspace,
                                                                     bool has_bias) {
  const auto parts = workspace.chunk(5, 1);
  const Tensor &reset = parts[0], &update = parts[1], &fresh = parts[2], &hx = parts[3], &hidden = parts[4];
  const Tensor grad_update = grad_hy * (hx - fresh) * (1 - update) * update;
  const Tensor grad_fresh = grad_hy * (1 - update) * (1 - fresh * fresh);
  const Tensor grad_reset = grad_fresh * hidden * (1 - reset) * reset;
  const Tensor grad_input = at::cat({grad_reset, grad_update, grad_fresh}, 1);
  const Tensor grad_hidden = at::cat({grad_reset, grad_update, grad_fresh * reset}, 1);
  return {grad_input, grad_hidden, grad_hy * update, has_bias ? grad_input.sum(0) : Tensor(),
          has_bias ? grad_hidden.sum(0) : Tensor()};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("convolution_overrideable", &convolution);
  m.impl("convolution_backward_overrideable", &convolution_backward);
  m.impl("_thnn_fused_lstm_cell", &lstm_cell);
  m.impl("_thnn_fused_lstm_cell_backward_impl", &lstm_cell_backward);
  m.impl("_thnn_fused_gru_cell", &gru_cell);
  m.impl("_thnn_fused_gru_cell_backward", &gru_cell_backward);
}

}  // namespace ae::engine
