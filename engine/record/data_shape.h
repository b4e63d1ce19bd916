// Operators whose result's shape depends on data. They wait for what they read, run ATen's CPU kernel at once, on one
// thread and on our memory, and what it makes is ours.
#pragma once

#include "engine/backend/fallback.h"
#include "engine/record/known.h"
#include "engine/record/shape.h"

namespace ae::engine {

/// The tensor's values, as a CPU tensor on its memory. CPU tensors are taken as they are. [waits]
inline at::Tensor values_of(const at::Tensor& tensor) {
  return tensor.defined() && is_neuron(tensor)
             ? host_alias(tensor, /*for_write=*/false, fusion::FlushReason::data_dependent_shape)
             : tensor;
}

/// A tensor that a CPU kernel just made, as one of ours: its values are known when recording.
inline at::Tensor own(const at::Tensor& made) {
  if (!made.defined()) return made;
  at::Tensor result = adopt(made);
  if (result.numel() != 0) mark_host_content(result);
  return result;
}

/// `make` of the tensor's values. [waits]
template <class Make>
at::Tensor on_host(const at::Tensor& tensor, Make make) {
  const at::Tensor host = values_of(tensor);
  return own(run_on_host([&] { return make(host); }));
}

}  // namespace ae::engine
