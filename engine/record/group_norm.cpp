// Group norm and its backward, in nodes as fusion/ops/norm.cpp says.
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

/// A group norm over [batch, groups, channels of a group, rest…]; the last two are reduced.
class GroupNorm {
 public:
  GroupNorm(const Tensor& input, const Optional& weight, const Optional& bias, int64_t batch, int64_t channels,
            int64_t rest, int64_t groups)
      : groups_(groups) {
    check_devices({&input});
    for (const Optional* parameter : {&weight, &bias}) {
      if (!has(*parameter)) continue;
      check_devices({&**parameter});
      if ((*parameter)->dim() != 1 || (*parameter)->size(0) != channels) return;
    }
    type_ = input.scalar_type();
    parameters_ = parameter_type(type_, {&weight, &bias});
    recordable_ = contains(kFloats, type_) && input.dim() >= 2 && input.dim() < device::kMaxRank && batch > 0 &&
                  input.numel() > 0 && input.size(0) == batch && input.size(1) == channels && groups > 0 &&
                  channels % groups == 0 && input.numel() == batch * channels * rest &&
                  input.is_contiguous(input.suggest_memory_format()) && parameters_ != at::ScalarType::Undefined;
    if (recordable_) view_ = in_groups(input, groups);
    count_ = static_cast<double>(channels / std::max<int64_t>(groups, 1) * rest);
  }

  bool recordable() const { return recordable_; }
  at::ScalarType parameters() const { return parameters_; }
  at::ScalarType compute() const { return compute_scalar_type(type_); }
  const Tensor& view() const { return view_; }
  int64_t rank() const { return view_.dim(); }
  Input number(double value) const { return {value, compute()}; }
  double count() const { return count_; }
  Tensor grouped(const Tensor& tensor) const { return in_groups(tensor, groups_); }
  Tensor channels(const Tensor& vector) const { return channels_in_groups(vector, groups_, rank()); }
  Tensor groups(const Tensor& statistics) const { return per_group(statistics, rank()); }
  Tensor statistics(at::ScalarType type) const { return make_tensor({view_.size(0), groups_}, type); }

  /// Reduces each group; results have a value a group.
  void reduce(Opcode opcode, c10::ArrayRef<Input> inputs, c10::ArrayRef<Tensor> outputs, int64_t flags) const {
    record_reduce(opcode, compute(), view_.sizes(), ((1u << rank()) - 1) & ~3u, inputs, outputs, flags);
  }
  /// Reduces the batch and the rest; results have a value a channel.
  void reduce_to_channels(Opcode opcode, c10::ArrayRef<Input> inputs, c10::ArrayRef<Tensor> outputs,
                          int64_t flags) const {
    record_reduce(opcode, compute(), view_.sizes(), ((1u << rank()) - 1) & ~6u, inputs, outputs, flags);
  }

 private:
  int64_t groups_;
  Tensor view_;
  at::ScalarType type_ = at::ScalarType::Undefined, parameters_ = at::ScalarType::Undefined;
  double count_ = 0;
  bool recordable_ = false;
};

Three native_group_norm(const Tensor& input, const Optional& weight, const Optional& bias, int64_t batch,
                        int64_t channels, int64_t rest, int64_t groups, double eps) {
  const GroupNorm norm(input, weight, bias, batch, channels, rest, groups);
  if (!norm.recordable()) {
    using Signature =
        Three(const Tensor&, const Optional&, const Optional&, int64_t, int64_t, int64_t, int64_t, double);
    return Fallback<Signature>::call("native_group_norm", input, weight, bias, batch, channels, rest, groups, eps);
  }
  Tensor out = norm_result(input, input.scalar_type());
  const Tensor mean = norm.statistics(norm.parameters()), rstd = norm.statistics(norm.parameters());
  norm.reduce(Opcode::mean, {norm.view(), norm.number(norm.count())}, {mean}, 0);
  const Tensor mean_view = norm.groups(mean), rstd_view = norm.groups(rstd);
  norm.reduce(Opcode::norm_rstd, {norm.view(), mean_view, norm.number(norm.count()), norm.number(eps)}, {rstd}, 0);
  c10::SmallVector<Input, 5> inputs{norm.view(), mean_view, rstd_view};
  Tensor weight_view, bias_view;
  if (has(weight)) inputs.emplace_back(weight_view = norm.channels(*weight));
  if (has(bias)) inputs.emplace_back(bias_view = norm.channels(*bias));
  record_pointwise(Opcode::norm_apply, norm.compute(), inputs, {norm.grouped(out)},
                   {(has(weight) ? kWeight : 0) | (has(bias) ? kBias : 0)});
  return {out, mean, rstd};
}

/// The gradient of the input; `grad` in groups.
Tensor group_norm_input_gradient(const GroupNorm& norm, const Tensor& grad, const Tensor& input, const Tensor& mean,
                                 const Tensor& rstd, const Optional& weight) {
  const Tensor slope = norm.statistics(norm.compute()), offset = norm.statistics(norm.compute());
  const Tensor mean_view = norm.groups(mean), rstd_view = norm.groups(rstd);
  c10::SmallVector<Input, 6> inputs{grad, norm.view(), mean_view, rstd_view, norm.number(norm.count())};
  Tensor weight_view;
  if (has(weight)) inputs.emplace_back(weight_view = norm.channels(*weight));
  const int64_t flags = kCentred | (has(weight) ? kWeight : 0);
  norm.reduce(Opcode::norm_backward_coefficients, inputs, {slope, offset}, flags);
  Tensor result = norm_result(input, input.scalar_type());
  const Tensor slope_view = norm.groups(slope), offset_view = norm.groups(offset);
  c10::SmallVector<Input, 7> last{grad, norm.view(), rstd_view, slope_view, mean_view, offset_view};
  if (has(weight)) last.emplace_back(weight_view);
  record_pointwise(Opcode::norm_backward_input, norm.compute(), last, {norm.grouped(result)}, {flags});
  return result;
}

Three native_group_norm_backward(const Tensor& grad, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                                 const Optional& weight, int64_t batch, int64_t channels, int64_t rest, int64_t groups,
                                 std::array<bool, 3> mask) {
  const Optional no_bias;
  const GroupNorm norm(input, weight, no_bias, batch, channels, rest, groups);
  const auto fits = [&](const Tensor& statistic) {
    return is_neuron(statistic) && statistic.dim() == 2 && statistic.size(0) == batch && statistic.size(1) == groups &&
           statistic.scalar_type() == mean.scalar_type() && contains(kFloats, statistic.scalar_type());
  };
  const at::ScalarType type = mean.scalar_type();
  if (!norm.recordable() || !is_neuron(grad) || grad.scalar_type() != input.scalar_type() ||
      !grad.sizes().equals(input.sizes()) || !fits(mean) || !fits(rstd) ||
      (type != norm.parameters() && (has(weight) || type != norm.compute()))) {
    using Signature = Three(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Optional&, int64_t,
                            int64_t, int64_t, int64_t, std::array<bool, 3>);
    return Fallback<Signature>::call("native_group_norm_backward", grad, input, mean, rstd, weight, batch, channels,
                                     rest, groups, mask);
  }
  const Tensor grad_view = norm.grouped(grad);
  Three gradients;
  if (mask[0]) std::get<0>(gradients) = group_norm_input_gradient(norm, grad_view, input, mean, rstd, weight);
  c10::SmallVector<Tensor, 2> affine;
  const auto want = [&](Tensor& result) {
    result = make_tensor({channels}, type);
    affine.push_back(make_tensor(result.storage(), {groups, channels / groups}, {channels / groups, 1}, 0, type));
  };
  if (mask[1]) want(std::get<1>(gradients));
  if (mask[2]) want(std::get<2>(gradients));
  const Tensor mean_view = norm.groups(mean), rstd_view = norm.groups(rstd);
  if (!affine.empty())
    norm.reduce_to_channels(Opcode::layer_norm_backward_affine, {grad_view, norm.view(), mean_view, rstd_view}, affine,
                            (mask[1] ? kWeight : 0) | (mask[2] ? kBias : 0));
  return gradients;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("native_group_norm", native_group_norm);
  m.impl("native_group_norm_backward", native_group_norm_backward);
}

}  // namespace
}  // namespace ae::engine
