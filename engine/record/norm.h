// What norms have in common: views of their operands, made without a dispatch, and the dtype of their parameters.
#pragma once

#include <ATen/core/Tensor.h>

#include "engine/backend/storage.h"

namespace ae::engine {

/// A 1-dim tensor seen as dimension `dim` of a shape of `rank` dimensions.
inline at::Tensor along(const at::Tensor& vector, int64_t dim, int64_t rank) {
  at::DimVector sizes(rank, 1), strides(rank, 1);
  sizes[dim] = vector.size(0);
  strides[dim] = vector.stride(0);
  return make_tensor(vector.storage(), sizes, strides, vector.storage_offset(), vector.scalar_type());
}

/// A tensor with dimension 1 (channels) split into groups, its last dimensions as they are.
inline at::Tensor in_groups(const at::Tensor& tensor, int64_t groups) {
  const auto from = tensor.sizes(), steps = tensor.strides();
  at::DimVector sizes{from[0], groups, from[1] / groups};
  at::DimVector strides{steps[0], steps[1] * (from[1] / groups), steps[1]};
  sizes.append(from.begin() + 2, from.end());
  strides.append(steps.begin() + 2, steps.end());
  return make_tensor(tensor.storage(), sizes, strides, tensor.storage_offset(), tensor.scalar_type());
}

/// A contiguous [batch, groups] tensor seen over the first two dimensions of a shape of `rank` dimensions.
inline at::Tensor per_group(const at::Tensor& statistics, int64_t rank) {
  at::DimVector sizes(rank, 1), strides(rank, 1);
  std::copy_n(statistics.sizes().begin(), 2, sizes.begin());
  std::copy_n(statistics.strides().begin(), 2, strides.begin());
  return make_tensor(statistics.storage(), sizes, strides, statistics.storage_offset(), statistics.scalar_type());
}

/// A vector of channels seen over dimensions 1 and 2 (groups, channels of a group) of a shape of `rank` dimensions.
inline at::Tensor channels_in_groups(const at::Tensor& vector, int64_t groups, int64_t rank) {
  at::DimVector sizes(rank, 1), strides(rank, 1);
  sizes[1] = groups;
  sizes[2] = vector.size(0) / groups;
  strides[2] = vector.stride(0);
  strides[1] = strides[2] * sizes[2];
  return make_tensor(vector.storage(), sizes, strides, vector.storage_offset(), vector.scalar_type());
}

/// A new tensor like the input of a norm: its shape, and its memory format where it is dense in one.
inline at::Tensor norm_result(const at::Tensor& input, at::ScalarType type) {
  const at::MemoryFormat format = input.suggest_memory_format();
  at::Tensor result = make_tensor(input.sizes(), type);
  if (format != at::MemoryFormat::Contiguous && input.is_contiguous(format))
    result.unsafeGetTensorImpl()->empty_tensor_restride(format);
  return result;
}

// Bits of attribute 0 of the norms' operators (fusion/ops/norm.cpp).
inline constexpr int64_t kWeight = 1, kBias = 2, kCentred = 4, kChannels = 8, kRunning = 16;
inline constexpr int64_t kWithoutMean = 4;  // of layer_norm_backward_affine

/// The dtype of a norm's parameters and statistics, given the parameters: that of the input, or fp32 beside half types.
/// Undefined where PyTorch has something to say.
inline at::ScalarType parameter_type(at::ScalarType input,
                                     std::initializer_list<const std::optional<at::Tensor>*> parameters) {
  at::ScalarType type = input;
  bool first = true;
  for (const auto* parameter : parameters) {
    if (!parameter->has_value() || !(*parameter)->defined()) continue;
    const at::ScalarType own = (*parameter)->scalar_type();
    if (!first && own != type) return at::ScalarType::Undefined;
    type = own;
    first = false;
  }
  const bool half = input == at::kHalf || input == at::kBFloat16;
  return type == input || (half && type == at::kFloat) ? type : at::ScalarType::Undefined;
}

}  // namespace ae::engine
