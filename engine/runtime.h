// The process's one engine: device, recorder, settings from the environment. Made at the first use of the device.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "device/device.h"
#include "fusion/flush/recorder.h"

namespace ae::engine {

/// The recorder of the default stream. The first call makes the host device and reads the environment; throws
/// c10::Error (RuntimeError / ValueError) naming the variable when one of ours has an unknown value, and in a child of
/// fork, where the device has no worker.
inline fusion::Recorder& recorder();
device::Device& host_device();
/// True when the device was made already.
bool is_initialized();
/// True in a child of fork whose parent had used the device.
bool is_in_bad_fork();

/// Waits for the content of a buffer with the GIL released (if held); turns deferred errors into PyTorch exceptions.
void wait_for(fusion::Buffer& buffer, bool for_write, fusion::FlushReason reason);
void synchronize(fusion::FlushReason reason = fusion::FlushReason::synchronize);
void flush(fusion::FlushReason reason);
/// Flushes and waits; errors stay for the next read.
void finish(fusion::FlushReason reason);
/// Call after an operator was recorded: under NEURON_LAUNCH_BLOCKING=1 it waits for the operator.
inline void after_record();

/// Call in a catch block: throws the exception in flight as the one that PyTorch's users know (OutOfMemoryError, and
/// for a failed operator its own error with the operator's file and line).
[[noreturn]] void rethrow_for_torch();

/// Counts a CPU fallback of the operator with this name, for the report.
void count_fallback(const char* name);
std::map<std::string, int64_t> fallback_counts();

/// Switches at run time; flushes first. Returns the setting before.
bool set_adaptive(bool on);
/// Waits for what was submitted, so that nothing runs while the process ends. Flushes nothing.
void shutdown();

// ------------------------------------------------------------------------------------- Details of the recording path

namespace detail {
extern std::atomic<fusion::Recorder*> g_recorder;
extern std::atomic<bool> g_launch_blocking;
fusion::Recorder& start_recorder();
}  // namespace detail

inline fusion::Recorder& recorder() {
  fusion::Recorder* started = detail::g_recorder.load(std::memory_order_acquire);
  if (started) [[likely]]
    return *started;
  return detail::start_recorder();
}

inline void after_record() {
  if (detail::g_launch_blocking.load(std::memory_order_relaxed)) [[unlikely]]
    synchronize(fusion::FlushReason::unfused);
}

}  // namespace ae::engine
