// Writing whole slices by a vector of indices: index_add, index_copy, index_fill and index_reduce.
#include <ATen/ops/index_add_cpu_dispatch.h>
#include <ATen/ops/index_copy_cpu_dispatch.h>
#include <ATen/ops/index_fill_cpu_dispatch.h>
#include <ATen/ops/index_reduce_cpu_dispatch.h>

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
constexpr auto add_slices = [](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                               const Scalar& alpha,
                               Tensor& out) { at::cpu::index_add_outf(self, dim, index, source, alpha, out); };
constexpr auto fill_slices = [](const Tensor&, int64_t dim, const Tensor& index, const Scalar& value, Tensor& out) {
  at::cpu::index_fill_(out, dim, index, value);
};
constexpr auto fill_slices_with = [](const Tensor&, int64_t dim, const Tensor& index, const Tensor& value,
                                     Tensor& out) { at::cpu::index_fill_(out, dim, index, value.item()); };
constexpr auto reduce_slices = [](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                                  string_view reduce, bool include_self, Tensor& out) {
  quietly([&] { at::cpu::index_reduce_outf(self, dim, index, source, reduce, include_self, out); });
};

/// Pieces of a call whose 1-dim operand is the index, in the others' only dimension too.
std::vector<library::Piece> slices(const library::Piece& all, std::span<const int64_t> attributes) {
  return all.back().dim() < 2 ? std::vector<library::Piece>{all} : library::beside_dim(all, attributes);
}

const OutCall<add_slices, slices> kIndexAdd("index_add");
const OutCall<&at::cpu::index_copy_outf, slices> kIndexCopy("index_copy");
const OutCall<fill_slices, slices> kIndexFill("index_fill");
const OutCall<fill_slices_with, slices> kIndexFillWith("index_fill");
const OutCall<reduce_slices, slices> kIndexReduce("index_reduce");

/// One slice of `source` for each index.
bool is_sliced(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  if (source.scalar_type() != self.scalar_type() || source.dim() != self.dim()) return false;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (source.sizes()[d] != (d == dim ? index.numel() : self.sizes()[d])) return false;
  return self.dim() != 0 || index.numel() == 1;
}

/// Checks the arguments and gets the target ready. Returns the dimension, not negative; none for what the CPU refuses
/// or is left to the fallback. Negative indices count from the end where `wraps`.
std::optional<int64_t> begin(Call& call, const Tensor& self, int64_t dim, const Tensor& index, const Tensor* source,
                             IndexFault fault, bool wraps = false) {
  check_devices({&self, &index, source ? source : &index});
  dim = valid_dim(self, dim);
  if (dim < 0 || index.dim() > 1 || !is_index(index) || !contains(kIndexed, self.scalar_type()) ||
      (source && !is_sliced(self, dim, index, *source)) || (self.numel() == 0 && index.numel() != 0)) {
    return std::nullopt;
  }
  const int64_t extent = extent_of(self, dim);
  const IndexCheck check(index, wraps ? -extent : 0, extent - 1, fault, dim);
  if (!begin_update(call, self, source ? *source : index, check)) return std::nullopt;
  return dim;
}

bool index_add(Call& call, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
               const Scalar& alpha) {
  const at::ScalarType type = self.scalar_type();
  if (alpha.isBoolean() ? type != at::kBool : alpha.isFloatingPoint() && !contains(kFloats, type)) return false;
  if (!holds(type, alpha)) return false;
  // ATen adds matrices without a factor by scatter_add.
  const bool scatters = self.dim() > 1 && alpha.equal(1);
  const auto along =
      begin(call, self, dim, index, &source, scatters ? IndexFault::runtime_bounds : IndexFault::in_self);
  if (!along) return false;
  const Tensor& out = result_of(call);
  if (index.numel() != 0) kIndexAdd.record(out, *along, index, source, alpha, out);
  return true;
}

bool index_copy(Call& call, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  if (index.scalar_type() != at::kLong) return false;
  const auto along = begin(call, self, dim, index, &source, IndexFault::copy_bounds);
  if (!along) return false;
  const Tensor& out = result_of(call);
  if (index.numel() != 0) kIndexCopy.record(out, *along, index, source, out);
  return true;
}

bool index_fill(Call& call, const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  if (index.scalar_type() != at::kLong || !holds(self.scalar_type(), value)) return false;
  const auto along = begin(call, self, dim, index, nullptr, IndexFault::bounds, /*wraps=*/true);
  if (!along) return false;
  const Tensor& out = result_of(call);
  if (index.numel() != 0) kIndexFill.record(out, *along, index, value, out);
  return true;
}

bool index_fill_tensor(Call& call, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  if (is_cpu_scalar(value)) return index_fill(call, self, dim, index, value.item());
  check_devices({&self, &value});
  if (index.scalar_type() != at::kLong || value.dim() != 0 || value.scalar_type() != self.scalar_type() ||
      value.storage().is_alias_of(self.storage())) {
    return false;
  }
  const auto along = begin(call, self, dim, index, nullptr, IndexFault::bounds, /*wraps=*/true);
  if (!along) return false;
  const Tensor& out = result_of(call);
  if (index.numel() != 0) kIndexFillWith.record(out, *along, index, value, out);
  return true;
}

bool index_reduce(Call& call, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                  string_view reduce, bool include_self) {
  if (!(reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin")) return false;
  if (!contains(kFloats | kInts, self.scalar_type())) return false;
  const auto along = begin(call, self, dim, index, &source, IndexFault::in_self);
  if (!along) return false;
  TORCH_WARN_ONCE("index_reduce() is in beta and the API may change at any time.");
  const Tensor& out = result_of(call);
  if (index.numel() != 0) kIndexReduce.record(out, *along, index, source, reduce, include_self, out);
  return true;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  AE_FORMS(m, "index_add", "", ".out", index_add);
  AE_FORMS(m, "index_copy", "", ".out", index_copy);
  AE_FORMS(m, "index_reduce", "", ".out", index_reduce);
  AE_IN_PLACE(m, "index_fill_.int_Scalar", index_fill);
  AE_IN_PLACE(m, "index_fill_.int_Tensor", index_fill_tensor);
}

}  // namespace
}  // namespace ae::engine
