// Losses that compare element with element, and their backwards. Inputs as in opcode.h; thresholds and scales are
// parameters. The order of operations is that of PyTorch's CPU kernels.
#include "fusion/ops/expression.h"

namespace ae::fusion {
namespace {

void finish(OpContext& context, Expr result) { context.store_result(0, result.id); }

void smooth_l1(OpContext& context) {
  const Expr distance = abs(input(context, 0) - input(context, 1)), beta = parameter(context, 2);
  finish(context, select(distance < beta, 0.5 * distance * distance / beta, distance - 0.5 * beta));
}

void huber(OpContext& context) {
  const Expr distance = abs(input(context, 0) - input(context, 1)), delta = parameter(context, 2);
  finish(context, select(distance <= delta, 0.5 * distance * distance, delta * (distance - 0.5 * delta)));
}

/// The gradient of both: one slope on each side of [-width, width], and a line in between.
void finish_slopes(OpContext& context, Expr difference, Expr width, Expr side, Expr middle) {
  finish(context, select(difference <= -width, -side, select(difference >= width, side, middle)));
}

void smooth_l1_backward(OpContext& context) {
  const Expr difference = input(context, 0) - input(context, 1), grad = input(context, 2);
  const Expr beta = parameter(context, 3), scale = parameter(context, 4);
  finish_slopes(context, difference, beta, scale * grad, scale * difference * grad / beta);
}

void huber_backward(OpContext& context) {
  const Expr difference = input(context, 0) - input(context, 1), grad = input(context, 2);
  const Expr delta = parameter(context, 3), scale = parameter(context, 4);
  finish_slopes(context, difference, delta, scale * grad * delta, scale * difference * grad);
}

/// Logarithms of probabilities are cut off at -100, so that a loss is finite.
void binary_cross_entropy(OpContext& context) {
  const Expr a = input(context, 0), target = input(context, 1);
  const Expr log_not = maximum(log1p(-a), -100.0), log_yes = maximum(log(a), -100.0);
  const Expr loss = (target - 1.0) * log_not - target * log_yes;
  finish(context, context.inputs() > 2 ? loss * input(context, 2) : loss);
}

void binary_cross_entropy_backward(OpContext& context) {
  const Expr a = input(context, 1), target = input(context, 2);
  const Expr slope = input(context, 0) * (a - target) / maximum((1.0 - a) * a, 1e-12);
  const Expr weighted = context.inputs() > 4 ? slope * input(context, 4) : slope;
  finish(context, weighted / parameter(context, 3));
}

constexpr BuilderEntry kBuilders[] = {
    {Opcode::smooth_l1, smooth_l1},
    {Opcode::smooth_l1_backward, smooth_l1_backward},
    {Opcode::huber, huber},
    {Opcode::huber_backward, huber_backward},
    {Opcode::binary_cross_entropy, binary_cross_entropy},
    {Opcode::binary_cross_entropy_backward, binary_cross_entropy_backward},
};

}  // namespace

std::span<const BuilderEntry> pointwise_loss_builders() { return kBuilders; }

}  // namespace ae::fusion
