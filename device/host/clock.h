// The progress of a stream, as its memory sees it: which launches may still use a block that was freed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

namespace ae::device::host {

class StreamClock {
 public:
  /// All launches below this number are done.
  std::atomic<uint64_t> completed{0};
  /// The launches below this number may use blocks that are freed now.
  std::atomic<uint64_t> issued{0};

  bool is_done(uint64_t stamp) const { return completed.load(std::memory_order_acquire) >= stamp; }
  uint64_t stamp() const { return issued.load(std::memory_order_acquire); }

  /// Calls `action` once all launches that are queued now are done: at once or on the stream's thread.
  void when_done(std::function<void()> action) {
    const uint64_t at = stamp();
    {
      std::lock_guard lock(mutex_);
      if (!is_done(at)) {
        waiting_.push_back({at, std::move(action)});
        has_waiting_.store(true, std::memory_order_seq_cst);
        if (completed.load(std::memory_order_seq_cst) < at) return;  // the worker will see it
        action = std::move(waiting_.back().action);
        waiting_.pop_back();
      }
    }
    action();
  }

  /// Called by the stream's thread when `completed` has grown.
  void run_done_actions() {
    if (!has_waiting_.load(std::memory_order_seq_cst)) return;
    std::vector<Waiting> ready;
    {
      std::lock_guard lock(mutex_);
      for (size_t i = 0; i < waiting_.size();) {
        if (!is_done(waiting_[i].stamp)) {
          ++i;
          continue;
        }
        ready.push_back(std::move(waiting_[i]));
        waiting_[i] = std::move(waiting_.back());
        waiting_.pop_back();
      }
      has_waiting_.store(!waiting_.empty(), std::memory_order_seq_cst);
    }
    for (Waiting& waiting : ready) waiting.action();
  }

 private:
  struct Waiting {
    uint64_t stamp;
    std::function<void()> action;
  };
  std::mutex mutex_;
  std::atomic<bool> has_waiting_{false};
  std::vector<Waiting> waiting_;
};

}  // namespace ae::device::host
