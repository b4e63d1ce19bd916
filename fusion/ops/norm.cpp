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
/// consecutively when only one is wanted. Bit 2 of attribute 0: there is no mean (RMS norm).
void layer_norm_backward_affine(OpContext& context) {
  const Expr grad = input(context, 0);
  const bool centred = !(context.attribute(0) & 4);
  int next = 0;
  if (context.attribute(0) & 1) {
    const Expr a = input(context, 1);
    const Expr normalized = centred ? (a - parameter(context, 2)) * parameter(context, 3) : a * parameter(context, 2);
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

// Batch, group and RMS norm come as several nodes, so that the planner can make one kernel of them where a reduced
// extent fits the cache, and separate passes where it does not:
//   forward   mean, norm_rstd, norm_apply
//   backward  norm_backward_coefficients, norm_backward_input; layer_norm_backward_affine where the parameters'
//             gradients are sums over other dimensions
// Bits of their attribute 0:
enum NormFlag : int64_t {
  kWeight = 1,  // a weight that differs from element to element of a reduction
  kBias = 2,
  kCentred = 4,   // there is a mean
  kChannels = 8,  // batch norm: weight and bias have one value for each reduction
  kRunning = 16,  // running statistics are updated
};

///   in   a, mean, count, eps, [weight if kWeight], [running_mean, running_var, momentum, 1 - momentum, divisor of the
///        unbiased variance if kRunning]
///   out  rstd, [rstd [* weight] if kChannels], [running_mean, running_var]
void norm_rstd(OpContext& context) {
  const int64_t flags = context.attribute(0);
  const Expr mean = parameter(context, 1), centred = input(context, 0) - mean;
  Expr squares = reduce_sum(centred * centred);
  // PyTorch's CPU keeps a batch's squares and what it divides them to in the parameters' dtype.
  const auto rounded = [&](Expr value) {
    return flags & kChannels ? value.as(context.output_type(0)).as(value.type()) : value;
  };
  squares = rounded(squares);
  const Expr rstd = rounded(rsqrt(rounded(squares / parameter(context, 2)) + parameter(context, 3)));
  int in = 4, out = 0;
  store_statistic(context, out++, rstd);
  if (flags & kChannels) store_statistic(context, out++, flags & kWeight ? rstd * parameter(context, in++) : rstd);
  if (!(flags & kRunning)) return;
  const Expr momentum = parameter(context, in + 2), rest = parameter(context, in + 3);
  const Expr variance = rounded(squares / parameter(context, in + 4));
  store_statistic(context, out, momentum * mean + rest * parameter(context, in));
  store_statistic(context, out + 1, momentum * variance + rest * parameter(context, in + 1));
}

void norm_scale(OpContext& context) {
  const Expr rstd = rsqrt(input(context, 0) + parameter(context, 1));
  context.store_result(0, (context.inputs() > 2 ? rstd * parameter(context, 2) : rstd).id);
}

void norm_apply(OpContext& context) {
  const int64_t flags = context.attribute(0);
  Expr scale = parameter(context, 2);
  int next = 3;
  if (flags & kWeight) scale = scale * parameter(context, next++);
  Expr result = (input(context, 0) - parameter(context, 1)) * scale;
  if (flags & kBias) result = result + parameter(context, next);
  context.store_result(0, result.id);
}

///   in   grad, a, [mean if kCentred], rstd, count, [weight if kWeight or kChannels and there is one]
///   out  slope, [offset if kCentred], [grad_weight, grad_bias, rstd [* weight] if kChannels]
/// such that the gradient of a is scale * (grad [* weight] - offset - (a - mean) * slope).
void norm_backward_coefficients(OpContext& context) {
  const int64_t flags = context.attribute(0);
  int in = 2, out = 0;
  Expr grad = input(context, 0), a = input(context, 1);
  if (flags & kCentred) a = a - parameter(context, in++);
  const Expr rstd = parameter(context, in), count = parameter(context, in + 1);
  in += 2;
  if (!(flags & kChannels) && (flags & kWeight)) grad = grad * parameter(context, in);
  const Expr dot = reduce_sum(grad * a);
  store_statistic(context, out++, dot * rstd * rstd / count);
  if (!(flags & kCentred)) return;
  const Expr sum = reduce_sum(grad);
  store_statistic(context, out++, sum / count);
  if (!(flags & kChannels)) return;
  store_statistic(context, out, dot * rstd);
  store_statistic(context, out + 1, sum);
  store_statistic(context, out + 2, flags & kWeight ? rstd * parameter(context, in) : rstd);
}

///   in   grad, a, scale, slope, [mean, offset if kCentred], [weight if kWeight]
void norm_backward_input(OpContext& context) {
  const int64_t flags = context.attribute(0);
  int next = 4;
  Expr grad = input(context, 0), a = input(context, 1);
  Expr offset = grad;
  if (flags & kCentred) {
    a = a - parameter(context, next);
    offset = parameter(context, next + 1);
    next += 2;
  }
  if (flags & kWeight) grad = grad * parameter(context, next);
  if (flags & kCentred) grad = grad - offset;
  context.store_result(0, (parameter(context, 2) * (grad - a * parameter(context, 3))).id);
}

constexpr BuilderEntry kBuilders[] = {
    {Opcode::layer_norm, layer_norm},
    {Opcode::layer_norm_backward, layer_norm_backward},
    {Opcode::layer_norm_backward_affine, layer_norm_backward_affine},
    {Opcode::rms_norm, rms_norm},
    {Opcode::norm_rstd, norm_rstd},
    {Opcode::norm_scale, norm_scale},
    {Opcode::norm_apply, norm_apply},
    {Opcode::norm_backward_coefficients, norm_backward_coefficients},
    {Opcode::norm_backward_input, norm_backward_input},
};

}  // namespace

std::span<const BuilderEntry> norm_builders() { return kBuilders; }

}  // namespace ae::fusion
