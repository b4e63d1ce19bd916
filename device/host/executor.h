// Runs the launches of compiled programs on the pool; used by a stream's worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/host/pool.h"
#include "device/host/program.h"

namespace ae::device::host {

/// Sets the thread's flush-to-zero and denormals-are-zero modes, and puts them back at its end.
class FloatModeScope {
 public:
  explicit FloatModeScope(bool flush_denormal);
  ~FloatModeScope();
  FloatModeScope(const FloatModeScope&) = delete;
  FloatModeScope& operator=(const FloatModeScope&) = delete;

 private:
  unsigned before_, during_;
};

class Executor {
 public:
  explicit Executor(Pool& pool) : pool_(pool) {}
  /// Runs one launch to its end. Throws what a library call threw (of several pieces: the first).
  void run(const Launch& launch, const TileWork& work, void* const* addresses, const uint64_t* scalars,
           bool flush_denormal);

 private:
  void run_tasks(const TileWork& work, void* const* addresses, const uint64_t* scalars, bool flush_denormal);
  void run_library(const Launch& launch, void* const* addresses, const uint64_t* scalars, bool flush_denormal);

  Pool& pool_;
  std::vector<std::byte> shared_;  // partial results of split reductions
  std::vector<void*> library_addresses_;
};

}  // namespace ae::device::host
