// Index tensors whose values are known when recording, by program order and not by timing: copies from the host, and
// copies of those. Operators that can fail on an index check such tensors at the call; for others they are fences.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

#include <optional>

namespace ae::engine {

/// True if all values are known to lie in [low, high] or to be `allowed`. False if they are not known. A value that is
/// known to be outside is given to `fail`, which throws the operator's error. [waits for a host copy still pending]
bool check_values(const at::Tensor& index, int64_t low, int64_t high, c10::function_ref<void(int64_t)> fail,
                  std::optional<int64_t> allowed = std::nullopt);

/// The tensor's memory was just written by a copy from the host.
void mark_host_content(const at::Tensor& tensor);

/// `copy` was just recorded as a copy of `source`: what is known of one is known of the other.
/// A 0-dim CPU tensor is known.
void inherit_known(const at::Tensor& source, const at::Tensor& copy);

}  // namespace ae::engine
