// Selecting and putting elements by index tensors.
#include <ATen/ExpandUtils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/index.h>
#include <ATen/ops/index_meta.h>

#include <bit>

#include "engine/library/operators.h"
#include "engine/record/data_shape.h"
#include "engine/record/update.h"

namespace ae::engine {
namespace {

using at::Tensor;
using IndexList = c10::List<std::optional<Tensor>>;

/// True if a mask is among the indices: they choose as many elements as it has true ones.
bool has_mask(const IndexList& list) {
  for (const std::optional<Tensor>& index : list)
    if (has(index) && (index->scalar_type() == at::kBool || index->scalar_type() == at::kByte)) return true;
  return false;
}

/// The indices on the device: such on the CPU are copied, as PyTorch allows it.
IndexList on_device(const IndexList& list, c10::Device device) {
  IndexList moved;
  for (const std::optional<Tensor>& index : list)
    moved.push_back(has(index) && index->is_cpu() ? std::optional(index->to(device)) : index);
  return moved;
}

/// The indices of one call, if they are recorded: integers on the device.
class Indices {
 public:
  Indices(const Tensor& self, const IndexList& list) {
    if (!is_recordable(self.scalar_type()) || static_cast<int64_t>(list.size()) > self.dim()) return;
    for (size_t d = 0; d < list.size(); ++d) {
      const std::optional<Tensor> index = list.get(d);
      if (!has(index)) continue;
      if (!is_neuron(*index) || !is_index(*index) || (self.sizes()[d] == 0 && index->numel() != 0)) return;
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

  /// The same; values that are not known are checked by nodes, before anything is written.
  void check_before(const Tensor& self) const {
    if (check(self)) return;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const int64_t size = self.sizes()[dims_[i]];
      IndexCheck(tensors_[i], -size, size - 1, IndexFault::bounds, static_cast<int64_t>(i)).record();
    }
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

int64_t numel_of(at::IntArrayRef shape) { return c10::multiply_integers(shape); }

/// As many elements as a mask has true ones: their number is waited for.
Tensor masked_index(const Tensor& self, const IndexList& list) {
  IndexList host_list;
  for (const std::optional<Tensor>& index : list)
    host_list.push_back(has(index) ? std::optional(values_of(*index)) : std::nullopt);
  return on_host(self, [&](const Tensor& host) { return at::index(host, host_list); });
}

Tensor index(const Tensor& self, const IndexList& given) {
  check_devices({&self});
  if (has_mask(given)) return masked_index(self, given);
  const IndexList list = on_device(given, self.device());
  const Indices indices(self, list);
  const auto shape = indices.recordable() ? selected_shape(self, indices) : std::nullopt;
  if (!shape) return Fallback<Tensor(const Tensor&, const IndexList&)>::call("index.Tensor", self, list);
  bool contiguous = self.is_contiguous();
  for (const Tensor& tensor : indices.tensors()) contiguous = contiguous && tensor.is_contiguous();
  const Tensor out = contiguous ? make_tensor(*shape, self.scalar_type())
                                : make_tensor(*shape, selected_strides(self, list), self.scalar_type());
  if (out.numel() == 0) return out;
  const bool checked = indices.check(self);
  c10::SmallVector<Tensor, 4> inputs{self};
  inputs.append(indices.tensors().begin(), indices.tensors().end());
  record_library(library::kIndex, inputs, {out}, {indices.defined()}, {}, /*can_fail=*/!checked);
  return out;
}

/// A single mask that is given for some of self's dimensions.
struct Mask {
  Tensor tensor;
  int64_t trailing = 0;  // dimensions of self after those that it is given for
};

std::optional<Mask> single_mask(const Tensor& self, const IndexList& list) {
  Mask mask;
  int64_t first = 0;
  for (size_t d = 0; d < list.size(); ++d) {
    const std::optional<Tensor> index = list.get(d);
    if (!has(index)) continue;
    if (mask.tensor.defined() || index->scalar_type() != at::kBool || index->dim() == 0) return std::nullopt;
    mask.tensor = *index;
    first = static_cast<int64_t>(d);
  }
  if (!mask.tensor.defined() || first + mask.tensor.dim() > self.dim()) return std::nullopt;
  if (!self.sizes().slice(first, mask.tensor.dim()).equals(mask.tensor.sizes())) return std::nullopt;
  mask.trailing = self.dim() - first - mask.tensor.dim();
  return mask;
}

/// Puts values that are the same for every element that a mask chooses: a selection, of known shape. False for others.
bool put_at_mask(const Tensor& self, const Mask& mask, const Tensor& values, bool accumulate) {
  const auto trailing = self.sizes().slice(self.dim() - mask.trailing);
  const bool single = values.numel() == 1;
  if (!single && (values.dim() > mask.trailing || !at::is_expandable_to(values.sizes(), trailing))) return false;
  if (!contains(accumulate ? kFloats | kInts : kIndexed, self.scalar_type())) return false;
  Tensor chosen = mask.tensor;
  for (int64_t d = 0; d < mask.trailing; ++d) chosen = chosen.unsqueeze(-1);
  const Tensor value = single ? values.reshape({}) : values;
  Tensor changed = value;
  if (accumulate) {
    changed = make_tensor(self.sizes(), self.scalar_type());
    record_pointwise(Opcode::add, self.scalar_type(), {Input(self), Input(value)}, {changed});
  }
  record_pointwise(Opcode::where, self.scalar_type(), {Input(chosen), Input(changed), Input(self)}, {self});
  return true;
}

/// What the CPU asks of a target, its values and its indices. The dtypes of the indices are looked at elsewhere.
bool is_puttable(const Tensor& self, const IndexList& list, const Tensor& values) {
  if (!is_neuron(self) || !is_neuron(values) || values.scalar_type() != self.scalar_type() ||
      !contains(kIndexed, self.scalar_type()) || !is_apart(self) || values.storage().is_alias_of(self.storage())) {
    return false;
  }
  for (const std::optional<Tensor>& index : list)
    if (has(index) && (!is_neuron(*index) || index->storage().is_alias_of(self.storage()))) return false;
  return true;
}

/// Dimensions that a list of masks and integer indices stands for; -1 if a mask has another shape than its dimensions.
int64_t masked_dims(const Tensor& self, const IndexList& list) {
  int64_t next = 0;
  for (const std::optional<Tensor>& index : list) {
    const bool mask = has(index) && index->scalar_type() == at::kBool;
    const int64_t count = mask ? index->dim() : 1;
    if (next + count > self.dim() || (has(index) && !mask && !is_index(*index))) return -1;
    if (mask && !self.sizes().slice(next, count).equals(index->sizes())) return -1;
    next += count;
  }
  return next;
}

bool record_put(const Tensor& self, const IndexList& list, const Tensor& values, bool accumulate, bool unchecked) {
  if (!is_puttable(self, list, values)) return false;
  c10::SmallVector<Tensor, 6> inputs{self, values};
  int64_t defined = 0;
  bool can_fail = true;
  if (has_mask(list)) {
    if (const auto mask = single_mask(self, list); mask && values.numel() != 0 && self.numel() != 0)
      if (put_at_mask(self, *mask, values, accumulate)) return true;
    if (values.numel() == 0 || self.numel() == 0 || masked_dims(self, list) < 0) return false;
    for (size_t d = 0; d < list.size(); ++d) {
      if (!has(list.get(d))) continue;
      inputs.push_back(*list.get(d));
      defined |= int64_t{1} << d;
    }
  } else {
    const Indices indices(self, list);
    const auto shape = indices.recordable() ? selected_shape(self, indices) : std::nullopt;
    if (!shape || !at::is_expandable_to(values.sizes(), *shape)) return false;
    if (numel_of(*shape) == 0) return true;
    can_fail = false;
    indices.check_before(self);
    inputs.append(indices.tensors().begin(), indices.tensors().end());
    defined = indices.defined();
  }
  record_library(library::kIndexPut, inputs, {self}, {defined, accumulate, unchecked}, {}, can_fail);
  return true;
}

Tensor& index_put(Tensor& self, const IndexList& given, const Tensor& values, bool accumulate, bool unchecked) {
  check_devices({&self});
  const IndexList list = on_device(given, self.device());
  const Tensor value = is_cpu_scalar(values) ? values.to(self.device()) : values;
  if (record_put(self, list, value, accumulate, unchecked)) return self;
  return Fallback<Tensor&(Tensor&, const IndexList&, const Tensor&, bool, bool)>::call("_index_put_impl_", self, list,
                                                                                       value, accumulate, unchecked);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("index.Tensor", index);
  m.impl("_index_put_impl_", index_put);
}

}  // namespace
}  // namespace ae::engine
