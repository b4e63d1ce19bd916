#include "engine/record/recurrent_layer.h"

#include <ATen/TensorOperators.h>
#include <ATen/TensorSubclassLikeUtils.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/sum.h>

#include "engine/record/shape.h"

namespace ae::engine::recurrent {
namespace {

using at::Tensor;

bool is_plain(const Tensor& tensor, int64_t dims) {
  return tensor.defined() && !at::isTensorSubclassLike(tensor) && is_neuron(tensor) &&
         tensor.scalar_type() == at::kFloat && tensor.dim() == dims;
}

bool is_matrix(const Tensor& tensor, int64_t rows, int64_t columns) {
  return is_plain(tensor, 2) && tensor.size(0) == rows && tensor.size(1) == columns;
}

bool is_vector(const Tensor& tensor, int64_t size) { return is_plain(tensor, 1) && tensor.size(0) == size; }

/// [steps, batch, …] as [steps * batch, …].
Tensor flat(const Tensor& sequence) { return sequence.reshape({-1, sequence.size(2)}); }

}  // namespace

bool can_be_layers(const Tensor& input, at::TensorList states, at::TensorList parameters, int64_t gates,
                   const Options& options) {
  if (!is_plain(input, 3) || input.numel() == 0 || options.layers < 1) return false;
  const int64_t count = options.layers * options.directions(), batch = input.size(options.batch_first ? 0 : 1);
  for (const Tensor& state : states) {
    if (!is_plain(state, 3) || !state.sizes().equals(states[0].sizes()) || state.numel() == 0) return false;
    if (state.size(0) != count || state.size(1) != batch) return false;
  }
  if (parameters.size() != static_cast<size_t>(count) * options.parameters()) return false;
  const int64_t size = states[0].size(2);
  for (int64_t i = 0; i < count; ++i) {
    const at::TensorList own = parameters.slice(i * options.parameters(), options.parameters());
    const int64_t inputs = i < options.directions() ? input.size(2) : size * options.directions();
    if (!is_matrix(own[0], gates * size, inputs) || !is_matrix(own[1], gates * size, size)) return false;
    for (const Tensor& bias : own.slice(2))
      if (!is_vector(bias, gates * size)) return false;
  }
  return true;
}

Tensor with_rows(const Tensor& tensor) {
  return tensor.size(-1) == 1 || tensor.stride(-1) != 1 ? tensor.contiguous() : tensor;
}

void add_input(const Tensor& input, const Tensor& weight, const Tensor& bias, Tensor out) {
  if (bias.defined())
    at::addmm_out(out, bias, flat(input), weight.t());
  else
    at::mm_out(out, flat(input), weight.t());
}

Tensor grad_input(const Tensor& grad_gates, const Tensor& weight) {
  return at::mm(flat(grad_gates), weight).view({grad_gates.size(0), grad_gates.size(1), weight.size(1)});
}

Tensor grad_input_weight(const Tensor& grad_gates, const Tensor& input) {
  return at::mm(flat(grad_gates).t(), flat(input));
}

Tensor grad_hidden_weight(const Tensor& grad_gates, const Tensor& y, const Tensor& hx, bool reverse) {
  const int64_t steps = y.size(0), first = reverse ? steps - 1 : 0;
  Tensor grad = at::mm(grad_gates.select(0, first).t(), hx);
  if (steps == 1) return grad;
  const Tensor later = grad_gates.narrow(0, reverse ? 0 : 1, steps - 1);
  return grad.addmm_(flat(later).t(), flat(y.narrow(0, reverse ? 1 : 0, steps - 1)));
}

Tensor grad_bias(const Tensor& grad_gates) { return at::sum(flat(grad_gates), 0); }

Tensor run_layers(const Tensor& input, const Options& options, Direction direction) {
  Tensor sequence = (options.batch_first ? input.transpose(0, 1) : input).contiguous();
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    c10::SmallVector<Tensor, 2> outputs;
    for (int64_t d = 0; d < options.directions(); ++d)
      outputs.push_back(direction(layer * options.directions() + d, sequence, d == 1));
    sequence = outputs.size() == 1 ? outputs[0] : at::cat(outputs, -1);
    if (options.dropout != 0 && options.train && layer + 1 < options.layers)
      sequence = at::dropout(sequence, options.dropout, true);
  }
  return options.batch_first ? sequence.transpose(0, 1) : sequence;
}

}  // namespace ae::engine::recurrent
