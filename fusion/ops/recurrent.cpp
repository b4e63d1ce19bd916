// Steps of recurrent networks after their matrix products. Gates are separate operands: slices of [batch, gates *
// size].
#include "fusion/ops/expression.h"

namespace ae::fusion {
namespace {

/// Sum of gate k from the input and from the hidden state; biases, if there are any, come behind `biases` in the same
/// order: all of the input's, then all of the hidden state's.
class Gates {
 public:
  Gates(OpContext& context, int gates, int biases) : context_(context), gates_(gates), biases_(biases) {}
  Expr from_input(int k) const { return part(k, biases_ + k); }
  Expr from_hidden(int k) const { return part(gates_ + k, biases_ + gates_ + k); }
  Expr sum(int k) const { return from_input(k) + from_hidden(k); }

 private:
  Expr part(int gate, int bias) const {
    const Expr value = input(context_, gate);
    return bias < context_.inputs() ? value + input(context_, bias) : value;
  }

  OpContext& context_;
  int gates_, biases_;
};

/// Derivatives of sigmoid and tanh, from their results.
Expr sigmoid_slope(Expr s) { return (1.0 - s) * s; }
Expr tanh_slope(Expr t) { return 1.0 - t * t; }

///   in   input gates (in, forget, cell, out), hidden gates (4), cx[, biases (8)]
///   out  hy, cy, activated gates (4)
void lstm_cell(OpContext& context) {
  const Gates gates(context, 4, 9);
  const Expr in = sigmoid(gates.sum(0)), forget = sigmoid(gates.sum(1));
  const Expr cell = tanh(gates.sum(2)), out = sigmoid(gates.sum(3));
  const Expr cy = forget * input(context, 8) + in * cell;
  context.store_result(0, (out * tanh(cy)).id);
  context.store_result(1, cy.id);
  context.store_result(2, in.id);
  context.store_result(3, forget.id);
  context.store_result(4, cell.id);
  context.store_result(5, out.id);
}

///   in   activated gates (4), cx, cy, [grad_hy if bit 0 of attribute 0], [grad_cy if bit 1]; one of them at least
///   out  gradients of the gates (4), grad_cx
void lstm_cell_backward(OpContext& context) {
  const bool has_hy = context.attribute(0) & 1, has_cy = context.attribute(0) & 2;
  const Expr in = input(context, 0), forget = input(context, 1), cell = input(context, 2), out = input(context, 3);
  const Expr cx = input(context, 4), t = tanh(input(context, 5));
  Expr grad_out = out.constant(0), grad_state = grad_out;
  if (has_hy) {
    const Expr grad = input(context, 6);
    grad_out = grad * t * sigmoid_slope(out);
    grad_state = grad * out * tanh_slope(t);
  }
  if (has_cy) {
    const Expr grad = input(context, has_hy ? 7 : 6);
    grad_state = has_hy ? grad_state + grad : grad;
  }
  context.store_result(0, (grad_state * cell * sigmoid_slope(in)).id);
  context.store_result(1, (grad_state * cx * sigmoid_slope(forget)).id);
  context.store_result(2, (grad_state * in * tanh_slope(cell)).id);
  context.store_result(3, grad_out.id);
  context.store_result(4, (grad_state * forget).id);
}

///   in   input gates (reset, update, new), hidden gates (3), hx[, biases (6)]
///   out  hy, reset, update, new, hx, hidden part of new
void gru_cell(OpContext& context) {
  const Gates gates(context, 3, 7);
  const Expr reset = sigmoid(gates.sum(0)), update = sigmoid(gates.sum(1)), hidden = gates.from_hidden(2);
  const Expr fresh = tanh(gates.from_input(2) + reset * hidden), hx = input(context, 6);
  context.store_result(0, (fresh + update * (hx - fresh)).id);
  context.store_result(1, reset.id);
  context.store_result(2, update.id);
  context.store_result(3, fresh.id);
  context.store_result(4, hx.id);
  context.store_result(5, hidden.id);
}

///   in   grad_hy, reset, update, new, hx, hidden part of new
///   out  gradients of the input gates (3), of the hidden gates (3), grad_hx
void gru_cell_backward(OpContext& context) {
  const Expr grad = input(context, 0), reset = input(context, 1), update = input(context, 2);
  const Expr fresh = input(context, 3), hx = input(context, 4), hidden = input(context, 5);
  const Expr grad_update = grad * (hx - fresh) * sigmoid_slope(update);
  const Expr grad_fresh = grad * (1.0 - update) * tanh_slope(fresh);
  const Expr grad_reset = grad_fresh * hidden * sigmoid_slope(reset);
  for (const int first : {0, 3}) {
    context.store_result(first, grad_reset.id);
    context.store_result(first + 1, grad_update.id);
  }
  context.store_result(2, grad_fresh.id);
  context.store_result(5, (grad_fresh * reset).id);
  context.store_result(6, (grad * update).id);
}

constexpr BuilderEntry kBuilders[] = {
    {Opcode::lstm_cell, lstm_cell},
    {Opcode::lstm_cell_backward, lstm_cell_backward},
    {Opcode::gru_cell, gru_cell},
    {Opcode::gru_cell_backward, gru_cell_backward},
};

}  // namespace

std::span<const BuilderEntry> recurrent_builders() { return kBuilders; }

}  // namespace ae::fusion
