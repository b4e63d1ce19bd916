// Writing elements by an index of their own shape: scatter, scatter_add, scatter_reduce; put_ and masked_scatter.
#include <ATen/Context.h>
#include <ATen/ExpandUtils.h>
#include <ATen/ops/masked_scatter_cpu_dispatch.h>
#include <ATen/ops/masked_select_cpu_dispatch.h>
#include <ATen/ops/put_cpu_dispatch.h>
#include <ATen/ops/scatter_add_cpu_dispatch.h>
#include <ATen/ops/scatter_cpu_dispatch.h>
#include <ATen/ops/scatter_reduce_cpu_dispatch.h>

#include <string_view>

#include "engine/library/beside.h"
#include "engine/library/out_call.h"
#include "engine/record/update.h"

namespace ae::engine {

namespace {

using at::Scalar;
using at::Tensor;
using library::OutCall;
using library::quietly;
using std::string_view;

// Each changes its last argument, which is its first one too.
constexpr auto put_source = [](const Tensor& self, const Tensor& index, int64_t dim, const Tensor& source,
                               Tensor& out) { at::cpu::scatter_outf(self, dim, index, source, out); };
constexpr auto put_value = [](const Tensor& self, const Tensor& index, int64_t dim, const Scalar& value, Tensor& out) {
  at::cpu::scatter_outf(self, dim, index, value, out);
};
constexpr auto combine_source = [](const Tensor& self, const Tensor& index, int64_t dim, const Tensor& source,
                                   string_view reduce, Tensor& out) {
  quietly([&] { at::cpu::scatter_outf(self, dim, index, source, reduce, out); });
};
constexpr auto combine_value = [](const Tensor& self, const Tensor& index, int64_t dim, const Scalar& value,
                                  string_view reduce,
                                  Tensor& out) { at::cpu::scatter_outf(self, dim, index, value, reduce, out); };
constexpr auto add_source = [](const Tensor& self, const Tensor& index, int64_t dim, const Tensor& source,
                               Tensor& out) { at::cpu::scatter_add_outf(self, dim, index, source, out); };
constexpr auto reduce_source = [](const Tensor& self, const Tensor& index, int64_t dim, const Tensor& source,
                                  string_view reduce, bool include_self, Tensor& out) {
  at::cpu::scatter_reduce_outf(self, dim, index, source, reduce, include_self, out);
};
constexpr auto put_flat = [](const Tensor&, const Tensor& index, const Tensor& source, bool accumulate, Tensor& out) {
  at::cpu::put_(out, index, source, accumulate);
};
constexpr auto put_masked = [](const Tensor&, const Tensor& mask, const Tensor& source, Tensor& out) {
  at::cpu::masked_scatter_(out, mask, source);
};
// What masked_scatter took of its source gets the gradient; the rest of it was not used.
constexpr auto take_masked = [](const Tensor& grad, const Tensor& mask, Tensor& out) {
  const Tensor taken = at::cpu::masked_select(grad, mask);
  out.zero_();
  out.view({-1}).narrow(0, 0, taken.numel()).copy_(taken);
};

const OutCall<put_source, library::beside_dim> kScatter("scatter");
const OutCall<put_value, library::beside_dim> kScatterValue("scatter value");
const OutCall<combine_source, library::beside_dim> kScatterCombine("scatter reduce");
const OutCall<combine_value, library::beside_dim> kScatterCombineValue("scatter value reduce");
const OutCall<add_source, library::beside_dim> kScatterAdd("scatter_add");
const OutCall<reduce_source, library::beside_dim> kScatterReduce("scatter_reduce");
const OutCall<put_flat> kPut("put");
const OutCall<put_masked> kMaskedScatter("masked_scatter");
const OutCall<take_masked> kMaskedScatterBackward("masked_scatter_backward");

/// Checks the arguments and gets the target ready. Returns the dimension, not negative; none for what the CPU refuses
/// or is left to the fallback.
std::optional<int64_t> begin(Call& call, const Tensor& self, int64_t dim, const Tensor& index, const Tensor* source) {
  check_devices({&self, &index, source ? source : &index});
  dim = valid_dim(self, dim);
  if (dim < 0 || (!is_index(index) && index.numel() != 0) || !contains(kIndexed, self.scalar_type()) ||
      (source && source->scalar_type() != self.scalar_type())) {
    return std::nullopt;
  }
  if (index.numel() != 0) {
    const int64_t rank = std::max<int64_t>(self.dim(), 1);
    if (self.numel() == 0 || std::max<int64_t>(index.dim(), 1) != rank ||
        (source && std::max<int64_t>(source->dim(), 1) != rank)) {
      return std::nullopt;
    }
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t extent = extent_of(index, d);
      if ((d != dim && extent > extent_of(self, d)) || (source && extent > extent_of(*source, d))) return std::nullopt;
    }
  }
  const IndexCheck check(index, 0, extent_of(self, dim) - 1, IndexFault::runtime_bounds, dim);
  if (!begin_update(call, self, source ? *source : index, check)) return std::nullopt;
  return dim;
}

bool scatter(Call& call, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  const auto along = begin(call, self, dim, index, &source);
  if (!along) return false;
  const Tensor& out = result_of(call);
  if (index.numel() != 0) kScatter.record(out, index, *along, source, out);
  return true;
}

bool scatter_value(Call& call, const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  if (!holds(self.scalar_type(), value)) return false;
  const auto along = begin(call, self, dim, index, nullptr);
  if (!along) return false;
  const Tensor& out = result_of(call);
  if (index.numel() != 0) kScatterValue.record(out, index, *along, value, out);
  return true;
}

bool is_combination(string_view reduce) { return reduce == "add" || reduce == "multiply"; }

bool scatter_combine(Call& call, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                     string_view reduce) {
  if (!is_combination(reduce)) return false;
  const auto along = begin(call, self, dim, index, &source);
  if (!along) return false;
  TORCH_WARN_ONCE(
      "The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a future PyTorch "
      "release. Use torch.scatter_reduce instead for more reduction options.");
  const Tensor& out = result_of(call);
  if (index.numel() != 0) kScatterCombine.record(out, index, *along, source, reduce, out);
  return true;
}

bool scatter_combine_value(Call& call, const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value,
                           string_view reduce) {
  if (!is_combination(reduce) || !holds(self.scalar_type(), value)) return false;
  const auto along = begin(call, self, dim, index, nullptr);
  if (!along) return false;
  const Tensor& out = result_of(call);
  if (index.numel() != 0) kScatterCombineValue.record(out, index, *along, value, reduce, out);
  return true;
}

bool scatter_add(Call& call, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  const auto along = begin(call, self, dim, index, &source);
  if (!along) return false;
  const Tensor& out = result_of(call);
  if (index.numel() != 0) kScatterAdd.record(out, index, *along, source, out);
  return true;
}

bool scatter_reduce(Call& call, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                    string_view reduce, bool include_self) {
  const bool mean = reduce == "mean";
  if (!(mean || reduce == "sum" || reduce == "prod" || reduce == "amax" || reduce == "amin")) return false;
  if (mean && self.scalar_type() == at::kBool) return false;
  const auto along = begin(call, self, dim, index, &source);
  if (!along) return false;
  const Tensor& out = result_of(call);
  if (index.numel() != 0) kScatterReduce.record(out, index, *along, source, reduce, include_self, out);
  return true;
}

bool put(Call& call, const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
  check_devices({&self, &index, &source});
  if (!accumulate && at::globalContext().deterministicAlgorithms()) return false;  // CPU raises or warns
  if (index.scalar_type() != at::kLong || !contains(kIndexed, self.scalar_type()) ||
      source.scalar_type() != self.scalar_type() || index.numel() != source.numel() ||
      (self.numel() == 0 && index.numel() != 0)) {
    return false;
  }
  const IndexCheck check(index, -self.numel(), self.numel() - 1, IndexFault::flat);
  if (!begin_update(call, self, source, check)) return false;
  const Tensor& out = result_of(call);
  if (index.numel() != 0) kPut.record(out, index, source, accumulate, out);
  return true;
}

bool masked_scatter(Call& call, const Tensor& self, const Tensor& mask, const Tensor& source) {
  check_devices({&self, &mask, &source});
  if (mask.scalar_type() != at::kBool || !contains(kIndexed, self.scalar_type()) || mask.numel() == 0 ||
      source.scalar_type() != self.scalar_type() || !at::is_expandable_to(mask.sizes(), self.sizes())) {
    return false;
  }
  const auto check = [&] {
    if (source.numel() < self.numel()) check_mask(mask, self.numel() / mask.numel(), source.numel());
  };
  if (!begin_update(call, self, mask, source, check)) return false;
  const Tensor& out = result_of(call);
  if (self.numel() != 0) kMaskedScatter.record(out, mask, source, out);
  return true;
}

Tensor masked_scatter_backward(const Tensor& grad, const Tensor& mask, c10::SymIntArrayRef symbolic_sizes) {
  check_devices({&grad, &mask});
  const Tensor result = make_tensor(C10_AS_INTARRAYREF_SLOW(symbolic_sizes), grad.scalar_type());
  kMaskedScatterBackward.record(grad, mask, result);
  return result;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  AE_FORMS(m, "scatter", ".src", ".src_out", scatter);
  AE_FORMS(m, "scatter", ".value", ".value_out", scatter_value);
  AE_FORMS(m, "scatter", ".reduce", ".reduce_out", scatter_combine);
  AE_FORMS(m, "scatter", ".value_reduce", ".value_reduce_out", scatter_combine_value);
  AE_FORMS(m, "scatter_add", "", ".out", scatter_add);
  AE_FORMS(m, "scatter_reduce", ".two", ".two_out", scatter_reduce);
  AE_IN_PLACE(m, "put_", put);
  AE_IN_PLACE(m, "masked_scatter_", masked_scatter);
  m.impl("masked_scatter_backward", &masked_scatter_backward);
}

}  // namespace
}  // namespace ae::engine
