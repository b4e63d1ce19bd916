#include "fusion/flush/leaf_lock.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace ae::fusion {
namespace {

/// A memory barrier on all threads of the process. False where the system has none.
bool pass_barrier() noexcept {
  static const bool registered = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  return registered && syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

}  // namespace

void LeafLock::wait() noexcept {
  waiters_.fetch_add(1, std::memory_order_seq_cst);
  // Without the barrier a holder may miss that somebody waits: then one looks again after a short time.
  constexpr timespec kMillisecond{0, 1'000'000};
  const timespec* limit = pass_barrier() ? nullptr : &kMillisecond;
  while (state_.exchange(kTaken, std::memory_order_acquire) != kFree)
    syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, uint32_t{kTaken}, limit, nullptr, 0);
  waiters_.fetch_sub(1, std::memory_order_relaxed);
}

void LeafLock::wake() noexcept { syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0); }

}  // namespace ae::fusion
