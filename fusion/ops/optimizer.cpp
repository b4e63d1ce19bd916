// The fused Adam and AdamW operators (torch._fused_adam_, torch._fused_adamw_) for one parameter.
//
//   in   param, grad, m (exp_avg), v (exp_avg_sq), [max_v if amsgrad], correction…, lr, beta1, beta2, weight_decay,
//        eps, [grad_scale]
//   out  param, m, v, [max_v if amsgrad], [grad / grad_scale if there is a grad_scale]
//   attr 0: bit 0  amsgrad
//           bit 1  maximize
//           bit 2  Adam, which adds weight_decay * param to the gradient, instead of AdamW
//           bit 3  there is a grad_scale
//           bit 4  `correction…` is two inputs, bias_correction1 and sqrt(bias_correction2); else it is one, the step
//                  (already increased), and both are computed here: two powers in fp64 for each element
//           bit 5  |1 - beta1| >= 0.5: chooses the side from which exp_avg.lerp(grad, 1 - beta1) is computed
//           bit 6  weight_decay is 0
//
// Inputs after the tensors are scalars or 0-dim accesses, fp64 for PyTorch's bits; they are combined in fp64, as
// PyTorch does, and rounded once to the compute type. Like all uniform values they cost as much as values of elements:
// recorders give what they know as numbers.
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

 private:
  static Expr number(OpContext& context, int i) { return raw_input(context, i).as(DType::kF64); }
};

void fused_adamw(OpContext& context) {
  const int64_t flags = context.attribute(0);
  const DType type = compute_type(context.common_type());
  Expr param = input(context, 0), grad = input(context, 1), m = input(context, 2), v = input(context, 3);
  const int tensors = flags & kAmsgrad ? 5 : 4;
  const Hyperparameters hyper(context, tensors, flags);

  if (flags & kGradScale) {
    grad = grad / hyper.grad_scale.as(type);
    context.store_result(tensors - 1, grad.id);
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
  context.store_result(1, m.id);
  context.store_result(2, v.id);
  Expr second = v;
  if (flags & kAmsgrad) {
    second = maximum(input(context, 4), v);
    context.store_result(3, second.id);
  }
  const Expr denominator = sqrt(second) / hyper.correction2_sqrt.as(type) + hyper.eps.as(type);
  const Expr step_size = (-(hyper.lr / hyper.correction1)).as(type);
  context.store_result(0, (param + step_size * m / denominator).id);
}

constexpr BuilderEntry kBuilders[] = {{Opcode::fused_adamw, fused_adamw}};

}  // namespace

std::span<const BuilderEntry> optimizer_builders() { return kBuilders; }

}  // namespace ae::fusion
