// Concatenation; stack arrives here as well.
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/cat_meta.h>

#include "engine/library/operators.h"
#include "engine/record/kernel.h"
#include "engine/record/result.h"

namespace ae::engine {
namespace {

using at::Tensor;

/// PyTorch's own shape function, stopped where it would make the output.
struct CatShape final : at::meta::structured_cat {
  at::DimVector sizes, strides;
  at::ScalarType type = at::ScalarType::Undefined;
  const Tensor& maybe_get_output(int64_t) override { return given; }
  void set_output_raw_strided(int64_t, at::IntArrayRef shape, at::IntArrayRef stride,
                              at::TensorOptions options) override {
    sizes.assign(shape.begin(), shape.end());
    strides.assign(stride.begin(), stride.end());
    type = c10::typeMetaToScalarType(options.dtype());
    const auto format = options.memory_format_opt().value_or(at::MemoryFormat::Contiguous);
    if (strides.empty() && format == at::MemoryFormat::ChannelsLast) strides = c10::get_channels_last_strides_2d(sizes);
    if (strides.empty() && format == at::MemoryFormat::ChannelsLast3d)
      strides = c10::get_channels_last_strides_3d(sizes);
  }
  Tensor given;
};

/// A node counts its operands in eight bits; of longer lists each node writes a stretch of the result.
constexpr size_t kMostInputs = 200;

void record_parts(at::TensorList inputs, int64_t dim, const Tensor& result) {
  if (inputs.size() <= kMostInputs) return record_library(library::kCat, inputs, {result}, {dim});
  int64_t position = 0;
  for (size_t first = 0; first < inputs.size(); first += kMostInputs) {
    const auto part = inputs.slice(first, std::min(kMostInputs, inputs.size() - first));
    int64_t length = 0;
    for (const Tensor& tensor : part) length += tensor.sizes()[dim];
    record_library(library::kCat, part, {result.narrow(dim, position, length)}, {dim});
    position += length;
  }
}

bool record_cat(Call& call, const at::ITensorListRef& list, int64_t dim) {
  const auto tensors = list.materialize();
  for (const Tensor& tensor : tensors) {
    check_devices({&tensor});
    if (!is_recordable(tensor.scalar_type())) return false;
  }
  CatShape shape;
  if (!call.is_functional()) shape.given = call.target();
  const auto decided = shape.meta(list, dim);
  c10::SmallVector<Tensor, 8> inputs;
  for (const Tensor& tensor : tensors) {
    if (!call.is_functional() && call.target().storage().is_alias_of(tensor.storage())) return false;
    // Empty vectors may stand beside anything and count for nothing.
    if (tensor.dim() == 1 && tensor.sizes()[0] == 0) continue;
    if (tensor.numel() != 0) inputs.push_back(tensor);
  }
  const at::ScalarType type = call.is_functional() ? shape.type : call.target().scalar_type();
  if (!is_recordable(type) || !prepare_result(call, shape.sizes, type, {}, shape.strides)) return false;
  if (!inputs.empty()) record_parts(inputs, decided.dim, result_of(call));
  return true;
}

Tensor cat(const at::ITensorListRef& tensors, int64_t dim) {
  Call call;
  if (record_cat(call, tensors, dim)) return call.result;
  return Fallback<Tensor(const at::ITensorListRef&, int64_t)>::call("cat", tensors, dim);
}

Tensor& cat_out(const at::ITensorListRef& tensors, int64_t dim, Tensor& out) {
  Call call = Call::out(out);
  if (record_cat(call, tensors, dim)) return out;
  return Fallback<Tensor&(const at::ITensorListRef&, int64_t, Tensor&)>::call("cat.out", tensors, dim, out);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("cat", cat);
  m.impl("cat.out", cat_out);
}

}  // namespace
}  // namespace ae::engine
