// Losses that pick one class of each row.
//
//   nll_gather  in(log_probabilities, target, ignore[, weight]) -> loss per row, weight per row
//               attr 0: the class dimension, which is the one reduced (negative counts from the end). target: i64, one
//               per row; weight: one per class. Rows whose target is `ignore` give 0 and weigh 0.
//   nll_backward  in(grad, target, ignore[, total][, weight]) -> grad_in: in the class of the row's target
//               -grad [/ total] [* weight], elsewhere 0. grad: one a row, or one; attr 0: bit 0 total, bit 1 weight;
//               attr 1: the class dimension (negative).
#include "fusion/ops/expression.h"

namespace ae::fusion {
namespace {

void nll_gather(OpContext& context) {
  const Expr logp = input(context, 0);
  const Expr target = raw_input(context, 1).as(DType::kI64), ignore = raw_input(context, 2).as(DType::kI64);
  const Expr hit = Expr{&context, context.index(static_cast<int>(context.attribute(0)))} == target;
  const Expr counts = target != ignore;
  // Selected before the sum, so that no NaN or infinity of another class gets into it.
  const Expr picked = -reduce_sum(select(hit, logp, 0.0));
  Expr loss = picked, weight = logp.constant(1);
  if (context.inputs() > 3) {
    weight = reduce_sum(select(hit, parameter(context, 3), 0.0));
    loss = picked * weight;
  }
  context.store_result(0, select(counts, loss, 0.0).id);
  context.store_result(1, select(counts, weight, 0.0).id);
}

void nll_backward(OpContext& context) {
  const Expr target = raw_input(context, 1).as(DType::kI64), ignore = raw_input(context, 2).as(DType::kI64);
  Expr grad = parameter(context, 0);
  int next = 3;
  if (context.attribute(0) & 1) grad = grad / parameter(context, next++);
  grad = -grad;
  if (context.attribute(0) & 2) grad = parameter(context, next) * grad;
  const Expr index{&context, context.index(static_cast<int>(context.attribute(1)))};
  context.store_result(0, select((index == target) & (target != ignore), grad, 0.0).id);
}

constexpr BuilderEntry kBuilders[] = {{Opcode::nll_gather, nll_gather}, {Opcode::nll_backward, nll_backward}};

}  // namespace

std::span<const BuilderEntry> loss_builders() { return kBuilders; }

}  // namespace ae::fusion
