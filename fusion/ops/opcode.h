// The operators that a trace can hold. An operator is what PyTorch dispatched; how it decomposes into primitives is
// written once, in fusion/ops, and is the same in every mode. Library operators are run by a call of the device.
#pragma once

#include <cstdint>

namespace ae::fusion {

// Kinds of operators:
//   pointwise  all accesses have the node's shape (inputs are broadcast with stride 0); no reduced dimensions
//   indexed    pointwise, and the result depends on where in the node's dimensions an element stands: they are kept as
//              they are (a pointwise node over contiguous operands may be recorded as one dimension)
//   reduce     the node's shape is the input's; bits of `reduced` say which dimensions are reduced; accesses with
//              stride 0 in all reduced dimensions are kept level (outputs of reductions, statistics), others full level
//   library    every access has its own shape; run by a LibraryCall
//
// X(name, kind)  Inputs, attributes and scalars of each are documented with its builder in fusion/ops/*.cpp.
// clang-format off: one entry of the list after the other, as they belong together
#define AE_OPCODES(X)                                                                                                 \
  /* Pointwise operators that are one primitive on the common dtype: in(a[, b[, c]]) -> out. */                       \
  X(neg, pointwise) X(abs, pointwise) X(sign, pointwise) X(floor, pointwise) X(ceil, pointwise) X(trunc, pointwise)  \
  X(round, pointwise) X(sqrt, pointwise) X(reciprocal, pointwise) X(rsqrt, pointwise) X(exp, pointwise)              \
  X(exp2, pointwise) X(expm1, pointwise) X(log, pointwise) X(log2, pointwise) X(log10, pointwise)                    \
  X(log1p, pointwise) X(sin, pointwise) X(cos, pointwise) X(tan, pointwise) X(asin, pointwise) X(acos, pointwise)    \
  X(atan, pointwise) X(sinh, pointwise) X(cosh, pointwise) X(tanh, pointwise) X(erf, pointwise) X(erfc, pointwise)   \
  X(asinh, pointwise) X(acosh, pointwise) X(atanh, pointwise) X(erfinv, pointwise) X(erfcx, pointwise)                \
  X(lgamma, pointwise) X(digamma, pointwise) X(trigamma, pointwise) X(i0, pointwise) X(i0e, pointwise)                \
  X(i1, pointwise) X(i1e, pointwise) X(ndtri, pointwise) X(log_ndtr, pointwise)                                       \
  X(sigmoid, pointwise) X(logical_not, pointwise) X(bitwise_not, pointwise) X(isnan, pointwise) X(isinf, pointwise)   \
  X(add, pointwise) X(sub, pointwise) X(mul, pointwise) X(div, pointwise) X(floor_div, pointwise)                    \
  X(trunc_div, pointwise) X(remainder, pointwise) X(fmod, pointwise) X(pow, pointwise) X(atan2, pointwise)           \
  X(hypot, pointwise) X(maximum, pointwise) X(minimum, pointwise) X(fmax, pointwise) X(fmin, pointwise)              \
  X(eq, pointwise) X(ne, pointwise) X(lt, pointwise) X(le, pointwise) X(gt, pointwise) X(ge, pointwise)              \
  X(bitwise_and, pointwise) X(bitwise_or, pointwise) X(bitwise_xor, pointwise) X(shift_left, pointwise)              \
  X(shift_right, pointwise) X(copysign, pointwise)                                                                    \
  /* Pointwise operators of several primitives. */                                                                    \
  X(copy, pointwise)          /* in(a) -> out: a cast, or plain data movement; attr 0: bits kCopy… below */           \
  X(fill, pointwise)          /* in(value) -> out */                                                                  \
  X(arange, pointwise)        /* in(start, step) -> out: start + i * step */                                          \
  X(square, pointwise) X(frac, pointwise) X(relu, pointwise) X(logical_and, pointwise) X(logical_or, pointwise)      \
  X(logical_xor, pointwise)                                                                                           \
  X(add_scaled, pointwise)    /* in(a, b, alpha): a + alpha * b */                                                    \
  X(sub_scaled, pointwise)    /* in(a, b, alpha): a - alpha * b */                                                    \
  X(where, pointwise)         /* in(condition, a, b) */                                                               \
  X(clamp, pointwise)         /* in(a, low, high): min(max(a, low), high), NaN of a wins */                           \
  X(clamp_min, pointwise)     /* in(a, low) */                                                                        \
  X(clamp_max, pointwise)     /* in(a, high) */                                                                       \
  X(lerp, pointwise)          /* in(a, b, weight); attr 0: 0, or 1 = |weight| < 0.5 is known, 2 = >= 0.5 is */        \
  X(addcmul, pointwise)       /* in(a, b, c, value): a + value * b * c */                                             \
  X(addcdiv, pointwise)       /* in(a, b, c, value): a + value * (b / c) */                                           \
  X(threshold, pointwise)     /* in(a, threshold, value): a <= threshold ? value : a */                               \
  X(threshold_backward, pointwise) /* in(a, grad, threshold): a <= threshold ? 0 : grad */                            \
  X(leaky_relu, pointwise)    /* in(a, slope) */                                                                      \
  X(leaky_relu_backward, pointwise) /* in(a, grad, slope) */                                                          \
  X(elu, pointwise)           /* in(a, alpha, scale, input_scale) */                                                  \
  X(silu, pointwise) X(silu_backward, pointwise)             /* in(grad, a) */                                        \
  X(gelu, pointwise)          /* attr 0: 0 = erf, 1 = tanh */                                                         \
  X(gelu_backward, pointwise) /* in(grad, a); attr as gelu */                                                         \
  X(softplus, pointwise)      /* in(a, beta, threshold) */                                                            \
  X(softplus_backward, pointwise) /* in(grad, a, beta, threshold) */                                                  \
  X(tanh_backward, pointwise) /* in(grad, out): grad * (1 - out^2) */                                                 \
  X(sigmoid_backward, pointwise)  /* in(grad, out) */                                                                 \
  X(logit, pointwise)         /* in(a) */                                                                             \
  X(logit_backward, pointwise)    /* in(grad, a, low, high); attr 0: 1 = NaN outside of [low, high], else 0 */        \
  X(hardsigmoid, pointwise) X(hardsigmoid_backward, pointwise) /* in(grad, a) */                                      \
  X(hardswish, pointwise) X(hardswish_backward, pointwise)     /* in(grad, a) */                                      \
  X(hardtanh_backward, pointwise) /* in(grad, a, low, high) */                                                        \
  X(hardshrink, pointwise)    /* in(a, lambda) */                                                                     \
  X(softshrink, pointwise)    /* in(a, lambda) */                                                                     \
  X(shrink_backward, pointwise)   /* in(grad, a, lambda) */                                                           \
  X(mish, pointwise) X(mish_backward, pointwise)               /* in(grad, a) */                                      \
  X(elu_backward, pointwise)  /* in(grad, a or out, alpha, scale, input_scale); attr 0: 1 = out is given */           \
  X(log_sigmoid, pointwise)   /* in(a) -> out, exp(-|a|) */                                                           \
  X(log_sigmoid_backward, pointwise) /* in(grad, a, exp(-|a|)) */                                                     \
  X(prelu, pointwise) X(prelu_backward, pointwise) /* in([grad, ]a, weight) -> out, or grad_a, grad_weight */         \
  X(glu, pointwise)           /* in(a, b): a * sigmoid(b); attr 0: 1 = sigmoid(b) is rounded */                       \
  X(glu_backward, pointwise)  /* in(grad, a, b) -> gradient of b */                                                   \
  X(smooth_l1, pointwise)     /* in(a, b, beta) */                                                                    \
  X(smooth_l1_backward, pointwise) /* in(a, b, grad, beta, scale) */                                                  \
  X(huber, pointwise)         /* in(a, b, delta) */                                                                   \
  X(huber_backward, pointwise) /* in(a, b, grad, delta, scale) */                                                     \
  X(binary_cross_entropy, pointwise) /* in(a, target[, weight]) */                                                    \
  X(binary_cross_entropy_backward, pointwise) /* in(grad, a, target, count[, weight]) */                              \
  X(xlogy, pointwise) X(xlog1py, pointwise) X(logaddexp, pointwise) X(logaddexp2, pointwise) /* in(a, b) */           \
  X(heaviside, pointwise)     /* in(a, value at 0) */                                                                 \
  X(signbit, pointwise) X(isposinf, pointwise) X(isneginf, pointwise) X(sinc, pointwise) X(entr, pointwise)           \
  X(angle, pointwise)         /* of real numbers: 0 or pi */                                                          \
  X(round_decimals, pointwise) /* in(a, power of ten); attr 0: 1 = the power divides */                               \
  X(eye, indexed)             /* ones on the diagonal of the node's two dims */                                       \
  X(linspace, pointwise)      /* in(start, end, step, steps) */                                                       \
  X(nan_to_num, pointwise)    /* in(a, nan, posinf, neginf) */                                                        \
  X(mse, pointwise)           /* in(a, b): (a - b)^2 */                                                               \
  X(scaled_difference, pointwise) /* in(grad, a, b, scale): scale * (a - b) * grad */                                 \
  X(tril, indexed)            /* in(a); attr 0: diagonal; last two dims of the node; others -> 0 */                   \
  X(triu, indexed)                                                                                                  \
  X(fused_adamw, pointwise)   /* in(param, grad, m, v, [max_v], step, lr, beta1, beta2, wd, eps): see fusion/ops/optimizer.cpp */ \
  X(fused_sgd, pointwise)     /* in(param, grad[, momentum], numbers…): see fusion/ops/optimizer.cpp */               \
  X(fused_adagrad, pointwise) /* in(param, grad, sum, numbers…): see fusion/ops/optimizer.cpp */                      \
  X(amp_update_scale, pointwise) /* in(scale, successes, found_inf, growth, backoff, interval) -> scale, successes */ \
  X(norm_scale, pointwise)    /* in(variance, eps[, weight]): rsqrt(variance + eps) [* weight] */                     \
  X(norm_apply, pointwise)    /* in(a, mean, scale[, weight][, bias]); attr 0: bit 0 weight, bit 1 bias: norm.cpp */  \
  X(norm_backward_input, pointwise) /* in(grad, a, coefficients…): norm.cpp */                                        \
  X(lstm_cell, pointwise) X(lstm_cell_backward, pointwise)   /* see fusion/ops/recurrent.cpp */                       \
  X(gru_cell, pointwise) X(gru_cell_backward, pointwise)     /* see fusion/ops/recurrent.cpp */                       \
  /* Random: scalars seed, offset. */                                                                                 \
  X(uniform, pointwise)       /* in(from, to, seed, offset) */                                                        \
  X(normal, pointwise)        /* in(mean, std, seed, offset) */                                                       \
  X(bernoulli, pointwise)     /* in(p, seed, offset) -> 0 or 1 */                                                     \
  X(random_int, pointwise)    /* in(low, range, seed, offset): low + bits % range; 64 bits when attr 0 is 1 */        \
  X(exponential, pointwise)   /* in(lambda, seed, offset) */                                                          \
  X(dropout, pointwise)       /* in(a, keep_probability, scale, seed, offset) -> out, mask (bool) */                  \
  X(masked_scale, pointwise)  /* in(grad, mask, scale): grad * mask * scale */                                        \
  X(nll_backward, indexed)  /* in(grad, target, ignore[, total][, weight]) -> grad_in; attrs: bits, class dim */    \
  /* Reductions. */                                                                                                   \
  X(sum, reduce) X(prod, reduce) X(amax, reduce) X(amin, reduce) X(any, reduce) X(all, reduce)                        \
  X(mean, reduce)             /* in(a, count) */                                                                      \
  X(var, reduce)              /* in(a, count, divisor) -> var[, mean]; attr 0: 1 = standard deviation */              \
  X(norm, reduce)             /* in(a[, p]); attr 0: 0 = 2-norm, 1 = 1-norm, 2 = inf, 3 = -inf, 4 = 0-norm, 5 = p */  \
  X(logsumexp, reduce)                                                                                                \
  X(nansum, reduce)           /* NaN counts as 0 */                                                                   \
  X(count_nonzero, reduce)                                                                                            \
  X(first_index, reduce)      /* in(a, extreme) -> i64 index of the first that equals it; attr 0: dim, kMaxRank: position */ \
  X(softmax, reduce)          /* in(a) -> out */                                                                      \
  X(log_softmax, reduce)                                                                                              \
  X(softmax_backward, reduce) /* in(grad, out) -> grad_in */                                                          \
  X(log_softmax_backward, reduce)                                                                                     \
  X(layer_norm, reduce)       /* in(a, count, eps[, weight][, bias]) -> out, mean, rstd; attr 0: bit 0 weight, bit 1 bias */ \
  X(layer_norm_backward, reduce)   /* in(grad, a, mean, rstd, count[, weight]) -> grad_in */                          \
  X(layer_norm_backward_affine, reduce) /* in(grad, a, mean, rstd) -> grad_weight, grad_bias; attr 0: bit 0 / 1 which */ \
  X(rms_norm, reduce)         /* in(a, count, eps[, weight]) -> out, rrms */                                          \
  X(norm_rstd, reduce)        /* in(a, mean, count, eps[, weight][, running]) -> rstd[, scale][, running]: norm.cpp */ \
  X(norm_backward_coefficients, reduce) /* in(grad, a[, mean], rstd, count[, weight]) -> coefficients: norm.cpp */    \
  X(nll_gather, reduce)       /* in(logp, target, ignore[, weight]) -> loss, weight per row; attr 0: class dim */     \
  /* Library. */                                                                                                      \
  X(library, library)         /* attr 0: index into the engine's table of library operators */
// clang-format on

enum class Opcode : uint16_t {
#define AE_X(name, kind) name,
  AE_OPCODES(AE_X)
#undef AE_X
};

// Attribute 0 of copy: what PyTorch's lazy views left to be done.
inline constexpr int64_t kCopyConjugated = 1, kCopyNegated = 2;

enum class OpKind : uint8_t { pointwise, indexed, reduce, library };

constexpr OpKind kind_of(Opcode opcode) {
  constexpr OpKind kKinds[] = {
#define AE_X(name, kind) OpKind::kind,
      AE_OPCODES(AE_X)
#undef AE_X
  };
  return kKinds[static_cast<int>(opcode)];
}

constexpr const char* name_of(Opcode opcode) {
  constexpr const char* kNames[] = {
#define AE_X(name, kind) #name,
      AE_OPCODES(AE_X)
#undef AE_X
  };
  return kNames[static_cast<int>(opcode)];
}

}  // namespace ae::fusion
