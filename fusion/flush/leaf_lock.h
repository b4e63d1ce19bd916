// The recorder's lock: uncontended nearly always, so that taking it costs one atomic exchange and giving it back none;
// who has to wait sleeps.
#pragma once

#include <atomic>
#include <cstdint>

namespace ae::fusion {

/// Meets the standard's requirements for a mutex (BasicLockable).
class LeafLock {
 public:
  void lock() noexcept {
    uint32_t expected = kFree;
    if (!state_.compare_exchange_strong(expected, kTaken, std::memory_order_acquire)) [[unlikely]]
      wait();
  }
  // The processor may look for waiters before others see that the lock is free. So who begins to wait makes all
  // threads of the process pass a barrier and only then looks at the lock for the last time (see wait()).
  void unlock() noexcept {
    state_.store(kFree, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (waiters_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      wake();
  }

 private:
  enum : uint32_t { kFree, kTaken };
  void wait() noexcept;
  void wake() noexcept;
  std::atomic<uint32_t> state_{kFree};
  std::atomic<uint32_t> waiters_{0};
};

}  // namespace ae::fusion
