// Normalizations over the reduced dimensions; inputs and attributes as in opcode.h. Statistics (mean, rstd, rrms) are
// computed in the compute type and stored in the dtypes of their outputs, fp32 for half inputs. All inputs besides the
// tensor itself may have other dtypes than the common one (fp32 weights with half activations).
#include "fusion/ops/expression.h"

namespace ae::fusion {
namespace {

/// A statistic, if the node has an output for it.
void store_statistic(OpContext& context, int i, Expr value) {
  if (i < context.outputs()) context.store(i, value.as(context.output_type(i)).id);
}

void layer_norm(OpContext& context) {
  const Expr a = input(context, 0), count = parameter(context, 1);
  const Expr mean = reduce_sum(a) / count;
  const Expr centred = a - mean;
  const Expr rstd = rsqrt(reduce_sum(centred * centred) / count + parameter(context, 2));
  Expr result = centred * rstd;
  int next = 3;
  if (context.attribute(0) & 1) result = result * parameter(context, next++);
  if (context.attribute(0) & 2) result = result + parameter(context, next);
  context.store_result(0, result.id);
  store_statistic(context, 1, mean);
  store_statistic(context, 2, rstd);
}

void layer_norm_backward(OpContext& context) {
  const Expr grad = input(context, 0), rstd = parameter(context, 3), count = parameter(context, 4);
  const Expr normalized = (input(context, 1) - parameter(context, 2)) * rstd;
  const Expr weighted = context.inputs() > 5 ? grad * parameter(context, 5) : grad;
  const Expr mean = reduce_sum(weighted) / count;
  const Expr slope = reduce_sum(weighted * normalized) / count;
  context.store_result(0, (rstd * (weighted - mean - normalized * slope)).id);
}

/// Reduced over the rows; mean and rstd have one value a row, so they are full level here. Outputs are numbered
/// consecutively when only one is wanted.
void layer_norm_backward_affine(OpContext& context) {
  const Expr grad = input(context, 0);
  int next = 0;
  if (context.attribute(0) & 1) {
    const Expr normalized = (input(context, 1) - parameter(context, 2)) * parameter(context, 3);
    store_statistic(context, next++, reduce_sum(grad * normalized));
  }
  if (context.attribute(0) & 2) store_statistic(context, next, reduce_sum(grad));
}

void rms_norm(OpContext& context) {
  const Expr a = input(context, 0);
  const Expr rrms = rsqrt(reduce_sum(a * a) / parameter(context, 1) + parameter(context, 2));
  const Expr normalized = a * rrms;
  const Expr result = context.inputs() > 3 ? normalized * parameter(context, 3) : normalized;
  context.store_result(0, result.id);
  store_statistic(context, 1, rrms);
}

constexpr BuilderEntry kBuilders[] = {
    {Opcode::layer_norm, layer_norm},
    {Opcode::layer_norm_backward, layer_norm_backward},
    {Opcode::layer_norm_backward_affine, layer_norm_backward_affine},
    {Opcode::rms_norm, rms_norm},
};

}  // namespace

std::span<const BuilderEntry> norm_builders() { return kBuilders; }

}  // namespace ae::fusion
