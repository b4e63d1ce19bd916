// Cells of LSTM and GRU, which PyTorch calls on devices only: one node each, and one for its backward.
#include <tuple>

#include "engine/record/kernel.h"
#include "engine/record/reduce.h"
#include "engine/record/result.h"

namespace ae::engine {
namespace {

using at::Tensor;
using Optional = std::optional<Tensor>;
using Parts = c10::SmallVector<Tensor, 24>;

/// Appends the equal parts that the last dimension of a tensor is made of.
void split(const Tensor& whole, int64_t count, Parts& parts) {
  at::DimVector sizes(whole.sizes());
  sizes.back() /= count;
  const int64_t step = sizes.back() * whole.strides().back();
  for (int64_t k = 0; k < count; ++k) {
    parts.push_back(
        make_tensor(whole.storage(), sizes, whole.strides(), whole.storage_offset() + k * step, whole.scalar_type()));
  }
}

c10::SmallVector<Input, 24> as_inputs(const Parts& parts) {
  c10::SmallVector<Input, 24> inputs;
  for (const Tensor& part : parts) inputs.emplace_back(part);
  return inputs;
}

/// A cell's step: [batch, gates * size] on the device, all of one floating dtype.
void check_step(const char* name, const Tensor& gates, int64_t count, std::initializer_list<const Tensor*> others) {
  check_devices({&gates});
  TORCH_CHECK_NOT_IMPLEMENTED(contains(kFloats, gates.scalar_type()), name, " not implemented for '",
                              gates.scalar_type(), "'");
  TORCH_CHECK(gates.dim() == 2 && gates.size(1) % count == 0, name, ": expected gates of shape [batch, ", count,
              " * hidden_size], but got ", gates.sizes());
  for (const Tensor* other : others) {
    check_devices({other});
    TORCH_CHECK(other->scalar_type() == gates.scalar_type(), name, ": expected all tensors to have the dtype ",
                gates.scalar_type(), ", but found ", other->scalar_type());
  }
}

void check_shape(const char* name, const Tensor& tensor, int64_t batch, int64_t size) {
  TORCH_CHECK(tensor.dim() == 2 && tensor.size(0) == batch && tensor.size(1) == size, name,
              ": expected a tensor of shape [", batch, ", ", size, "], but got ", tensor.sizes());
}

/// Adds the parts of both biases; PyTorch gives both or none.
void split_biases(const char* name, const Optional& input_bias, const Optional& hidden_bias, int64_t count,
                  const Tensor& gates, Parts& parts) {
  TORCH_CHECK(has(input_bias) == has(hidden_bias), name, ": expected both biases or none");
  if (!has(input_bias)) return;
  for (const Tensor* bias : {&*input_bias, &*hidden_bias}) {
    check_step(name, gates, count, {bias});
    TORCH_CHECK(bias->dim() == 1 && bias->size(0) == gates.size(1), name, ": expected biases of ", gates.size(1),
                " elements, but got ", bias->sizes());
    split(*bias, count, parts);
  }
}

Tensor summed_over_batch(const Tensor& gates) {
  const int64_t batch = 0;
  return Kernel<"sum.dim_IntList", &sum>::functional(gates, at::IntArrayRef(batch), false, std::nullopt);
}

void record(Opcode opcode, const Parts& inputs, const Parts& outputs, int64_t attribute = 0) {
  if (outputs[0].numel() != 0)
    record_pointwise(opcode, outputs[0].scalar_type(), as_inputs(inputs), outputs, {attribute});
}

std::tuple<Tensor, Tensor, Tensor> lstm_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& cx,
                                             const Optional& input_bias, const Optional& hidden_bias) {
  constexpr const char* kName = "_thnn_fused_lstm_cell";
  check_step(kName, input_gates, 4, {&hidden_gates, &cx});
  const int64_t batch = input_gates.size(0), size = input_gates.size(1) / 4;
  check_shape(kName, hidden_gates, batch, 4 * size);
  check_shape(kName, cx, batch, size);
  Parts inputs;
  split(input_gates, 4, inputs);
  split(hidden_gates, 4, inputs);
  inputs.push_back(cx);
  split_biases(kName, input_bias, hidden_bias, 4, input_gates, inputs);
  const at::ScalarType type = cx.scalar_type();
  Parts outputs{make_tensor({batch, size}, type), make_tensor({batch, size}, type)};
  const Tensor workspace = make_tensor({batch, 4 * size}, type);
  split(workspace, 4, outputs);
  record(Opcode::lstm_cell, inputs, outputs);
  return {outputs[0], outputs[1], workspace};
}

std::tuple<Tensor, Tensor, Tensor> lstm_cell_backward(const Optional& grad_hy, const Optional& grad_cy,
                                                      const Tensor& cx, const Tensor& cy, const Tensor& workspace,
                                                      bool has_bias) {
  constexpr const char* kName = "_thnn_fused_lstm_cell_backward";
  if (!has(grad_hy) && !has(grad_cy)) return {};
  check_step(kName, workspace, 4, {&cx, &cy});
  const int64_t batch = workspace.size(0), size = workspace.size(1) / 4;
  Parts inputs;
  split(workspace, 4, inputs);
  for (const Tensor* state : {&cx, &cy}) {
    check_shape(kName, *state, batch, size);
    inputs.push_back(*state);
  }
  for (const Optional* grad : {&grad_hy, &grad_cy}) {
    if (!has(*grad)) continue;
    check_step(kName, workspace, 4, {&**grad});
    check_shape(kName, **grad, batch, size);
    inputs.push_back(**grad);
  }
  const Tensor grad_gates = make_tensor({batch, 4 * size}, cx.scalar_type());
  Parts outputs;
  split(grad_gates, 4, outputs);
  outputs.push_back(make_tensor({batch, size}, cx.scalar_type()));
  record(Opcode::lstm_cell_backward, inputs, outputs, (has(grad_hy) ? 1 : 0) | (has(grad_cy) ? 2 : 0));
  return {grad_gates, outputs.back(), has_bias ? summed_over_batch(grad_gates) : Tensor()};
}

std::tuple<Tensor, Tensor> gru_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& hx,
                                    const Optional& input_bias, const Optional& hidden_bias) {
  constexpr const char* kName = "_thnn_fused_gru_cell";
  check_step(kName, input_gates, 3, {&hidden_gates, &hx});
  const int64_t batch = input_gates.size(0), size = input_gates.size(1) / 3;
  check_shape(kName, hidden_gates, batch, 3 * size);
  check_shape(kName, hx, batch, size);
  Parts inputs;
  split(input_gates, 3, inputs);
  split(hidden_gates, 3, inputs);
  inputs.push_back(hx);
  split_biases(kName, input_bias, hidden_bias, 3, input_gates, inputs);
  Parts outputs{make_tensor({batch, size}, hx.scalar_type())};
  const Tensor workspace = make_tensor({batch, 5 * size}, hx.scalar_type());
  split(workspace, 5, outputs);
  record(Opcode::gru_cell, inputs, outputs);
  return {outputs[0], workspace};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> gru_cell_backward(const Tensor& grad_hy, const Tensor& workspace,
                                                                     bool has_bias) {
  constexpr const char* kName = "_thnn_fused_gru_cell_backward";
  check_step(kName, workspace, 5, {&grad_hy});
  const int64_t batch = workspace.size(0), size = workspace.size(1) / 5;
  check_shape(kName, grad_hy, batch, size);
  Parts inputs{grad_hy}, outputs;
  split(workspace, 5, inputs);
  const Tensor grad_input = make_tensor({batch, 3 * size}, grad_hy.scalar_type());
  const Tensor grad_hidden = make_tensor({batch, 3 * size}, grad_hy.scalar_type());
  split(grad_input, 3, outputs);
  split(grad_hidden, 3, outputs);
  outputs.push_back(make_tensor({batch, size}, grad_hy.scalar_type()));
  record(Opcode::gru_cell_backward, inputs, outputs);
  return {grad_input, grad_hidden, outputs.back(), has_bias ? summed_over_batch(grad_input) : Tensor(),
          has_bias ? summed_over_batch(grad_hidden) : Tensor()};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_thnn_fused_lstm_cell", &lstm_cell);
  m.impl("_thnn_fused_lstm_cell_backward_impl", &lstm_cell_backward);
  m.impl("_thnn_fused_gru_cell", &gru_cell);
  m.impl("_thnn_fused_gru_cell_backward", &gru_cell_backward);
}

}  // namespace
}  // namespace ae::engine
