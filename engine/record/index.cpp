// Selecting and putting elements by index tensors.
#include <ATen/ExpandUtils.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/index_meta.h>

#include <bit>

#include "engine/library/operators.h"
#include "engine/record/kernel.h"
#include "engine/record/known.h"
#include "engine/record/result.h"

namespace ae::engine {
namespace {

using at::Tensor;
using IndexList = c10::List<std::optional<Tensor>>;

bool is_index(const Tensor& tensor) { return tensor.scalar_type() == at::kLong || tensor.scalar_type() == at::kInt; }

bool index_select(Call& call, const Tensor& self, int64_t dim, const Tensor& index) {
  check_devices({&self, &index});
  if (self.dim() == 0 || index.dim() > 1 || !is_index(index) || !is_recordable(self.scalar_type()) ||
      self.numel() == 0 || index.numel() == 0) {
    return false;
  }
  dim = at::maybe_wrap_dim(dim, self.dim());
  const auto fail = [](int64_t) { TORCH_CHECK_INDEX(false, "index out of range in self"); };
  const bool checked = check_values(index, 0, self.sizes()[dim] - 1, fail);
  at::DimVector sizes(self.sizes());
  sizes[dim] = index.numel();
  if (!prepare_result(call, sizes, self.scalar_type(), {&self, &index})) return false;
  record_library(library::kIndexSelect, {self, index}, {result_of(call)}, {dim}, {}, /*can_fail=*/!checked);
  return true;
}

/// The indices of one call, if they are recorded: integers on the device, and self has no dimension of size 0.
class Indices {
 public:
  Indices(const Tensor& self, const IndexList& indices) {
    if (!is_recordable(self.scalar_type()) || self.numel() == 0 || static_cast<int64_t>(indices.size()) > self.dim())
      return;
    for (size_t d = 0; d < indices.size(); ++d) {
      const std::optional<Tensor> index = indices.get(d);
      if (!index.has_value() || !index->defined()) continue;
      if (!is_neuron(*index) || !is_index(*index) || index->numel() == 0) return;
      tensors_.push_back(*index);
      dims_.push_back(static_cast<int64_t>(d));
      defined_ |= int64_t{1} << d;
    }
    recordable_ = !tensors_.empty();
  }
  bool recordable() const { return recordable_; }
  int64_t defined() const { return defined_; }
  c10::ArrayRef<Tensor> tensors() const { return tensors_; }

  /// True if all values are known and inside; throws for one that is known to be outside.
  bool check(const Tensor& self) const {
    bool all = true;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const int64_t size = self.sizes()[dims_[i]];
      const auto fail = [&](int64_t value) {  // ATen's kernel counts the dimensions that have an index
        TORCH_CHECK_INDEX(false, "index ", value, " is out of bounds for dimension ", i, " with size ", size);
      };
      all = check_values(tensors_[i], -size, size - 1, fail) && all;
    }
    return all;
  }

 private:
  c10::SmallVector<Tensor, 4> tensors_;
  c10::SmallVector<int64_t, 4> dims_;
  int64_t defined_ = 0;
  bool recordable_ = false;
};

/// The shape of self[indices], or none if the indices do not broadcast.
std::optional<at::DimVector> selected_shape(const Tensor& self, const Indices& indices) {
  at::DimVector selection;
  for (const Tensor& index : indices.tensors()) {
    if (!at::are_expandable(selection, index.sizes())) return std::nullopt;
    selection = at::infer_size_dimvector(selection, index.sizes());
  }
  // Indices that are next to each other leave their dimensions in place, others go to the front.
  const auto defined = static_cast<uint64_t>(indices.defined());
  const uint64_t run = defined >> std::countr_zero(defined);
  const bool adjacent = (run & (run + 1)) == 0;
  at::DimVector shape;
  if (!adjacent) shape = selection;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d == std::countr_zero(defined) && adjacent) shape.append(selection.begin(), selection.end());
    if (!(defined >> d & 1)) shape.push_back(self.sizes()[d]);
  }
  return shape;
}

/// PyTorch's own shape function of index on tensors without memory, stopped where it would make the output. Slow: for
/// operands that are not contiguous, whose result follows their strides.
struct IndexShape final : at::meta::structured_index_Tensor {
  const Tensor& maybe_get_output(int64_t) override { return output; }
  void set_output_raw_strided(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides,
                              at::TensorOptions options) override {
    output = strides.empty() ? at::empty(sizes, options) : at::empty_strided(sizes, strides, options);
    at::meta::structured_index_Tensor::set_output_raw_strided(index, sizes, strides, options);
  }
  Tensor output;
};

at::DimVector selected_strides(const Tensor& self, const IndexList& list) {
  const auto bare = [](const Tensor& tensor) {
    return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta));
  };
  IndexList indices;
  for (size_t d = 0; d < list.size(); ++d) {
    const std::optional<Tensor> index = list.get(d);
    indices.push_back(index.has_value() && index->defined() ? std::optional(bare(*index)) : std::nullopt);
  }
  IndexShape shape;
  shape.meta(bare(self), at::IOptTensorListRef(indices));
  return at::DimVector(shape.output.strides());
}

Tensor index(const Tensor& self, const IndexList& list) {
  check_devices({&self});
  const Indices indices(self, list);
  const auto shape = indices.recordable() ? selected_shape(self, indices) : std::nullopt;
  if (!shape) return Fallback<Tensor(const Tensor&, const IndexList&)>::call("index.Tensor", self, list);
  const bool checked = indices.check(self);
  bool contiguous = self.is_contiguous();
  for (const Tensor& tensor : indices.tensors()) contiguous = contiguous && tensor.is_contiguous();
  const Tensor out = contiguous ? make_tensor(*shape, self.scalar_type())
                                : make_tensor(*shape, selected_strides(self, list), self.scalar_type());
  c10::SmallVector<Tensor, 4> inputs{self};
  inputs.append(indices.tensors().begin(), indices.tensors().end());
  record_library(library::kIndex, inputs, {out}, {indices.defined()}, {}, /*can_fail=*/!checked);
  return out;
}

Tensor& index_put(Tensor& self, const IndexList& list, const Tensor& values, bool accumulate, bool unchecked) {
  const Indices indices(self, list);
  const bool plain = indices.recordable() && is_neuron(self) && is_neuron(values) && values.numel() != 0 &&
                     values.scalar_type() == self.scalar_type() && self.is_non_overlapping_and_dense();
  const auto shape = plain ? selected_shape(self, indices) : std::nullopt;
  bool recorded = shape.has_value() && at::is_expandable_to(values.sizes(), *shape) &&
                  !values.storage().is_alias_of(self.storage());
  for (const Tensor& index : indices.tensors()) recorded = recorded && !index.storage().is_alias_of(self.storage());
  if (!recorded)
    return Fallback<Tensor&(Tensor&, const IndexList&, const Tensor&, bool, bool)>::call("_index_put_impl_", self, list,
                                                                                         values, accumulate, unchecked);
  const bool checked = indices.check(self);
  c10::SmallVector<Tensor, 6> inputs{self, values};
  inputs.append(indices.tensors().begin(), indices.tensors().end());
  record_library(library::kIndexPut, inputs, {self}, {indices.defined(), accumulate, unchecked}, {},
                 /*can_fail=*/!checked);
  return self;
}

/// Checks of gather and scatter: index is int64 and inside self (but for `dim`) and inside `source`.
bool fits(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  if (self.dim() == 0 || index.dim() != self.dim() || source.dim() != self.dim() || index.scalar_type() != at::kLong ||
      !is_recordable(self.scalar_type()) || self.scalar_type() != source.scalar_type() || index.numel() == 0 ||
      dim < 0 || dim >= self.dim()) {
    return false;
  }
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d != dim && index.sizes()[d] > self.sizes()[d]) return false;
    if (!source.is_same(self) && index.sizes()[d] > source.sizes()[d]) return false;
  }
  return true;
}

bool check_along(const Tensor& index, int64_t dim, int64_t size) {
  const auto fail = [&](int64_t value) {
    TORCH_CHECK(false, "index ", value, " is out of bounds for dimension ", dim, " with size ", size);
  };
  return check_values(index, 0, size - 1, fail);
}

bool gather(Call& call, const Tensor& self, int64_t dim, const Tensor& index, bool /*sparse_grad*/) {
  check_devices({&self, &index});
  if (dim < 0) dim += self.dim();
  if (!fits(self, dim, index, self)) return false;
  const bool checked = check_along(index, dim, self.sizes()[dim]);
  if (!prepare_result(call, index.sizes(), self.scalar_type(), {&self, &index})) return false;
  record_library(library::kGather, {self, index}, {result_of(call)}, {dim}, {}, /*can_fail=*/!checked);
  return true;
}

enum class ScatterMode : int64_t { put, add, value };

bool record_scatter(Call& call, const Tensor& self, int64_t dim, const Tensor& index, const Tensor* source,
                    ScatterMode mode, double value = 0) {
  check_devices({&self, &index, source ? source : &index});
  if (dim < 0) dim += self.dim();
  if (!fits(self, dim, index, source ? *source : self)) return false;
  const bool checked = check_along(index, dim, self.sizes()[dim]);
  if (!prepare_result(call, self.sizes(), self.scalar_type(), {&self, &index, source ? source : &index}, {}, &self))
    return false;
  c10::SmallVector<Tensor, 3> inputs{self, index};
  if (source) inputs.push_back(*source);
  record_library(library::kScatter, inputs, {result_of(call)}, {dim, static_cast<int64_t>(mode)}, {value},
                 /*can_fail=*/!checked);
  return true;
}

bool scatter(Call& call, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  return record_scatter(call, self, dim, index, &source, ScatterMode::put);
}
bool scatter_add(Call& call, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  return record_scatter(call, self, dim, index, &source, ScatterMode::add);
}
bool scatter_value(Call& call, const Tensor& self, int64_t dim, const Tensor& index, const at::Scalar& value) {
  // A double carries the value: not every int64.
  if (!contains(kFloats, self.scalar_type()) || value.isComplex()) return false;
  return record_scatter(call, self, dim, index, nullptr, ScatterMode::value, value.toDouble());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  AE_FUNCTIONAL(m, "index_select", index_select);
  AE_OUT(m, "index_select.out", index_select);
  m.impl("index.Tensor", index);
  m.impl("_index_put_impl_", index_put);
  AE_FUNCTIONAL(m, "gather", gather);
  AE_OUT(m, "gather.out", gather);
  AE_FUNCTIONAL(m, "scatter.src", scatter);
  AE_IN_PLACE(m, "scatter_.src", scatter);
  AE_OUT(m, "scatter.src_out", scatter);
  AE_FUNCTIONAL(m, "scatter.value", scatter_value);
  AE_IN_PLACE(m, "scatter_.value", scatter_value);
  AE_OUT(m, "scatter.value_out", scatter_value);
  AE_FUNCTIONAL(m, "scatter_add", scatter_add);
  AE_IN_PLACE(m, "scatter_add_", scatter_add);
  AE_OUT(m, "scatter_add.out", scatter_add);
}

}  // namespace
}  // namespace ae::engine
