// Results of operators that are not pointwise: the new tensor of a functional call, or the checked target.
#pragma once

#include <ATen/MemoryOverlap.h>

#include <optional>

#include "engine/backend/storage.h"
#include "engine/record/shape.h"

namespace ae::engine {

/// An optional tensor that was given.
inline bool has(const std::optional<at::Tensor>& tensor) { return tensor.has_value() && tensor->defined(); }

/// Throws PyTorch's error unless all tensors are on the device.
inline void check_devices(std::initializer_list<const at::Tensor*> tensors) {
  for (const at::Tensor* tensor : tensors)
    if (!is_neuron(*tensor)) throw_devices(*tensor);
}

/// Gets the call's result ready for an operator that writes all of it: makes it, or gives the target its shape. False,
/// with nothing changed, where the fallback knows better: another dtype, a target that overlaps itself or shares its
/// storage with an input (a target that is one of the inputs itself is for the caller to allow or not: `self`).
/// `strides` empty: contiguous.
bool prepare_result(Call& call, at::IntArrayRef sizes, at::ScalarType dtype,
                    std::initializer_list<const at::Tensor*> inputs, at::IntArrayRef strides = {},
                    const at::Tensor* self = nullptr);

/// Where a call's result goes, once prepared.
inline const at::Tensor& result_of(const Call& call) { return call.is_functional() ? call.result : call.target(); }

}  // namespace ae::engine
