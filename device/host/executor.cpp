#include "device/host/executor.h"

#include <exception>
#include <mutex>

#include <immintrin.h>

#include "device/float_mode.h"
#include "device/host/tile_machine.h"

namespace ae::device::host {

FloatModeScope::FloatModeScope(bool flush_denormal) : before_(_mm_getcsr()) {
  during_ = flush_denormal ? before_ | kFlushBits : before_ & ~kFlushBits;
  if (during_ != before_) _mm_setcsr(during_);
}

FloatModeScope::~FloatModeScope() {
  if (during_ != before_) _mm_setcsr(before_);
}

void Executor::run(const Launch& launch, const TileWork& work, void* const* addresses, const uint64_t* scalars,
                   bool flush_denormal) {
  if (launch.library)
    run_library(launch, addresses, scalars, flush_denormal);
  else
    run_tasks(work, addresses, scalars, flush_denormal);
}

void Executor::run_tasks(const TileWork& work, void* const* addresses, const uint64_t* scalars, bool flush_denormal) {
  if (work.shared_bytes > static_cast<int64_t>(shared_.size())) shared_.resize(work.shared_bytes);
  std::byte* shared = shared_.data();
  const auto run_task = [&](int64_t t) {
    const FloatModeScope mode(flush_denormal);
    const LaunchTask& task = work.tasks[t];
    for (int32_t r = task.first_range; r < task.last_range; ++r) {
      const TileRange& range = work.ranges[r];
      run_tiles(work.plans[range.plan], range.first, range.last, addresses, scalars,
                shared + work.shared_offsets[range.plan]);
    }
  };
  if (work.tasks.size() == 1)
    run_task(0);
  else if (work.tasks.size() > 1)
    pool_.parallel(static_cast<int64_t>(work.tasks.size()), run_task);
  if (work.split_plans.empty()) return;
  const FloatModeScope mode(flush_denormal);
  for (const int32_t plan : work.split_plans) {
    finish_tiles(work.plans[plan], addresses, scalars, shared + work.shared_offsets[plan]);
  }
}

void Executor::run_library(const Launch& launch, void* const* addresses, const uint64_t* scalars, bool flush_denormal) {
  library_addresses_.clear();
  for (const int32_t slot : launch.library_slots) library_addresses_.push_back(addresses[slot]);
  const LibraryCall& call = *launch.library;
  const uint64_t* own_scalars = scalars + launch.library_scalars;
  const int pieces = call.pieces();
  std::mutex mutex;
  std::exception_ptr error;
  int64_t failed = pieces;
  const auto run_piece = [&](int64_t piece) {
    const FloatModeScope mode(flush_denormal);
    try {
      call.run(static_cast<int>(piece), library_addresses_.data(), own_scalars);
    } catch (...) {
      std::lock_guard lock(mutex);
      if (piece < failed) {
        failed = piece;
        error = std::current_exception();
      }
    }
  };
  if (pieces == 1)
    run_piece(0);
  else if (pieces > 1)
    pool_.parallel(pieces, run_piece);
  if (error) std::rethrow_exception(error);
}

}  // namespace ae::device::host
