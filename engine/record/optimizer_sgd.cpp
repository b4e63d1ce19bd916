// The fused SGD and Adagrad operators: one node for each parameter.
#include <bit>

#include "engine/record/kernel.h"
#include "engine/record/optimizer.h"

namespace ae::engine {
namespace {

/// Every list has one tensor for each parameter, of its dtype and shape.
bool lists_match(TensorList params, std::initializer_list<TensorList> lists) {
  for (const TensorList& list : lists)
    if (list.size() != params.size()) return false;
  for (size_t i = 0; i < params.size(); ++i) {
    if (!is_neuron(params[i]) || !contains(kFloats, params[i].scalar_type())) return false;
    for (const TensorList& list : lists)
      if (!is_like(list[i], params[i])) return false;
  }
  return true;
}

struct SgdOptions {
  double weight_decay, momentum, dampening;
  bool nesterov, maximize, first_step;
};

/// False: a case for the fallback; nothing was recorded.
bool fused_sgd(TensorList params, TensorList grads, TensorList buffers, const Input& lr, const SgdOptions& options,
               const Scaling& scaling) {
  const bool has_momentum = !buffers.empty();
  if (!scaling.recordable() || !(has_momentum ? lists_match(params, {grads, buffers}) : lists_match(params, {grads})) ||
      (options.momentum != 0) != has_momentum) {
    return false;
  }
  int64_t flags = scaling.flags();
  if (options.maximize) flags |= kMaximize;
  if (options.weight_decay == 0) flags |= kNoDecay;
  if (has_momentum) flags |= kMomentum;
  if (options.first_step) flags |= kFirstStep;
  if (options.nesterov) flags |= kNesterov;
  for (size_t i = 0; i < params.size(); ++i) {
    if (params[i].numel() == 0) continue;
    c10::SmallVector<Input, 9> inputs{params[i], grads[i]};
    c10::SmallVector<Tensor, 3> outputs{params[i]};
    if (has_momentum) {
      inputs.emplace_back(buffers[i]);
      outputs.push_back(buffers[i]);
    }
    if (flags & kGradScale) outputs.push_back(grads[i]);
    inputs.push_back(lr);
    for (double number : {options.weight_decay, options.momentum, 1 - options.dampening})
      inputs.emplace_back(number, compute_scalar_type(params[i].scalar_type()));
    scaling.append(inputs);
    record_pointwise(Opcode::fused_sgd, params[i].scalar_type(), inputs, outputs, flags);
  }
  return true;
}

void sgd(TensorList params, TensorList grads, TensorList buffers, double weight_decay, double momentum, double lr,
         double dampening, bool nesterov, bool maximize, bool first_step, const OptionalTensor& grad_scale,
         const OptionalTensor& found_inf) {
  if (fused_sgd(params, grads, buffers, Input(lr, at::kDouble),
                {weight_decay, momentum, dampening, nesterov, maximize, first_step}, {grad_scale, found_inf})) {
    return;
  }
  using Signature = void(TensorList, TensorList, TensorList, double, double, double, double, bool, bool, bool,
                         const OptionalTensor&, const OptionalTensor&);
  Fallback<Signature>::call("_fused_sgd_", params, grads, buffers, weight_decay, momentum, lr, dampening, nesterov,
                            maximize, first_step, grad_scale, found_inf);
}

void sgd_tensor_lr(TensorList params, TensorList grads, TensorList buffers, double weight_decay, double momentum,
                   const Tensor& lr, double dampening, bool nesterov, bool maximize, bool first_step,
                   const OptionalTensor& grad_scale, const OptionalTensor& found_inf) {
  if (is_scalar_tensor(lr) &&
      fused_sgd(params, grads, buffers, number_or_tensor(lr),
                {weight_decay, momentum, dampening, nesterov, maximize, first_step}, {grad_scale, found_inf})) {
    return;
  }
  using Signature = void(TensorList, TensorList, TensorList, double, double, const Tensor&, double, bool, bool, bool,
                         const OptionalTensor&, const OptionalTensor&);
  Fallback<Signature>::call("_fused_sgd_.tensor_lr", params, grads, buffers, weight_decay, momentum, lr, dampening,
                            nesterov, maximize, first_step, grad_scale, found_inf);
}

struct AdagradOptions {
  double lr_decay, weight_decay, eps;
  bool maximize;
};

/// lr / (1 + (step - 1) * lr_decay) in `type`; in `rate` where it depends on the device.
Input decayed_rate(const Tensor& step, const Input& lr, double lr_decay, at::ScalarType type, Tensor& rate) {
  if (!is_neuron(step) && !lr.tensor()) {
    const double decay = 1 + (read_cpu_scalar(step).toDouble() - 1) * lr_decay;
    return {std::bit_cast<double>(lr.word()) / decay, type};
  }
  const Tensor decay = make_tensor({}, at::kDouble);
  rate = make_tensor({}, type);
  record_pointwise(Opcode::sub, at::kDouble, {number_or_tensor(step), Input(1.0, at::kDouble)}, decay);
  record_pointwise(Opcode::add_scaled, at::kDouble,
                   {Input(1.0, at::kDouble), Input(decay), Input(lr_decay, at::kDouble)}, decay);
  record_pointwise(Opcode::div, at::kDouble, {lr, Input(decay)}, rate);
  return rate;
}

bool fused_adagrad(TensorList params, TensorList grads, TensorList sums, TensorList steps, const Input& lr,
                   const AdagradOptions& options, const Scaling& scaling) {
  if (!scaling.recordable() || !lists_match(params, {grads, sums}) || steps.size() != params.size()) return false;
  for (const Tensor& step : steps)
    if (!is_scalar_tensor(step)) return false;
  int64_t flags = scaling.flags();
  if (options.maximize) flags |= kMaximize;
  if (options.weight_decay == 0) flags |= kNoDecay;
  for (size_t i = 0; i < params.size(); ++i) {
    if (params[i].numel() == 0) continue;
    const at::ScalarType type = compute_scalar_type(params[i].scalar_type());
    Tensor rate;  // lives as long as `inputs` refers to it
    c10::SmallVector<Input, 8> inputs{params[i], grads[i], sums[i],
                                      decayed_rate(steps[i], lr, options.lr_decay, type, rate)};
    c10::SmallVector<Tensor, 3> outputs{params[i], sums[i]};
    if (flags & kGradScale) outputs.push_back(grads[i]);
    for (double number : {options.weight_decay, options.eps}) inputs.emplace_back(number, type);
    scaling.append(inputs);
    record_pointwise(Opcode::fused_adagrad, params[i].scalar_type(), inputs, outputs, flags);
  }
  return true;
}

void adagrad(TensorList params, TensorList grads, TensorList sums, TensorList steps, double lr, double lr_decay,
             double weight_decay, double eps, bool maximize, const OptionalTensor& grad_scale,
             const OptionalTensor& found_inf) {
  if (fused_adagrad(params, grads, sums, steps, Input(lr, at::kDouble), {lr_decay, weight_decay, eps, maximize},
                    {grad_scale, found_inf})) {
    return;
  }
  using Signature = void(TensorList, TensorList, TensorList, TensorList, double, double, double, double, bool,
                         const OptionalTensor&, const OptionalTensor&);
  Fallback<Signature>::call("_fused_adagrad_", params, grads, sums, steps, lr, lr_decay, weight_decay, eps, maximize,
                            grad_scale, found_inf);
}

void adagrad_tensor_lr(TensorList params, TensorList grads, TensorList sums, TensorList steps, const Tensor& lr,
                       double lr_decay, double weight_decay, double eps, bool maximize,
                       const OptionalTensor& grad_scale, const OptionalTensor& found_inf) {
  if (is_scalar_tensor(lr) && fused_adagrad(params, grads, sums, steps, number_or_tensor(lr),
                                            {lr_decay, weight_decay, eps, maximize}, {grad_scale, found_inf})) {
    return;
  }
  using Signature = void(TensorList, TensorList, TensorList, TensorList, const Tensor&, double, double, double, bool,
                         const OptionalTensor&, const OptionalTensor&);
  Fallback<Signature>::call("_fused_adagrad_.tensor_lr", params, grads, sums, steps, lr, lr_decay, weight_decay, eps,
                            maximize, grad_scale, found_inf);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_fused_sgd_", &sgd);
  m.impl("_fused_sgd_.tensor_lr", &sgd_tensor_lr);
  m.impl("_fused_adagrad_", &adagrad);
  m.impl("_fused_adagrad_.tensor_lr", &adagrad_tensor_lr);
}

}  // namespace
}  // namespace ae::engine
