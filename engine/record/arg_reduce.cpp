// Extremes with their indices: a reduction to the extreme, then one to the first index of what equals it (NaN wins).
// The planner makes one kernel of both where the reduced extent fits the cache.
#include <tuple>

#include "engine/record/kernel.h"
#include "engine/record/reduce.h"
#include "engine/record/result.h"

namespace ae::engine {
namespace {

using at::Tensor;
using Pair = std::tuple<Tensor, Tensor>;

/// An extreme over one dimension, or over all of them.
struct ArgReduction {
  Reduction plan;
  int64_t dim = device::kMaxRank;  // kMaxRank: all
};

bool plan_arg_reduction(const Tensor& self, std::optional<int64_t> dim, bool keepdim, uint64_t types,
                        ArgReduction& reduction) {
  check_devices({&self});
  const auto dims = dim ? at::OptionalIntArrayRef(at::IntArrayRef(*dim)) : std::nullopt;
  if (self.dim() > device::kMaxRank || !contains(types, self.scalar_type()) ||
      !plan_reduction(self, dims, keepdim, reduction.plan)) {
    return false;
  }
  if (dim) reduction.dim = *dim < 0 ? *dim + std::max<int64_t>(self.dim(), 1) : *dim;
  return true;
}

/// A result seen with all of the node's dimensions, 1 in the reduced ones.
Tensor with_all_dims(const Tensor& result, const Reduction& plan) {
  at::DimVector sizes(plan.sizes), strides(plan.sizes.size(), 1);
  const bool kept = result.dim() == static_cast<int64_t>(sizes.size());
  int64_t next = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (plan.mask >> d & 1) {
      sizes[d] = 1;
      next += kept;
    } else {
      strides[d] = result.stride(next++);
    }
  }
  return make_tensor(result.storage(), sizes, strides, result.storage_offset(), result.scalar_type());
}

void record_extreme(Opcode opcode, const Tensor& self, const Reduction& plan, const Tensor& values) {
  record_reduce(opcode, self.scalar_type(), plan.sizes, plan.mask, {self}, {values});
}

void record_index(const Tensor& self, const ArgReduction& reduction, const Tensor& values, const Tensor& indices) {
  const Tensor extreme = with_all_dims(values, reduction.plan);
  record_reduce(Opcode::first_index, self.scalar_type(), reduction.plan.sizes, reduction.plan.mask, {self, extreme},
                {indices}, {reduction.dim});
}

template <Opcode opcode>
bool arg_extreme(Call& call, const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  ArgReduction reduction;
  if (!plan_arg_reduction(self, dim, keepdim, kFloats | kInts, reduction)) return false;
  if (!prepare_result(call, reduction.plan.result, at::kLong, {&self})) return false;
  const Tensor values = make_tensor(reduction.plan.result, self.scalar_type());
  record_extreme(opcode, self, reduction.plan, values);
  record_index(self, reduction, values, result_of(call));
  return true;
}

/// Both results of max.dim and min.dim; false: a case for the fallback.
template <Opcode opcode>
bool extreme_with_index(Call& values, Call& indices, const Tensor& self, int64_t dim, bool keepdim) {
  ArgReduction reduction;
  if (!plan_arg_reduction(self, dim, keepdim, kFloats | kInts | kBools, reduction)) return false;
  const bool same_memory = !values.is_functional() && values.target().storage().is_alias_of(indices.target().storage());
  if (same_memory || !prepare_result(values, reduction.plan.result, self.scalar_type(), {&self}) ||
      !prepare_result(indices, reduction.plan.result, at::kLong, {&self})) {
    return false;
  }
  record_extreme(opcode, self, reduction.plan, result_of(values));
  record_index(self, reduction, result_of(values), result_of(indices));
  return true;
}

template <OperatorName name, Opcode opcode>
Pair extreme_dim(const Tensor& self, int64_t dim, bool keepdim) {
  Call values, indices;
  if (extreme_with_index<opcode>(values, indices, self, dim, keepdim)) return {values.result, indices.result};
  return Fallback<Pair(const Tensor&, int64_t, bool)>::call(name.text, self, dim, keepdim);
}

template <OperatorName name, Opcode opcode>
std::tuple<Tensor&, Tensor&> extreme_dim_out(const Tensor& self, int64_t dim, bool keepdim, Tensor& to_values,
                                             Tensor& to_indices) {
  Call values = Call::out(to_values), indices = Call::out(to_indices);
  if (extreme_with_index<opcode>(values, indices, self, dim, keepdim)) return {to_values, to_indices};
  using Signature = std::tuple<Tensor&, Tensor&>(const Tensor&, int64_t, bool, Tensor&, Tensor&);
  return Fallback<Signature>::call(name.text, self, dim, keepdim, to_values, to_indices);
}

bool both_extremes(Call& low, Call& high, const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  ArgReduction reduction;
  if (!plan_arg_reduction(self, dim, keepdim, kFloats | kInts | kBools, reduction)) return false;
  const bool same_memory = !low.is_functional() && low.target().storage().is_alias_of(high.target().storage());
  if (same_memory || !prepare_result(low, reduction.plan.result, self.scalar_type(), {&self}) ||
      !prepare_result(high, reduction.plan.result, self.scalar_type(), {&self})) {
    return false;
  }
  record_extreme(Opcode::amin, self, reduction.plan, result_of(low));
  record_extreme(Opcode::amax, self, reduction.plan, result_of(high));
  return true;
}

Pair aminmax(const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  Call low, high;
  if (both_extremes(low, high, self, dim, keepdim)) return {low.result, high.result};
  return Fallback<Pair(const Tensor&, std::optional<int64_t>, bool)>::call("aminmax", self, dim, keepdim);
}

std::tuple<Tensor&, Tensor&> aminmax_out(const Tensor& self, std::optional<int64_t> dim, bool keepdim, Tensor& to_low,
                                         Tensor& to_high) {
  Call low = Call::out(to_low), high = Call::out(to_high);
  if (both_extremes(low, high, self, dim, keepdim)) return {to_low, to_high};
  using Signature = std::tuple<Tensor&, Tensor&>(const Tensor&, std::optional<int64_t>, bool, Tensor&, Tensor&);
  return Fallback<Signature>::call("aminmax.out", self, dim, keepdim, to_low, to_high);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  AE_FUNCTIONAL(m, "argmax", arg_extreme<Opcode::amax>);
  AE_OUT(m, "argmax.out", arg_extreme<Opcode::amax>);
  AE_FUNCTIONAL(m, "argmin", arg_extreme<Opcode::amin>);
  AE_OUT(m, "argmin.out", arg_extreme<Opcode::amin>);
  m.impl("max.dim", &extreme_dim<"max.dim", Opcode::amax>);
  m.impl("max.dim_max", &extreme_dim_out<"max.dim_max", Opcode::amax>);
  m.impl("min.dim", &extreme_dim<"min.dim", Opcode::amin>);
  m.impl("min.dim_min", &extreme_dim_out<"min.dim_min", Opcode::amin>);
  m.impl("aminmax", &aminmax);
  m.impl("aminmax.out", &aminmax_out);
}

}  // namespace
}  // namespace ae::engine
