// The fused Adam and AdamW operators: one node for each parameter.
#include "engine/record/optimizer.h"

#include <cmath>

#include "engine/record/kernel.h"

namespace ae::engine {
namespace {

struct AdamLists {
  TensorList params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps;
};

struct AdamOptions {
  double beta1, beta2, weight_decay, eps;
  bool amsgrad, maximize;
};

/// All lists match, and each parameter's tensors have one dtype and shape.
bool is_recorded(const AdamLists& lists, const AdamOptions& options) {
  const size_t count = lists.params.size();
  if (lists.grads.size() != count || lists.exp_avgs.size() != count || lists.exp_avg_sqs.size() != count ||
      lists.steps.size() != count || (options.amsgrad && lists.max_exp_avg_sqs.size() != count)) {
    return false;
  }
  for (size_t i = 0; i < count; ++i) {
    const Tensor& param = lists.params[i];
    if (!is_neuron(param) || !contains(kFloats, param.scalar_type()) || !is_scalar_tensor(lists.steps[i])) return false;
    for (const Tensor* other : {&lists.grads[i], &lists.exp_avgs[i], &lists.exp_avg_sqs[i],
                                options.amsgrad ? &lists.max_exp_avg_sqs[i] : &param}) {
      if (!is_like(*other, param)) return false;
    }
  }
  return true;
}

/// 1 - beta^step as a 0-dim fp64 tensor; its square root if asked for. Nodes of one element: what they cost is paid
/// once for a parameter, not for each of its elements.
Tensor bias_correction(double beta, const Tensor& step, bool root) {
  Tensor value = make_tensor({}, at::kDouble);
  record_pointwise(Opcode::pow, at::kDouble, {Input(beta, at::kDouble), step}, value);
  record_pointwise(Opcode::sub, at::kDouble, {Input(1.0, at::kDouble), value}, value);
  if (root) record_pointwise(Opcode::sqrt, at::kDouble, Input(value), value);
  return value;
}

void record_parameter(const AdamLists& lists, size_t i, const AdamOptions& options, int64_t flags, const Input& lr,
                      const Scaling& scaling) {
  c10::SmallVector<Input, 16> inputs{lists.params[i], lists.grads[i], lists.exp_avgs[i], lists.exp_avg_sqs[i]};
  c10::SmallVector<Tensor, 5> outputs{lists.params[i], lists.exp_avgs[i], lists.exp_avg_sqs[i]};
  if (options.amsgrad) {
    inputs.push_back(lists.max_exp_avg_sqs[i]);
    outputs.push_back(lists.max_exp_avg_sqs[i]);
  }
  if (flags & kGradScale) outputs.push_back(lists.grads[i]);
  Tensor correction1, correction2;  // live as long as `inputs` refers to them
  if (is_neuron(lists.steps[i])) {
    correction1 = bias_correction(options.beta1, lists.steps[i], false);
    correction2 = bias_correction(options.beta2, lists.steps[i], true);
    inputs.push_back(correction1);
    inputs.push_back(correction2);
  } else {
    const double step = read_cpu_scalar(lists.steps[i]).toDouble();
    inputs.emplace_back(1 - std::pow(options.beta1, step), at::kDouble);
    inputs.emplace_back(std::sqrt(1 - std::pow(options.beta2, step)), at::kDouble);
  }
  inputs.push_back(lr);
  for (double number : {options.beta1, options.beta2, options.weight_decay, options.eps}) {
    inputs.emplace_back(number, at::kDouble);
  }
  scaling.append(inputs);
  record_pointwise(Opcode::fused_adamw, lists.params[i].scalar_type(), inputs, outputs, flags);
}

/// False: a case for the fallback; nothing was recorded.
bool fused_adam(const AdamLists& lists, const Input& lr, const AdamOptions& options, const Scaling& scaling,
                bool decoupled) {
  if (!scaling.recordable() || !is_recorded(lists, options)) return false;
  int64_t flags = kCorrections | scaling.flags();
  if (options.amsgrad) flags |= kAmsgrad;
  if (options.maximize) flags |= kMaximize;
  if (!decoupled) flags |= kAdam;
  if (std::abs(1 - options.beta1) >= 0.5) flags |= kLerpFromGrad;
  if (options.weight_decay == 0) flags |= kNoDecay;
  for (size_t i = 0; i < lists.params.size(); ++i) {
    if (lists.params[i].numel() != 0) record_parameter(lists, i, options, flags, lr, scaling);
  }
  return true;
}

template <bool decoupled>
void fused(TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs, TensorList max_exp_avg_sqs,
           TensorList steps, double lr, double beta1, double beta2, double weight_decay, double eps, bool amsgrad,
           bool maximize, const OptionalTensor& grad_scale, const OptionalTensor& found_inf) {
  if (fused_adam({params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps}, Input(lr, at::kDouble),
                 {beta1, beta2, weight_decay, eps, amsgrad, maximize}, {grad_scale, found_inf}, decoupled)) {
    return;
  }
  using Signature = void(TensorList, TensorList, TensorList, TensorList, TensorList, TensorList, double, double, double,
                         double, double, bool, bool, const OptionalTensor&, const OptionalTensor&);
  Fallback<Signature>::call(decoupled ? "_fused_adamw_" : "_fused_adam_", params, grads, exp_avgs, exp_avg_sqs,
                            max_exp_avg_sqs, steps, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, grad_scale,
                            found_inf);
}

template <bool decoupled>
void fused_tensor_lr(TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                     TensorList max_exp_avg_sqs, TensorList steps, const Tensor& lr, double beta1, double beta2,
                     double weight_decay, double eps, bool amsgrad, bool maximize, const OptionalTensor& grad_scale,
                     const OptionalTensor& found_inf) {
  if (is_scalar_tensor(lr) &&
      fused_adam({params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps}, number_or_tensor(lr),
                 {beta1, beta2, weight_decay, eps, amsgrad, maximize}, {grad_scale, found_inf}, decoupled)) {
    return;
  }
  using Signature = void(TensorList, TensorList, TensorList, TensorList, TensorList, TensorList, const Tensor&, double,
                         double, double, double, bool, bool, const OptionalTensor&, const OptionalTensor&);
  Fallback<Signature>::call(decoupled ? "_fused_adamw_.tensor_lr" : "_fused_adam_.tensor_lr", params, grads, exp_avgs,
                            exp_avg_sqs, max_exp_avg_sqs, steps, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize,
                            grad_scale, found_inf);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_fused_adamw_", &fused<true>);
  m.impl("_fused_adamw_.tensor_lr", &fused_tensor_lr<true>);
  m.impl("_fused_adam_", &fused<false>);
  m.impl("_fused_adam_.tensor_lr", &fused_tensor_lr<false>);
}

}  // namespace
}  // namespace ae::engine
