// Softmax and its kin over the reduced dimensions; inputs as in opcode.h.
#include "fusion/ops/expression.h"

namespace ae::fusion {
namespace {

void softmax(OpContext& context) {
  const Expr a = input(context, 0);
  const Expr e = exp(a - reduce_max(a));
  context.store_result(0, (e / reduce_sum(e)).id);
}

void log_softmax(OpContext& context) {
  const Expr a = input(context, 0);
  const Expr centred = a - reduce_max(a);
  context.store_result(0, (centred - log(reduce_sum(exp(centred)))).id);
}

/// An infinite maximum is not subtracted: all -inf gives -inf, and +inf gives +inf.
void logsumexp(OpContext& context) {
  const Expr a = input(context, 0);
  const Expr max = reduce_max(a);
  const Expr shift = select(is_inf(max), 0.0, max);
  context.store_result(0, (log(reduce_sum(exp(a - shift))) + shift).id);
}

void softmax_backward(OpContext& context) {
  const Expr grad = input(context, 0), out = input(context, 1);
  context.store_result(0, ((grad - reduce_sum(grad * out)) * out).id);
}

void log_softmax_backward(OpContext& context) {
  const Expr grad = input(context, 0), out = input(context, 1);
  context.store_result(0, (grad - exp(out) * reduce_sum(grad)).id);
}

constexpr BuilderEntry kBuilders[] = {
    {Opcode::softmax, softmax},
    {Opcode::log_softmax, log_softmax},
    {Opcode::logsumexp, logsumexp},
    {Opcode::softmax_backward, softmax_backward},
    {Opcode::log_softmax_backward, log_softmax_backward},
};

}  // namespace

std::span<const BuilderEntry> softmax_builders() { return kBuilders; }

}  // namespace ae::fusion
