// Batch norm and its backward. Training is three nodes: mean, standard deviation with what follows for each channel
// (running statistics too), and the elements.
#include <array>
#include <tuple>

#include "engine/record/kernel.h"
#include "engine/record/norm.h"
#include "engine/record/result.h"

namespace ae::engine {
namespace {

using at::Tensor;
using Three = std::tuple<Tensor, Tensor, Tensor>;
using Optional = std::optional<Tensor>;

struct Parameters {
  const Optional &weight, &bias, &running_mean, &running_var;
};

/// A batch norm that is recorded: floating input, one value of each parameter for each channel.
class BatchNorm {
 public:
  BatchNorm(const Tensor& input, const Parameters& given) : input_(input), given_(given) {
    check_devices({&input});
    type_ = input.scalar_type();
    if (!contains(kFloats, type_) || input.dim() < 2 || input.dim() > device::kMaxRank || input.numel() == 0) return;
    channels_ = input.size(1);
    for (const Optional* parameter : {&given.weight, &given.bias, &given.running_mean, &given.running_var}) {
      if (!has(*parameter)) continue;
      check_devices({&**parameter});
      if ((*parameter)->dim() != 1 || (*parameter)->size(0) != channels_) return;
    }
    if (has(given.running_mean) != has(given.running_var)) return;
    parameters_ = parameter_type(type_, {&given.weight, &given.bias, &given.running_mean, &given.running_var});
    recordable_ = parameters_ != at::ScalarType::Undefined;
  }

  bool recordable() const { return recordable_; }
  at::ScalarType parameters() const { return parameters_; }
  at::ScalarType compute() const { return compute_scalar_type(type_); }
  Tensor vector(at::ScalarType type) const { return make_tensor({channels_}, type); }
  Tensor over_channels(const Tensor& vector) const { return along(vector, 1, input_.dim()); }
  Input number(double value) const { return {value, compute()}; }
  double count() const { return static_cast<double>(input_.numel() / channels_); }
  /// Of the node's dimensions all but the channels.
  uint32_t reduced() const { return ((1u << input_.dim()) - 1) & ~2u; }

  void reduce(Opcode opcode, c10::ArrayRef<Input> inputs, c10::ArrayRef<Tensor> outputs, int64_t flags) const {
    record_reduce(opcode, compute(), input_.sizes(), reduced(), inputs, outputs, flags);
  }

  /// (input - mean) * scale [+ bias]
  Tensor apply(const Tensor& mean, const Tensor& scale) const {
    Tensor out = norm_result(input_, type_);
    const Tensor mean_view = over_channels(mean), scale_view = over_channels(scale);
    c10::SmallVector<Input, 4> inputs{input_, mean_view, scale_view};
    Tensor bias;
    if (has(given_.bias)) inputs.emplace_back(bias = over_channels(*given_.bias));
    record_pointwise(Opcode::norm_apply, compute(), inputs, {out}, {has(given_.bias) ? kBias : 0});
    return out;
  }

  Three train(double momentum, double eps) const {
    const Tensor mean = vector(parameters_), rstd = vector(parameters_), scale = vector(compute());
    record_reduce(Opcode::mean, compute(), input_.sizes(), reduced(), {input_, number(count())}, {mean});
    const Tensor mean_view = over_channels(mean);
    c10::SmallVector<Input, 10> inputs{input_, mean_view, number(count()), number(eps)};
    c10::SmallVector<Tensor, 4> outputs{rstd, scale};
    int64_t flags = kChannels;
    Tensor weight, running_mean, running_var;
    if (has(given_.weight)) {
      flags |= kWeight;
      inputs.emplace_back(weight = over_channels(*given_.weight));
    }
    if (has(given_.running_mean)) {
      flags |= kRunning;
      inputs.emplace_back(running_mean = over_channels(*given_.running_mean));
      inputs.emplace_back(running_var = over_channels(*given_.running_var));
      for (double value : {momentum, 1 - momentum, count() - 1}) inputs.push_back(number(value));
      outputs.push_back(*given_.running_mean);
      outputs.push_back(*given_.running_var);
    }
    reduce(Opcode::norm_rstd, inputs, outputs, flags);
    return {apply(mean, scale), mean, rstd};
  }

  /// 1 / sqrt(running_var + eps) [* weight]
  Tensor running_scale(double eps, bool weighted) const {
    Tensor scale = vector(compute());
    c10::SmallVector<Input, 3> inputs{*given_.running_var, number(eps)};
    if (weighted && has(given_.weight)) inputs.emplace_back(*given_.weight);
    record_pointwise(Opcode::norm_scale, compute(), inputs, {scale});
    return scale;
  }

 private:
  const Tensor& input_;
  const Parameters& given_;
  at::ScalarType type_ = at::ScalarType::Undefined, parameters_ = at::ScalarType::Undefined;
  int64_t channels_ = 0;
  bool recordable_ = false;
};

/// Nothing: a case for the fallback.
std::optional<Three> forward(const Tensor& input, const Parameters& given, bool training, double momentum, double eps) {
  const BatchNorm norm(input, given);
  if (!norm.recordable() || (!training && !has(given.running_mean))) return std::nullopt;
  if (training) return norm.train(momentum, eps);
  return Three{norm.apply(*given.running_mean, norm.running_scale(eps, true)), make_tensor({0}, norm.parameters()),
               make_tensor({0}, norm.parameters())};
}

Three native_batch_norm(const Tensor& input, const Optional& weight, const Optional& bias, const Optional& running_mean,
                        const Optional& running_var, bool training, double momentum, double eps) {
  if (auto done = forward(input, {weight, bias, running_mean, running_var}, training, momentum, eps)) return *done;
  using Signature =
      Three(const Tensor&, const Optional&, const Optional&, const Optional&, const Optional&, bool, double, double);
  return Fallback<Signature>::call("native_batch_norm", input, weight, bias, running_mean, running_var, training,
                                   momentum, eps);
}

Three native_batch_norm_legit(const Tensor& input, const Optional& weight, const Optional& bias, Tensor& running_mean,
                              Tensor& running_var, bool training, double momentum, double eps) {
  const Optional mean(running_mean), var(running_var);
  if (auto done = forward(input, {weight, bias, mean, var}, training, momentum, eps)) return *done;
  using Signature = Three(const Tensor&, const Optional&, const Optional&, Tensor&, Tensor&, bool, double, double);
  return Fallback<Signature>::call("_native_batch_norm_legit", input, weight, bias, running_mean, running_var, training,
                                   momentum, eps);
}

Three native_batch_norm_without_statistics(const Tensor& input, const Optional& weight, const Optional& bias,
                                           bool training, double momentum, double eps) {
  const Optional none;
  if (auto done = forward(input, {weight, bias, none, none}, training, momentum, eps)) return *done;
  using Signature = Three(const Tensor&, const Optional&, const Optional&, bool, double, double);
  return Fallback<Signature>::call("_native_batch_norm_legit.no_stats", input, weight, bias, training, momentum, eps);
}

/// Gradients of the parameters are sums in the compute type; half parameters get them rounded.
Tensor rounded(const Tensor& sum, at::ScalarType type) {
  if (sum.scalar_type() == type) return sum;
  Tensor result = make_tensor(sum.sizes(), type);
  record_pointwise(Opcode::copy, type, {Input(sum)}, {result});
  return result;
}

struct Gradients {
  Tensor input, weight, bias;
};

/// Through the batch's own mean and standard deviation.
Gradients train_backward(const BatchNorm& norm, const Tensor& grad, const Tensor& input, const Optional& weight,
                         const Tensor& mean, const Tensor& rstd, bool wants_input) {
  const Tensor slope = norm.vector(norm.compute()), offset = norm.vector(norm.compute());
  const Tensor scale = norm.vector(norm.compute());
  Gradients gradients{{}, norm.vector(norm.compute()), norm.vector(norm.compute())};
  const Tensor mean_view = norm.over_channels(mean), rstd_view = norm.over_channels(rstd);
  c10::SmallVector<Input, 6> inputs{grad, input, mean_view, rstd_view, norm.number(norm.count())};
  Tensor weight_view;
  if (has(weight)) inputs.emplace_back(weight_view = norm.over_channels(*weight));
  norm.reduce(Opcode::norm_backward_coefficients, inputs, {slope, offset, gradients.weight, gradients.bias, scale},
              kCentred | kChannels | (has(weight) ? kWeight : 0));
  if (!wants_input) return gradients;
  gradients.input = norm_result(input, input.scalar_type());
  const Tensor scale_view = norm.over_channels(scale), slope_view = norm.over_channels(slope);
  const Tensor offset_view = norm.over_channels(offset);
  record_pointwise(Opcode::norm_backward_input, norm.compute(),
                   {grad, input, scale_view, slope_view, mean_view, offset_view}, {gradients.input}, {kCentred});
  return gradients;
}

/// Running statistics are constants.
Gradients eval_backward(const BatchNorm& norm, const Tensor& grad, const Tensor& input, const Tensor& running_mean,
                        double eps, std::array<bool, 3> mask) {
  Gradients gradients;
  if (mask[0]) {
    const Tensor scale = norm.over_channels(norm.running_scale(eps, true));
    gradients.input = norm_result(input, input.scalar_type());
    record_pointwise(Opcode::mul, norm.compute(), {grad, scale}, {gradients.input});
  }
  if (mask[1] || mask[2]) {
    gradients.weight = norm.vector(norm.compute());
    gradients.bias = norm.vector(norm.compute());
    const Tensor mean = norm.over_channels(running_mean), rstd = norm.over_channels(norm.running_scale(eps, false));
    norm.reduce(Opcode::layer_norm_backward_affine, {grad, input, mean, rstd}, {gradients.weight, gradients.bias},
                kWeight | kBias);
  }
  return gradients;
}

bool is_statistic(const Optional& tensor, int64_t channels) {
  return has(tensor) && is_neuron(*tensor) && tensor->dim() == 1 && tensor->size(0) == channels &&
         contains(kFloats, tensor->scalar_type());
}

Three native_batch_norm_backward(const Tensor& grad, const Tensor& input, const Optional& weight,
                                 const Optional& running_mean, const Optional& running_var, const Optional& save_mean,
                                 const Optional& save_rstd, bool training, double eps, std::array<bool, 3> mask) {
  check_devices({&grad});
  const Optional no_bias;
  const Parameters given{weight, no_bias, running_mean, running_var};
  const BatchNorm norm(input, given);
  const bool fits = norm.recordable() && grad.scalar_type() == input.scalar_type() &&
                    grad.sizes().equals(input.sizes()) && !(mask[1] && !has(weight)) &&
                    (training ? is_statistic(save_mean, input.size(1)) && is_statistic(save_rstd, input.size(1)) &&
                                    save_mean->scalar_type() == norm.parameters()
                              : has(running_mean));
  if (!fits) {
    using Signature = Three(const Tensor&, const Tensor&, const Optional&, const Optional&, const Optional&,
                            const Optional&, const Optional&, bool, double, std::array<bool, 3>);
    return Fallback<Signature>::call("native_batch_norm_backward", grad, input, weight, running_mean, running_var,
                                     save_mean, save_rstd, training, eps, mask);
  }
  Gradients gradients = training ? train_backward(norm, grad, input, weight, *save_mean, *save_rstd, mask[0])
                                 : eval_backward(norm, grad, input, *running_mean, eps, mask);
  return {gradients.input, mask[1] ? rounded(gradients.weight, norm.parameters()) : Tensor(),
          mask[2] ? rounded(gradients.bias, norm.parameters()) : Tensor()};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("native_batch_norm", native_batch_norm);
  m.impl("_native_batch_norm_legit", native_batch_norm_legit);
  m.impl("_native_batch_norm_legit.no_stats", native_batch_norm_without_statistics);
  m.impl("native_batch_norm_backward", native_batch_norm_backward);
}

}  // namespace
}  // namespace ae::engine
