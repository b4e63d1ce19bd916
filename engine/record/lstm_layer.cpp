// LSTM, layer by layer: where CPU hands a whole layer to oneDNN, so that autograd's formulas are CPU's, the device has
// a node for the steps and matrix products over the whole sequence. All else is PyTorch's own composition of cells.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/lstm_native.h>
#include <ATen/ops/mkldnn_rnn_layer.h>
#include <ATen/ops/stack.h>
#include <c10/core/GradMode.h>

#include <optional>
#include <tuple>

#include "engine/library/operators.h"
#include "engine/record/kernel.h"
#include "engine/record/recurrent_layer.h"
#include "engine/record/result.h"

namespace ae::engine {
namespace {

using at::Tensor;
using Optional = std::optional<Tensor>;
using LayerResult = std::tuple<Tensor, Tensor, Tensor, Tensor>;
using LayerGrads = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;
constexpr int64_t kLstmMode = 2;  // among oneDNN's kinds of networks

/// A layer's memory for its backward: the activated gates [steps, batch, 4 * size], then the cells' states [steps,
/// batch, size], in one tensor, as the operator has it.
struct Workspace {
  Tensor all, gates, cells;

  Workspace(Tensor memory, int64_t steps, int64_t batch, int64_t size) : all(std::move(memory)) {
    const int64_t row = 4 * size;
    gates = make_tensor(all.storage(), {steps, batch, row}, {batch * row, row, 1}, all.storage_offset(), at::kFloat);
    cells = make_tensor(all.storage(), {steps, batch, size}, {batch * size, size, 1},
                        all.storage_offset() + steps * batch * row, at::kFloat);
  }
};

LayerResult lstm_layer(const Tensor& input, const Tensor& input_weight, const Tensor& hidden_weight,
                       const Tensor& input_bias, const Tensor& hidden_bias, const Tensor& hx, const Tensor& cx,
                       bool reverse, at::IntArrayRef batch_sizes, int64_t mode, int64_t hidden_size, int64_t num_layers,
                       bool has_biases, bool bidirectional, bool batch_first, bool train) {
  check_devices({&input, &input_weight, &hidden_weight, &hx, &cx});
  const Tensor states[] = {hx.unsqueeze(0), cx.unsqueeze(0)};
  c10::SmallVector<Tensor, 4> parameters{input_weight, hidden_weight};
  if (has_biases) parameters.append({input_bias, hidden_bias});
  if (mode != kLstmMode || !batch_sizes.empty() ||
      !recurrent::can_be_layers(input, states, parameters, 4, {has_biases, 1, 0, train, false, false}))
    return Fallback<LayerResult(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                const Tensor&, const Tensor&, bool, at::IntArrayRef, int64_t, int64_t, int64_t, bool,
                                bool, bool, bool)>::call("mkldnn_rnn_layer", input, input_weight, hidden_weight,
                                                         input_bias, hidden_bias, hx, cx, reverse, batch_sizes, mode,
                                                         hidden_size, num_layers, has_biases, bidirectional,
                                                         batch_first, train);
  const int64_t steps = input.size(0), batch = input.size(1), size = hx.size(1);
  const bool keep = c10::GradMode::is_enabled();
  const Workspace workspace(make_tensor({steps * batch * (keep ? 5 : 4) * size}, at::kFloat), steps, batch, size);
  recurrent::add_input(input, input_weight, has_biases ? input_bias + hidden_bias : Tensor(),
                       workspace.gates.view({steps * batch, 4 * size}));
  const Tensor y = make_tensor({steps, batch, size}, at::kFloat);
  const Tensor hy = make_tensor(hx.sizes(), at::kFloat), cy = make_tensor(cx.sizes(), at::kFloat);
  c10::SmallVector<Tensor, 5> outputs{workspace.gates, y, hy, cy};
  if (keep) outputs.push_back(workspace.cells);
  record_library(library::kLstm,
                 {workspace.gates, hidden_weight.contiguous(), recurrent::with_rows(hx), recurrent::with_rows(cx)},
                 outputs, {reverse, keep});
  return {y, hy, cy, keep ? workspace.all : Tensor()};
}

LayerGrads lstm_layer_backward(const Tensor& input, const Tensor& input_weight, const Tensor& hidden_weight,
                               const Tensor& input_bias, const Tensor& hidden_bias, const Tensor& hx, const Tensor& cx,
                               const Tensor& y, const Tensor& hy, const Tensor& cy, const Optional& grad_y,
                               const Optional& grad_hy, const Optional& grad_cy, bool reverse, int64_t mode,
                               int64_t hidden_size, int64_t num_layers, bool has_biases, bool train, bool bidirectional,
                               at::IntArrayRef batch_sizes, bool batch_first, const Tensor& memory) {
  if (!has(grad_y) && !has(grad_hy) && !has(grad_cy)) return {};
  if (memory.scalar_type() != at::kFloat)  // not of a layer of ours
    return Fallback<LayerGrads(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                               const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Optional&,
                               const Optional&, const Optional&, bool, int64_t, int64_t, int64_t, bool, bool, bool,
                               at::IntArrayRef, bool, const Tensor&)>::call("mkldnn_rnn_layer_backward", input,
                                                                            input_weight, hidden_weight, input_bias,
                                                                            hidden_bias, hx, cx, y, hy, cy, grad_y,
                                                                            grad_hy, grad_cy, reverse, mode,
                                                                            hidden_size, num_layers, has_biases, train,
                                                                            bidirectional, batch_sizes, batch_first,
                                                                            memory);
  const Workspace workspace(memory, y.size(0), y.size(1), y.size(2));
  c10::SmallVector<Tensor, 7> inputs{workspace.gates, workspace.cells, recurrent::with_rows(cx),
                                     hidden_weight.contiguous()};
  int64_t there = 0, bit = 1;
  for (const Optional* grad : {&grad_y, &grad_hy, &grad_cy}) {
    if (has(*grad)) {
      inputs.push_back(recurrent::with_rows(**grad));
      there |= bit;
    }
    bit *= 2;
  }
  const Tensor grad_gates = make_tensor(workspace.gates.sizes(), at::kFloat);
  const Tensor grad_hx = make_tensor(hx.sizes(), at::kFloat), grad_cx = make_tensor(cx.sizes(), at::kFloat);
  record_library(library::kLstmBackward, inputs, {grad_gates, grad_hx, grad_cx}, {reverse, there});
  Tensor bias, other_bias;
  if (has_biases) {
    bias = recurrent::grad_bias(grad_gates);
    other_bias = bias.clone();
  }
  return {recurrent::grad_input(grad_gates, input_weight),
          recurrent::grad_input_weight(grad_gates, input),
          recurrent::grad_hidden_weight(grad_gates, y, hx, reverse),
          bias,
          other_bias,
          grad_hx,
          grad_cx};
}

std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& input, at::TensorList states, at::TensorList parameters,
                                        bool has_biases, int64_t num_layers, double dropout, bool train,
                                        bool bidirectional, bool batch_first) {
  const recurrent::Options options{has_biases, num_layers, dropout, train, bidirectional, batch_first};
  // Without oneDNN CPU's LSTM is a composition too, of operators with other derivatives.
  if (states.size() != 2 || !at::globalContext().userEnabledMkldnn() ||
      !recurrent::can_be_layers(input, states, parameters, 4, options))
    return at::native::lstm(input, states, parameters, has_biases, num_layers, dropout, train, bidirectional,
                            batch_first);
  const Tensor hx = states[0].contiguous(), cx = states[1].contiguous();
  std::vector<Tensor> hy, cy;
  const auto direction = [&](int64_t index, const Tensor& sequence, bool reverse) {
    const Tensor* own = parameters.data() + index * options.parameters();
    const Tensor none = has_biases ? Tensor() : own[0].detach();  // what is not read has no gradient either
    const auto [y, h, c, workspace] = at::mkldnn_rnn_layer(
        sequence, own[0], own[1], has_biases ? own[2] : none, has_biases ? own[3] : none, hx[index], cx[index], reverse,
        {}, kLstmMode, hx.size(2), num_layers, has_biases, bidirectional, batch_first, train);
    hy.push_back(h);
    cy.push_back(c);
    return y;
  };
  const Tensor output = recurrent::run_layers(input, options, direction);
  return {output, at::stack(hy), at::stack(cy)};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("mkldnn_rnn_layer", &lstm_layer);
  m.impl("mkldnn_rnn_layer_backward", &lstm_layer_backward);
  m.impl("lstm.input", &lstm);
}
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) { m.impl("lstm.input", &lstm); }

}  // namespace
}  // namespace ae::engine
