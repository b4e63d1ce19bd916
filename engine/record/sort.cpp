// Operators that give values and their indices along a dimension: sort, topk, kthvalue, median, mode. The indices'
// range is known, so that what indexes with them needs no check.
#include <ATen/ExpandUtils.h>
#include <ATen/ops/kthvalue_cpu_dispatch.h>
#include <ATen/ops/median_cpu_dispatch.h>
#include <ATen/ops/mode_cpu_dispatch.h>
#include <ATen/ops/nanmedian_cpu_dispatch.h>
#include <ATen/ops/sort_cpu_dispatch.h>
#include <ATen/ops/topk_cpu_dispatch.h>

#include <tuple>

#include "engine/library/beside.h"
#include "engine/library/out_call.h"
#include "engine/record/update.h"

namespace ae::engine {
namespace {

using at::Tensor;
using library::OutCall;
using Pair = std::tuple<Tensor, Tensor>;

constexpr auto sort_into = [](const Tensor& self, int64_t dim, bool stable, bool descending, Tensor& values,
                              Tensor& indices) { at::cpu::sort_outf(self, stable, dim, descending, values, indices); };
constexpr auto topk_into = [](const Tensor& self, int64_t dim, int64_t k, bool largest, bool sorted, Tensor& values,
                              Tensor& indices) { at::cpu::topk_outf(self, k, dim, largest, sorted, values, indices); };
// Reductions keep the dimension in a node, so that all operands have the same rank.
constexpr auto kthvalue_into = [](const Tensor& self, int64_t dim, int64_t k, Tensor& values, Tensor& indices) {
  at::cpu::kthvalue_outf(self, k, dim, /*keepdim=*/true, values, indices);
};
constexpr auto median_into = [](const Tensor& self, int64_t dim, Tensor& values, Tensor& indices) {
  at::cpu::median_outf(self, dim, /*keepdim=*/true, values, indices);
};
constexpr auto nanmedian_into = [](const Tensor& self, int64_t dim, Tensor& values, Tensor& indices) {
  at::cpu::nanmedian_outf(self, dim, /*keepdim=*/true, values, indices);
};
constexpr auto mode_into = [](const Tensor& self, int64_t dim, Tensor& values, Tensor& indices) {
  const auto [most, where] = at::cpu::mode(self, dim, /*keepdim=*/true);
  values.copy_(most);
  indices.copy_(where);
};
constexpr auto median_of_all = [](const Tensor& self, Tensor& out) { out.copy_(at::cpu::median(self)); };
constexpr auto nanmedian_of_all = [](const Tensor& self, Tensor& out) { out.copy_(at::cpu::nanmedian(self)); };

const OutCall<sort_into, library::beside_dim> kSort("sort");
const OutCall<topk_into, library::beside_dim> kTopk("topk");
const OutCall<kthvalue_into, library::beside_dim> kKthvalue("kthvalue");
const OutCall<median_into, library::beside_dim> kMedian("median");
const OutCall<nanmedian_into, library::beside_dim> kNanmedian("nanmedian");
const OutCall<mode_into, library::beside_dim> kMode("mode");
const OutCall<median_of_all> kMedianOfAll("median");
const OutCall<nanmedian_of_all> kNanmedianOfAll("nanmedian");

/// Kernels of an operator of two results, from a description as in kernel.h with a call for each of them.
template <OperatorName name, auto describe, class = decltype(describe)>
struct PairKernel;
template <OperatorName name, auto describe, class... Args>
struct PairKernel<name, describe, bool (*)(Call&, Call&, Args...)> {
  static Pair functional(Args... args) {
    Call first, second;
    if (describe(first, second, args...)) return {std::move(first.result), std::move(second.result)};
    return Fallback<Pair(Args...)>::call(name.text, args...);
  }
  static std::tuple<Tensor&, Tensor&> out(Args... args, Tensor& to_first, Tensor& to_second) {
    Call first = Call::out(to_first), second = Call::out(to_second);
    if (!to_first.storage().is_alias_of(to_second.storage()) && describe(first, second, args...))
      return {to_first, to_second};
    return Fallback<std::tuple<Tensor&, Tensor&>(Args..., Tensor&, Tensor&)>::call(name.text, args..., to_first,
                                                                                   to_second);
  }
};

bool prepare_pair(Call& values, Call& indices, const Tensor& self, at::IntArrayRef sizes,
                  at::IntArrayRef strides = {}) {
  return prepare_result(values, sizes, self.scalar_type(), {&self}, strides) &&
         prepare_result(indices, sizes, at::kLong, {&self}, strides);
}

bool sort(Call& values, Call& indices, const Tensor& self, std::optional<bool> stable, int64_t dim, bool descending) {
  check_devices({&self});
  dim = valid_dim(self, dim);
  if (dim < 0 || !contains(kIndexed, self.scalar_type())) return false;
  at::DimVector strides(self.strides());
  if (!self.is_non_overlapping_and_dense()) strides = at::infer_dense_strides(self.sizes(), self.strides());
  if (!prepare_pair(values, indices, self, self.sizes(), strides)) return false;
  if (self.numel() == 0) return true;
  kSort.record(self, dim, stable.value_or(false), descending, result_of(values), result_of(indices));
  mark_range(result_of(indices), 0, extent_of(self, dim) - 1);
  return true;
}

bool topk(Call& values, Call& indices, const Tensor& self, c10::SymInt symbolic_k, int64_t dim, bool largest,
          bool sorted) {
  check_devices({&self});
  const int64_t k = symbolic_k.expect_int();
  dim = valid_dim(self, dim);
  if (dim < 0 || k < 0 || k > extent_of(self, dim) || !contains(kFloats | kInts, self.scalar_type())) return false;
  at::DimVector sizes(self.sizes());
  if (!sizes.empty()) sizes[dim] = k;
  if (!prepare_pair(values, indices, self, sizes)) return false;
  if (result_of(values).numel() == 0) return true;
  kTopk.record(self, dim, k, largest, sorted, result_of(values), result_of(indices));
  mark_range(result_of(indices), 0, extent_of(self, dim) - 1);
  return true;
}

/// Prepares the results of a reduction and gives them to `record` with the dimension kept.
template <class Record>
bool reduce_pair(Call& values, Call& indices, const Tensor& self, int64_t dim, bool keepdim, uint64_t types,
                 Record record) {
  check_devices({&self});
  dim = valid_dim(self, dim);
  if (dim < 0 || self.numel() == 0 || !contains(types, self.scalar_type())) return false;
  at::DimVector sizes(self.sizes());
  if (!sizes.empty() && keepdim)
    sizes[dim] = 1;
  else if (!sizes.empty())
    sizes.erase(sizes.begin() + dim);
  if (!prepare_pair(values, indices, self, sizes)) return false;
  const auto kept = [&](const Tensor& result) { return keepdim || self.dim() == 0 ? result : result.unsqueeze(dim); };
  record(dim, kept(result_of(values)), kept(result_of(indices)));
  mark_range(result_of(indices), 0, extent_of(self, dim) - 1);
  return true;
}

bool kthvalue(Call& values, Call& indices, const Tensor& self, c10::SymInt symbolic_k, int64_t dim, bool keepdim) {
  const int64_t k = symbolic_k.expect_int(), wrapped = valid_dim(self, dim);
  if (wrapped < 0 || k < 1 || k > extent_of(self, wrapped)) return false;
  return reduce_pair(values, indices, self, dim, keepdim, kFloats | kInts,
                     [&](int64_t d, const Tensor& v, const Tensor& i) { kKthvalue.record(self, d, k, v, i); });
}

template <auto& node>
bool median_dim(Call& values, Call& indices, const Tensor& self, int64_t dim, bool keepdim) {
  return reduce_pair(values, indices, self, dim, keepdim, kFloats | kInts,
                     [&](int64_t d, const Tensor& v, const Tensor& i) { node.record(self, d, v, i); });
}

bool mode(Call& values, Call& indices, const Tensor& self, int64_t dim, bool keepdim) {
  return reduce_pair(values, indices, self, dim, keepdim, kIndexed,
                     [&](int64_t d, const Tensor& v, const Tensor& i) { kMode.record(self, d, v, i); });
}

template <auto& node>
bool median_all(Call& call, const Tensor& self) {
  check_devices({&self});
  if (self.numel() == 0 || !contains(kFloats | kInts, self.scalar_type())) return false;
  call.result = make_tensor({}, self.scalar_type());
  node.record(self, call.result);
  return true;
}

#define AE_PAIR(name, describe) m.impl(name, &PairKernel<name, &describe>::functional)
#define AE_PAIR_OUT(name, describe) m.impl(name, &PairKernel<name, &describe>::out)
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  AE_PAIR("sort.stable", sort);
  AE_PAIR_OUT("sort.values_stable", sort);
  AE_PAIR("topk", topk);
  AE_PAIR_OUT("topk.values", topk);
  AE_PAIR_OUT("kthvalue.values", kthvalue);
  AE_PAIR_OUT("median.dim_values", median_dim<kMedian>);
  AE_PAIR_OUT("nanmedian.dim_values", median_dim<kNanmedian>);
  AE_PAIR("mode", mode);
  AE_FUNCTIONAL(m, "median", median_all<kMedianOfAll>);
  AE_FUNCTIONAL(m, "nanmedian", median_all<kNanmedianOfAll>);
}
#undef AE_PAIR
#undef AE_PAIR_OUT

}  // namespace
}  // namespace ae::engine
