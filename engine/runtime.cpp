#include "engine/runtime.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <pthread.h>

#include <atomic>
#include <mutex>
#include <string_view>

#include "device/host/host_device.h"
#include "engine/backend/one_thread.h"
#include "engine/environment.h"
#include "engine/python_state.h"
#include "engine/record/record.h"

namespace ae::engine {
namespace {

using fusion::FlushReason;
using fusion::Recorder;

struct Runtime {
  std::unique_ptr<device::Device> device;
  std::unique_ptr<Recorder> recorder;
};

// Leaked: storages, and with them blocks, outlive static destruction.
std::atomic<Runtime*> g_runtime{nullptr};
std::atomic<bool> g_bad_fork{false};
std::mutex& start_mutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

std::mutex g_fallback_mutex;
std::map<std::string, int64_t>& fallbacks() {
  static auto& counts = *new std::map<std::string, int64_t>;
  return counts;
}

void forget_after_fork() {
  detail::g_recorder.store(nullptr);
  if (g_runtime.exchange(nullptr) != nullptr) g_bad_fork.store(true);
}

// Autograd's threads keep the floating-point mode that they were born with; on the CPU, the backward pass runs in the
// mode of the thread that asks for it.
bool is_backward_thread() {
  thread_local const bool is_one = [] {
    char name[16] = {};
    pthread_getname_np(pthread_self(), name, sizeof name);
    return std::string_view(name).starts_with("pt_autograd");
  }();
  return is_one;
}

Runtime& start() {
  std::lock_guard lock(start_mutex());
  if (Runtime* runtime = g_runtime.load()) return *runtime;
  TORCH_CHECK(
      !g_bad_fork.load(),
      "[neuron] the device cannot be used in a forked child of a process that had used it. Start processes with "
      "the 'spawn' method instead (torch.multiprocessing.set_start_method('spawn')).");
  const Environment environment = read_environment();
  auto runtime = std::make_unique<Runtime>();
  device::host::HostOptions options;
  options.threads = environment.threads > 0 ? environment.threads : at::get_num_threads();
  options.thread_start = &prepare_one_thread;
  options.native = environment.native;
  runtime->device = device::host::make_host_device(options);
  Recorder::Hooks hooks;
  hooks.library = &resolve_library;
  hooks.source_line = &current_source_line;
  hooks.check_interrupt = &check_signals;
  hooks.takes_mode = &is_backward_thread;
  runtime->recorder = std::make_unique<Recorder>(*runtime->device, environment.policy, std::move(hooks));
  pthread_atfork(nullptr, nullptr, &forget_after_fork);
  detail::g_launch_blocking.store(environment.launch_blocking, std::memory_order_relaxed);
  g_runtime.store(runtime.get(), std::memory_order_release);
  detail::g_recorder.store(runtime->recorder.get(), std::memory_order_release);
  return *runtime.release();
}

Runtime& runtime() {
  Runtime* runtime = g_runtime.load(std::memory_order_acquire);
  if (runtime) [[likely]]
    return *runtime;
  return start();
}

// Throws a copy, so that the origin is told once however often the same failure is read.
template <class E>
[[noreturn]] void throw_with_origin(const E& error, const std::string& origin) {
  E copy = error;
  if (!origin.empty())
    copy.add_context("This operator ran on the neuron device later than it was called; it was recorded at " + origin);
  throw copy;
}

[[noreturn]] void rethrow_failure(const fusion::Failure& failure) {
  try {
    std::rethrow_exception(failure.error);
  } catch (const device::OutOfMemory& error) {
    TORCH_CHECK_WITH(OutOfMemoryError, false, error.what(),
                     failure.origin.empty() ? "" : " (recorded at " + failure.origin + ")");
  } catch (const c10::IndexError& error) {
    throw_with_origin(error, failure.origin);
  } catch (const c10::ValueError& error) {
    throw_with_origin(error, failure.origin);
  } catch (const c10::TypeError& error) {
    throw_with_origin(error, failure.origin);
  } catch (const c10::NotImplementedError& error) {
    throw_with_origin(error, failure.origin);
  } catch (const c10::LinAlgError& error) {
    throw_with_origin(error, failure.origin);
  } catch (const c10::OutOfMemoryError& error) {
    throw_with_origin(error, failure.origin);
  } catch (const c10::Error& error) {
    throw_with_origin(error, failure.origin);
  }
}

// Runs a function that may block on the device.
template <class F>
void without_gil(F&& function) {
  GilRelease release;
  try {
    function();
  } catch (...) {
    rethrow_for_torch();
  }
}

}  // namespace

namespace detail {
std::atomic<Recorder*> g_recorder{nullptr};
std::atomic<bool> g_launch_blocking{false};
Recorder& start_recorder() { return *runtime().recorder; }
}  // namespace detail

device::Device& host_device() { return *runtime().device; }
bool is_initialized() { return g_runtime.load(std::memory_order_acquire) != nullptr; }
bool is_in_bad_fork() { return g_bad_fork.load(); }

void wait_for(fusion::Buffer& buffer, bool for_write, FlushReason reason) {
  Recorder& target = recorder();
  without_gil([&] { target.wait_for(buffer, for_write, reason); });
}

void synchronize(FlushReason reason) {
  Recorder& target = recorder();
  without_gil([&] { target.synchronize(reason); });
}

void finish(FlushReason reason) {
  Recorder& target = recorder();
  without_gil([&] { target.finish(reason); });
}

void flush(FlushReason reason) {
  Recorder& target = recorder();
  without_gil([&] { target.flush(reason); });
}

void rethrow_for_torch() {
  try {
    throw;
  } catch (const fusion::DeferredError& error) {
    rethrow_failure(*error.failure);
  } catch (const device::OutOfMemory& error) {
    TORCH_CHECK_WITH(OutOfMemoryError, false, error.what());
  }
}

void count_fallback(const char* name) {
  std::lock_guard lock(g_fallback_mutex);
  ++fallbacks()[name];
}

std::map<std::string, int64_t> fallback_counts() {
  std::lock_guard lock(g_fallback_mutex);
  return fallbacks();
}

bool set_adaptive(bool on) {
  Recorder& target = recorder();
  fusion::PolicySettings settings = target.settings();
  const bool before = settings.adaptive;
  if (before != on) {
    settings.adaptive = on;
    without_gil([&] { target.set_settings(settings); });
  }
  return before;
}

void shutdown() {
  Runtime* runtime = g_runtime.load();
  if (runtime == nullptr) return;
  device::Stream& stream = runtime->device->default_stream();
  GilRelease release;
  constexpr int kMilliseconds = 10'000;
  stream.wait(stream.submitted(), kMilliseconds);
}

}  // namespace ae::engine
