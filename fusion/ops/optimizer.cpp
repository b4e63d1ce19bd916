// The fused optimizers (torch._fused_adam_ and its like) for one parameter, and the gradient scaler's update.
//
// Adam and AdamW:
//   in   param, grad, m (exp_avg), v (exp_avg_sq), [max_v if amsgrad], correction…, lr, beta1, beta2, weight_decay,
//        eps, [grad_scale], [found_inf]
//   out  param, m, v, [max_v if amsgrad], [grad / grad_scale if there is a grad_scale]
//   attr 0: bit 0  amsgrad
//           bit 1  maximize
//           bit 2  Adam, which adds weight_decay * param to the gradient, instead of AdamW
//           bit 3  there is a grad_scale
//           bit 4  `correction…` is two inputs, bias_correction1 and sqrt(bias_correction2); else it is one, the step
//                  (already increased), and both are computed here: two powers in fp64 for each element
//           bit 5  |1 - beta1| >= 0.5: chooses the side from which exp_avg.lerp(grad, 1 - beta1) is computed
//           bit 6  weight_decay is 0
//           bit 7  there is a found_inf: where it is 1 everything keeps its value
//
// Inputs after the tensors are scalars or 0-dim accesses, fp64 for PyTorch's bits; they are combined in fp64, as
// PyTorch does, and rounded once to the compute type. Like all uniform values they cost as much as values of elements:
// recorders give what they know as numbers.
#include <limits>
#include <optional>

#include "fusion/ops/expression.h"

namespace ae::fusion {
namespace {

enum Flag : int64_t {
  kAmsgrad = 1,
  kMaximize = 2,
  kAdam = 4,
  kGradScale = 8,
  kCorrections = 16,
  kLerpFromGrad = 32,
  kNoDecay = 64,
  kFoundInf = 128,
};

/// An input that is the same for all elements, in fp64.
Expr number(OpContext& context, int i) { return raw_input(context, i).as(DType::kF64); }

/// Stores results, unless the gradients turned out not to be finite.
class Results {
 public:
  /// found_inf is the last input, if there is one.
  explicit Results(OpContext& context, bool may_skip) : context_(context) {
    if (may_skip) skip_ = number(context, context.inputs() - 1) == 1.0;
  }
  void store(int output, Expr before, Expr after) {
    context_.store_result(output, (skip_ ? select(*skip_, before, after) : after).id);
  }

 private:
  OpContext& context_;
  std::optional<Expr> skip_;
};

/// Inputs that are the same for all elements, in fp64.
struct Hyperparameters {
  Hyperparameters(OpContext& context, int next, int64_t flags) : lr(number(context, next)) {
    const int first = next + (flags & kCorrections ? 2 : 1);
    lr = number(context, first);
    beta1 = number(context, first + 1);
    beta2 = number(context, first + 2);
    weight_decay = number(context, first + 3);
    eps = number(context, first + 4);
    if (flags & kGradScale) grad_scale = number(context, first + 5);
    if (flags & kCorrections) {
      correction1 = number(context, next);
      correction2_sqrt = number(context, next + 1);
    } else {
      const Expr step = number(context, next);
      correction1 = 1.0 - pow(beta1, step);
      correction2_sqrt = sqrt(1.0 - pow(beta2, step));
    }
  }

  Expr lr, beta1 = lr, beta2 = lr, weight_decay = lr, eps = lr, grad_scale = lr, correction1 = lr,
           correction2_sqrt = lr;
};

void fused_adamw(OpContext& context) {
  const int64_t flags = context.attribute(0);
  const DType type = compute_type(context.common_type());
  Expr param = input(context, 0), grad = input(context, 1), m = input(context, 2), v = input(context, 3);
  const int tensors = flags & kAmsgrad ? 5 : 4;
  const Hyperparameters hyper(context, tensors, flags);
  Results results(context, flags & kFoundInf);
  const Expr old_param = param, old_grad = grad, old_m = m, old_v = v;

  if (flags & kGradScale) {
    grad = grad / hyper.grad_scale.as(type);
    results.store(tensors - 1, old_grad, grad);
  }
  if (flags & kMaximize) grad = -grad;
  if (!(flags & kNoDecay)) {
    if (flags & kAdam)
      grad = grad + param * hyper.weight_decay.as(type);
    else
      param = param * (1.0 - hyper.lr * hyper.weight_decay).as(type);
  }

  const Expr weight = (1.0 - hyper.beta1).as(type);
  m = flags & kLerpFromGrad ? grad + (weight - 1.0) * (grad - m) : m + weight * (grad - m);
  v = v * hyper.beta2.as(type) + (1.0 - hyper.beta2).as(type) * grad * grad;
  results.store(1, old_m, m);
  results.store(2, old_v, v);
  Expr second = v;
  if (flags & kAmsgrad) {
    const Expr old_max = input(context, 4);
    second = maximum(old_max, v);
    results.store(3, old_max, second);
  }
  const Expr denominator = sqrt(second) / hyper.correction2_sqrt.as(type) + hyper.eps.as(type);
  const Expr step_size = (-(hyper.lr / hyper.correction1)).as(type);
  results.store(0, old_param, param + step_size * m / denominator);
}

/// grad / grad_scale, stored to `output` if there is a scale, and negated if it is to be maximized.
Expr unscaled(OpContext& context, Results& results, int64_t flags, Expr grad, int scale, int output) {
  if (flags & kGradScale) {
    const Expr before = grad;
    grad = grad / number(context, scale).as(grad.type());
    results.store(output, before, grad);
  }
  return flags & kMaximize ? -grad : grad;
}

// SGD: bits of attribute 0 besides kMaximize, kGradScale, kNoDecay and kFoundInf.
enum SgdFlag : int64_t {
  kMomentum = 256,   // there is a momentum buffer
  kFirstStep = 512,  // which is not read: it becomes the gradient
  kNesterov = 1024,
};

///   in   param, grad, [momentum buffer if kMomentum], lr, weight_decay, momentum, 1 - dampening, [grad_scale],
///        [found_inf]
///   out  param, [momentum buffer], [grad / grad_scale]
void fused_sgd(OpContext& context) {
  const int64_t flags = context.attribute(0);
  const int tensors = flags & kMomentum ? 3 : 2;
  Results results(context, flags & kFoundInf);
  const Expr param = input(context, 0);
  Expr grad = unscaled(context, results, flags, input(context, 1), tensors + 4, tensors - 1);
  if (!(flags & kNoDecay)) grad = grad + param * parameter(context, tensors + 1);
  if (flags & kMomentum) {
    const Expr momentum = parameter(context, tensors + 2), before = input(context, 2);
    const Expr buffer = flags & kFirstStep ? grad : momentum * before + parameter(context, tensors + 3) * grad;
    results.store(1, before, buffer);
    grad = flags & kNesterov ? grad + momentum * buffer : buffer;
  }
  results.store(0, param, param - parameter(context, tensors) * grad);
}

///   in   param, grad, state_sum, rate (decayed), weight_decay, eps, [grad_scale], [found_inf]
///   out  param, state_sum, [grad / grad_scale]
///   attr 0: kMaximize, kGradScale, kNoDecay, kFoundInf
void fused_adagrad(OpContext& context) {
  const int64_t flags = context.attribute(0);
  Results results(context, flags & kFoundInf);
  const Expr param = input(context, 0), old_sum = input(context, 2);
  Expr grad = unscaled(context, results, flags, input(context, 1), 6, 2);
  if (!(flags & kNoDecay)) grad = grad + param * parameter(context, 4);
  const Expr sum = old_sum + grad * grad;
  results.store(1, old_sum, sum);
  results.store(0, param, param - parameter(context, 3) * grad / (sqrt(sum) + parameter(context, 5)));
}

/// A step that succeeded often enough lets the scale grow, unless it would become infinite.
void amp_update_scale(OpContext& context) {
  const Expr scale = raw_input(context, 0), successes = raw_input(context, 1);
  const Expr failed = raw_input(context, 2) != 0.0;
  const Expr more = successes + 1.0;
  const Expr enough = more == raw_input(context, 5).as(successes.type());
  const Expr grown = (scale.as(DType::kF64) * number(context, 3)).as(scale.type());
  const Expr shrunk = (scale.as(DType::kF64) * number(context, 4)).as(scale.type());
  const Expr kept = select(enough, select(abs(grown) < std::numeric_limits<float>::infinity(), grown, scale), scale);
  context.store(0, select(failed, shrunk, kept).id);
  context.store(1, select(failed, 0.0, select(enough, 0.0, more)).id);
}

constexpr BuilderEntry kBuilders[] = {
    {Opcode::fused_adamw, fused_adamw},
    {Opcode::fused_sgd, fused_sgd},
    {Opcode::fused_adagrad, fused_adagrad},
    {Opcode::amp_update_scale, amp_update_scale},
};

}  // namespace

std::span<const BuilderEntry> optimizer_builders() { return kBuilders; }

}  // namespace ae::fusion
