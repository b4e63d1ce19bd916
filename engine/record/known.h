// Index tensors whose values are known when recording, by program order and not by timing: copies from the host, and
// copies of those. Operators that can fail on an index check such tensors at the call; for others they are fences.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

#include <optional>

namespace ae::engine {

/// True if all values are known to lie in [low, high] or to be `allowed`. False if they are not known. A value that is
/// known to be outside is given to `fail`, which throws the operator's error or notes it. [waits for a host copy that
/// is still pending]
bool check_values(const at::Tensor& index, int64_t low, int64_t high, c10::function_ref<void(int64_t)> fail,
                  std::optional<int64_t> allowed = std::nullopt);

/// What is known of the values of an index.
enum class Known { unknown, inside, outside };
/// Whether all values lie in [low, high]. Where one is known to be outside, the CPU fallback raises the CPU's own
/// error. [waits as check_values]
Known known_range(const at::Tensor& index, int64_t low, int64_t high);

/// The values of a tensor that a copy from the host put there, as a CPU tensor on its memory; undefined if they are not
/// known. [waits as check_values]
at::Tensor known_values(const at::Tensor& tensor);

/// A node that makes `index` was just recorded, and all its values will lie in [low, high].
void mark_range(const at::Tensor& index, int64_t low, int64_t high);

/// The tensor's memory was just written by a copy from the host, or by an operator that ran there.
void mark_host_content(const at::Tensor& tensor);

/// `copy` was just recorded as a copy of `source`: what is known of one is known of the other.
/// A 0-dim CPU tensor is known.
void inherit_known(const at::Tensor& source, const at::Tensor& copy);

}  // namespace ae::engine
