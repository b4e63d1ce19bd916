// A recurrent layer as a whole: which calls can be recorded so, and the products over a whole sequence.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

namespace ae::engine::recurrent {

/// What the modules of torch.nn call with.
struct Options {
  bool has_biases;
  int64_t layers;
  double dropout;
  bool train, bidirectional, batch_first;

  int64_t directions() const { return bidirectional ? 2 : 1; }
  size_t parameters() const { return has_biases ? 4 : 2; }  // of a layer's direction
};

/// True if layers can be recorded whole: float32 sequences with elements on the device, and all shapes as they have to
/// be. `states` are [layers * directions, batch, size]; the weights are [gates * size, …].
bool can_be_layers(const at::Tensor& input, at::TensorList states, at::TensorList parameters, int64_t gates,
                   const Options& options);

/// The same tensor, or a copy, of which the numbers of a row are adjacent.
at::Tensor with_rows(const at::Tensor& tensor);

/// What the input [steps, batch, inputs] gives to the gates, plus a bias if it is defined, written to `out` [steps *
/// batch, gates * size].
void add_input(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, at::Tensor out);

/// Gradients from those of the gates [steps, batch, gates * size], all contiguous: of the input, of its weight, of the
/// hidden state's weight, of a bias.
at::Tensor grad_input(const at::Tensor& grad_gates, const at::Tensor& weight);
at::Tensor grad_input_weight(const at::Tensor& grad_gates, const at::Tensor& input);
at::Tensor grad_hidden_weight(const at::Tensor& grad_gates, const at::Tensor& y, const at::Tensor& hx, bool reverse);
at::Tensor grad_bias(const at::Tensor& grad_gates);

/// Runs one direction of a layer, `index` counts all of them, and returns its output.
using Direction = c10::function_ref<at::Tensor(int64_t index, const at::Tensor& input, bool reverse)>;
/// All layers one after the other, dropout between them. Takes and gives sequences as the module's caller has them.
at::Tensor run_layers(const at::Tensor& input, const Options& options, Direction direction);

}  // namespace ae::engine::recurrent
