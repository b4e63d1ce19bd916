// A stream of the host device: a queue of programs and the worker thread that runs them, one after another.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "device/device.h"
#include "device/host/clock.h"
#include "device/host/executor.h"
#include "device/host/memory.h"
#include "device/host/pool.h"

namespace ae::device::host {

class HostStream final : public Stream {
 public:
  HostStream(Pool& pool, MemoryPool& memory, NativeTier& native, std::shared_ptr<StreamClock> clock);
  /// Runs what is queued, then ends the worker.
  ~HostStream() override;

  uint64_t submit(Submission& submission) override;
  uint64_t completed() const noexcept override { return clock_->completed.load(std::memory_order_acquire); }
  uint64_t submitted() const noexcept override { return submitted_.load(std::memory_order_acquire); }
  bool wait(uint64_t number, int milliseconds) override;
  int64_t busy_ns() const noexcept override { return busy_ns_.load(std::memory_order_relaxed); }

 private:
  /// A queued submission.
  struct Run {
    std::shared_ptr<const Program> program;
    const HostProgram* host_program = nullptr;
    std::vector<void*> addresses;  // per slot
    std::vector<uint64_t> scalars;
    std::shared_ptr<CancelToken> token;
    bool flush_denormal = false;
    std::function<void(const LaunchError*)> on_end;
    uint64_t first = 0;
  };
  struct Allocation;

  void require_same_process() const;
  std::unique_ptr<Run> take_run();
  void allocate_slots(const HostProgram& program, Submission& submission, Run& run);
  void enqueue(std::unique_ptr<Run> run);
  void work();
  std::unique_ptr<Run> next_run();
  void execute(Run& run);
  bool run_launches(Run& run, LaunchError& error);
  void publish(uint64_t number);

  Pool& pool_;
  MemoryPool& memory_;
  NativeTier& native_;
  std::shared_ptr<StreamClock> clock_;
  Executor executor_;
  const int process_generation_;

  std::mutex submit_mutex_;  // the order of allocation is the order of the queue
  std::atomic<uint64_t> submitted_{0};
  std::atomic<int64_t> busy_ns_{0};

  std::mutex queue_mutex_;
  // On the heap: in a forked child they are left alone, since their end waits for the parent's sleeping threads.
  std::unique_ptr<std::condition_variable> queue_changed_ = std::make_unique<std::condition_variable>();
  std::deque<std::unique_ptr<Run>> queue_;
  std::vector<std::unique_ptr<Run>> spare_runs_;
  std::atomic<uint64_t> queued_{0};  // runs ever queued, for the worker to spin on
  uint64_t taken_ = 0;               // runs ever taken; the worker's
  bool worker_sleeps_ = false;
  std::atomic<bool> stopping_{false};

  std::mutex wait_mutex_;
  std::unique_ptr<std::condition_variable> progressed_ = std::make_unique<std::condition_variable>();
  std::atomic<int> waiters_{0};

  std::unique_ptr<std::thread> worker_;
};

}  // namespace ae::device::host
