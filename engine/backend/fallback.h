// Operators that have no kernel of ours run on the CPU, in place: their neuron arguments are seen as CPU tensors on the
// same memory, and what they make is adopted without a copy.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <utility>

#include "engine/backend/one_thread.h"

namespace ae::engine {

/// The boxed fallback: waits for what the operator reads, runs its CPU kernel on one thread, counts it by name. [waits]
void cpu_fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack);

/// Runs host code (at:: calls on CPU tensors, such as host_alias gives) as the fallback does: on one ATen thread and
/// without autograd.
template <class F>
auto run_on_host(F&& function) {
  OneThreadScope one_thread;
  at::AutoDispatchBelowADInplaceOrView below;
  return std::forward<F>(function)();
}

/// A neuron tensor on the memory of a CPU tensor that nobody else uses.
at::Tensor adopt(const at::Tensor& host);

/// Throws PyTorch's error for operands on the neuron device and on the CPU. 0-dim CPU tensors may be mixed in.
[[noreturn]] void throw_mixed_devices();

}  // namespace ae::engine
