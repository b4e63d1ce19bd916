// The fused Adam and AdamW operators (one node for each parameter), and gradient unscaling with its check.
#include <cmath>

#include "engine/record/kernel.h"
#include "engine/record/pointwise.h"
#include "engine/record/reduce.h"

namespace ae::engine {
namespace {

using at::Scalar;
using at::Tensor;
using at::TensorList;
using OptionalTensor = std::optional<Tensor>;

// Bits of Opcode::fused_adamw's attribute (fusion/ops/optimizer.cpp).
enum Flag : int64_t {
  kAmsgrad = 1,
  kMaximize = 2,
  kAdam = 4,
  kGradScale = 8,
  kCorrections = 16,
  kLerpFromGrad = 32,
  kNoDecay = 64,
};

struct AdamLists {
  TensorList params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps;
};

struct AdamOptions {
  double beta1, beta2, weight_decay, eps;
  bool amsgrad, maximize;
};

/// A number that is a 0-dim tensor on the device, or known now.
Input number_or_tensor(const Tensor& tensor) {
  return is_neuron(tensor) ? Input(tensor) : Input(read_cpu_scalar(tensor), at::kDouble);
}

bool is_scalar_tensor(const Tensor& tensor) {
  return tensor.numel() == 1 && contains(kFloats, tensor.scalar_type()) && (is_neuron(tensor) || is_cpu_scalar(tensor));
}

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
      if (!is_neuron(*other) || other->scalar_type() != param.scalar_type() || !other->sizes().equals(param.sizes())) {
        return false;
      }
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
                      const OptionalTensor& grad_scale) {
  c10::SmallVector<Input, 16> inputs{lists.params[i], lists.grads[i], lists.exp_avgs[i], lists.exp_avg_sqs[i]};
  c10::SmallVector<Tensor, 5> outputs{lists.params[i], lists.exp_avgs[i], lists.exp_avg_sqs[i]};
  if (options.amsgrad) {
    inputs.push_back(lists.max_exp_avg_sqs[i]);
    outputs.push_back(lists.max_exp_avg_sqs[i]);
  }
  if (grad_scale) outputs.push_back(lists.grads[i]);
  Tensor correction1, correction2;  // live as long as `inputs` refers to them
  if (is_neuron(lists.steps[i])) {
    const Tensor step = lists.steps[i].dim() == 0 ? lists.steps[i] : lists.steps[i].view(at::IntArrayRef{});
    correction1 = bias_correction(options.beta1, step, false);
    correction2 = bias_correction(options.beta2, step, true);
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
  if (grad_scale) inputs.push_back(number_or_tensor(*grad_scale));
  record_pointwise(Opcode::fused_adamw, lists.params[i].scalar_type(), inputs, outputs, flags);
}

/// False: a case for the fallback; nothing was recorded.
bool fused_adam(const AdamLists& lists, const Input& lr, const AdamOptions& options, const OptionalTensor& grad_scale,
                const OptionalTensor& found_inf, bool decoupled) {
  const bool skips = found_inf && found_inf->defined();  // the whole step, by a value on the device
  const bool scaled = grad_scale && grad_scale->defined();
  if (skips || (scaled && !is_scalar_tensor(*grad_scale)) || !is_recorded(lists, options)) return false;
  int64_t flags = kCorrections;
  if (options.amsgrad) flags |= kAmsgrad;
  if (options.maximize) flags |= kMaximize;
  if (!decoupled) flags |= kAdam;
  if (scaled) flags |= kGradScale;
  if (std::abs(1 - options.beta1) >= 0.5) flags |= kLerpFromGrad;
  if (options.weight_decay == 0) flags |= kNoDecay;
  for (size_t i = 0; i < lists.params.size(); ++i) {
    if (lists.params[i].numel() == 0) continue;
    record_parameter(lists, i, options, flags, lr, scaled ? grad_scale : std::nullopt);
  }
  return true;
}

template <bool decoupled>
void fused(TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs, TensorList max_exp_avg_sqs,
           TensorList steps, double lr, double beta1, double beta2, double weight_decay, double eps, bool amsgrad,
           bool maximize, const OptionalTensor& grad_scale, const OptionalTensor& found_inf) {
  if (fused_adam({params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps}, Input(lr, at::kDouble),
                 {beta1, beta2, weight_decay, eps, amsgrad, maximize}, grad_scale, found_inf, decoupled)) {
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
                 {beta1, beta2, weight_decay, eps, amsgrad, maximize}, grad_scale, found_inf, decoupled)) {
    return;
  }
  using Signature = void(TensorList, TensorList, TensorList, TensorList, TensorList, TensorList, const Tensor&, double,
                         double, double, double, bool, bool, const OptionalTensor&, const OptionalTensor&);
  Fallback<Signature>::call(decoupled ? "_fused_adamw_.tensor_lr" : "_fused_adam_.tensor_lr", params, grads, exp_avgs,
                            exp_avg_sqs, max_exp_avg_sqs, steps, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize,
                            grad_scale, found_inf);
}

/// found_inf becomes 1 if `grad` has an infinity or NaN: its difference from itself is not 0 exactly there.
bool note_non_finite(const Tensor& grad, const Tensor& found_inf) {
  Call difference, broken, found, noted = Call::in_place(found_inf);
  const Scalar one(1.0), zero(0.0);
  return difference.record(Opcode::sub, kFloatOnly, {grad, grad}) &&
         broken.record(Opcode::ne, kCompare, {difference.result, Arg::number(zero)}) &&
         reduce(found, Opcode::any, at::kBool, at::kBool, broken.result, std::nullopt, false) &&
         noted.record(Opcode::where, kFloatOnly, {Arg::condition(found.result), Arg::parameter(one), found_inf});
}

void non_finite_check_and_unscale(TensorList grads, Tensor& found_inf, const Tensor& inv_scale) {
  bool recorded = is_neuron(found_inf) && is_neuron(inv_scale) && found_inf.numel() == 1 && inv_scale.numel() == 1 &&
                  found_inf.scalar_type() == at::kFloat && inv_scale.scalar_type() == at::kFloat;
  for (const Tensor& grad : grads) recorded = recorded && is_neuron(grad) && contains(kFloats, grad.scalar_type());
  if (!recorded) {
    using Signature = void(TensorList, Tensor&, const Tensor&);
    return Fallback<Signature>::call("_amp_foreach_non_finite_check_and_unscale_", grads, found_inf, inv_scale);
  }
  const Tensor scale = inv_scale.dim() == 0 ? inv_scale : inv_scale.view(at::IntArrayRef{});
  for (const Tensor& grad : grads) {
    if (grad.numel() == 0) continue;
    Call unscaled = Call::in_place(grad);
    const bool done = note_non_finite(grad, found_inf) && unscaled.record(Opcode::mul, kFloatOnly, {grad, scale});
    TORCH_INTERNAL_ASSERT(done);
  }
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_fused_adamw_", &fused<true>);
  m.impl("_fused_adamw_.tensor_lr", &fused_tensor_lr<true>);
  m.impl("_fused_adam_", &fused<false>);
  m.impl("_fused_adam_.tensor_lr", &fused_tensor_lr<false>);
  m.impl("_amp_foreach_non_finite_check_and_unscale_", &non_finite_check_and_unscale);
}

}  // namespace
}  // namespace ae::engine
