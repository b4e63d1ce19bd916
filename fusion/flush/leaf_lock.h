// The recorder's lock: uncontended nearly always, so that taking it costs one atomic exchange; who has to wait sleeps.
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
  void unlock() noexcept {
    if (state_.exchange(kFree, std::memory_order_release) == kAwaited) [[unlikely]]
      state_.notify_one();
  }

 private:
  enum : uint32_t { kFree, kTaken, kAwaited };
  void wait() noexcept {
    while (state_.exchange(kAwaited, std::memory_order_acquire) != kFree)
      state_.wait(kAwaited, std::memory_order_relaxed);
  }
  std::atomic<uint32_t> state_{kFree};
};

}  // namespace ae::fusion
