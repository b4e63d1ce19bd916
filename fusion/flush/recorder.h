// The recorder: one trace, its flush policy, the plan cache, and the stream that plans run on. Everything that happens
// to the default stream goes through it. Thread safe; no torch in it.
//
// Its lock is a leaf: under it nothing of torch is called or released and no GIL is taken. Functions marked [waits] may
// block on the device; the engine calls them without the GIL.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/float_mode.h"
#include "fusion/flush/leaf_lock.h"
#include "fusion/flush/policy.h"
#include "fusion/flush/reason.h"
#include "fusion/flush/statistics.h"
#include "fusion/plan/kernel_cache.h"
#include "fusion/plan/plan_cache.h"
#include "fusion/trace/trace.h"

namespace ae::fusion {

/// A failed operator's error, thrown to whoever reads what depends on it.
class DeferredError : public std::exception {
 public:
  explicit DeferredError(std::shared_ptr<const Failure> failure) : failure(std::move(failure)) {}
  const char* what() const noexcept override { return "an operator failed on its data"; }
  std::shared_ptr<const Failure> failure;
};

class Recorder {
 public:
  struct Hooks {
    LibraryResolver library;
    /// Asked for the current source line while a trace is new ("file:line", or an empty text). Called without the lock.
    std::function<std::string()> source_line;
    /// Called about every 50 ms while waiting; throws to end the wait.
    std::function<void()> check_interrupt;
    /// Whether what this thread records runs in the floating-point mode of what was recorded before, not in the
    /// thread's own: for threads that the program did not start. Called under the lock.
    std::function<bool()> takes_mode = {};
  };
  Recorder(device::Device& device, const PolicySettings& settings, Hooks hooks);
  /// Waits for what was flushed; what is still recorded is dropped.
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// A node being recorded: holds the trace's lock from construction to commit() or destruction.
  class Node {
   public:
    Node(Recorder& recorder, Opcode opcode, DType common, int rank = 0, const int64_t* sizes = nullptr,
         uint32_t reduced = 0)
        : recorder_(recorder),
          lock_(recorder.lock_to_record()),
          writer_(recorder.trace_, opcode, common, rank, sizes, reduced) {
      if (recorder.statistics_.operators_recorded % kSampled == 0) [[unlikely]]
        start_ns_ = now_ns();
    }
    NodeWriter& writer() { return writer_; }
    /// Accounts for an output that has no memory yet; before it is written to the node.
    void makes(Buffer& buffer) {
      buffer.known.store(0, std::memory_order_relaxed);
      // Small values do not matter to the budget, and counting is an atomic operation here and one at their end.
      if (buffer.nbytes < kCounted || recorder_.trace_.uses(&buffer) || buffer.block) return;
      buffer.held_epoch = recorder_.trace_.epoch();
      recorder_.hold(buffer.nbytes);
    }
    /// Ends the node, unlocks, and flushes if the policy says so.
    void commit() { recorder_.commit(lock_, writer_, start_ns_); }

   private:
    // One operator of so many is timed: reading the clock costs a good part of recording one.
    static constexpr int64_t kSampled = 256;
    static constexpr int64_t kCounted = 4096;  // bytes
    friend class Recorder;
    Recorder& recorder_;
    std::unique_lock<LeafLock> lock_;
    NodeWriter writer_;
    int64_t start_ns_ = 0;
  };

  /// Accounts for the bytes of a value that a node makes; `drop` when nobody can see it any more. Any thread; what was
  /// recorded with the buffer has happened before `drop`.
  void hold(int64_t bytes) noexcept { bytes_held_.fetch_add(bytes, std::memory_order_relaxed); }
  void drop(const Buffer& buffer) noexcept {
    if (buffer.held_epoch == epoch_.load(std::memory_order_relaxed))
      bytes_held_.fetch_sub(buffer.nbytes, std::memory_order_relaxed);
  }

  /// Submits what is recorded. Does nothing on an empty trace.
  void flush(FlushReason reason);
  /// Flushes if the trace writes `buffer` (for_write: if it uses it at all), waits for the launches that write (use)
  /// it, and gives the buffer memory if it has none. Throws DeferredError if its content was lost, or if some
  /// operator's error has not been seen yet. [waits]
  void wait_for(Buffer& buffer, bool for_write, FlushReason reason);
  /// Flushes and waits for everything. [waits]
  void finish(FlushReason reason);
  /// The same; throws an error that has not been seen yet. [waits]
  void synchronize(FlushReason reason = FlushReason::synchronize);
  /// True when nothing is recorded or running that uses the buffer.
  bool is_idle(const Buffer& buffer) const;

  PolicySettings settings() const;
  /// Flushes, then changes the settings.
  void set_settings(const PolicySettings& settings);
  Statistics statistics() const;
  void reset_statistics();
  /// The plans flushed last, the latest first, for the report.
  std::vector<std::shared_ptr<const Plan>> recent_plans() const;
  device::Device& device() { return device_; }
  /// Number of operators recorded and not yet flushed.
  size_t pending() const;

 private:
  using Lock = std::unique_lock<LeafLock>;
  /// What must be released without the lock: buffers may wrap memory of torch's.
  using Graveyard = std::vector<BufferRef>;
  static constexpr size_t kNoCut = SIZE_MAX;

  struct Failed {
    std::shared_ptr<const Failure> failure;
    std::shared_ptr<const Plan> plan;
    int launch = 0;
    std::vector<BufferRef> buffers;
  };

  static int64_t now_ns();
  /// Launches flush denormal numbers to zero if the thread did that which recorded them.
  Lock lock_to_record() {
    Lock lock(mutex_);
    if (device::flushes_denormals() != flush_denormal_) [[unlikely]]
      change_mode(lock);
    return lock;
  }
  void change_mode(Lock& lock);
  void commit(Lock& lock, NodeWriter& writer, int64_t start_ns);
  bool follow(size_t from);
  void set_followed(std::shared_ptr<Plan> plan);
  void learn_cuts(Plan& plan, FlushReason reason, bool was_idle);
  void flush_locked(FlushReason reason, const std::string& line, Graveyard& graveyard);
  std::shared_ptr<Plan> find_plan(std::vector<BufferNeed> needs);
  void submit(const std::shared_ptr<Plan>& plan);
  void pass_on_failures();
  void start_trace(const std::shared_ptr<Plan>& flushed, Graveyard& graveyard);
  void clear_trace(Graveyard& graveyard);
  void wait_number(uint64_t number);
  void note_failed(const device::LaunchError& error, const std::shared_ptr<Plan>& plan, std::vector<BufferRef> buffers);
  /// Marks what failed launches have lost; returns an error that was not returned before, if any.
  std::shared_ptr<const Failure> mark_failures(Graveyard& graveyard);
  /// The same; with such an error, also cancels what was recorded until now.
  std::shared_ptr<const Failure> collect_failures(Graveyard& graveyard);
  std::string line_of_reader() const { return hooks_.source_line ? hooks_.source_line() : std::string(); }

  device::Device& device_;
  device::Stream& stream_;
  const Hooks hooks_;
  mutable LeafLock mutex_;
  PolicySettings settings_;
  Trace trace_;
  std::atomic<uint64_t> epoch_;  // the trace's, for `drop`
  std::atomic<int64_t> bytes_held_{0};
  PlanCache plans_;
  KernelCache kernels_;
  std::shared_ptr<Plan> followed_;  // known plan that begins with the whole trace, or null
  std::shared_ptr<Plan> previous_;  // plan flushed last
  std::shared_ptr<Plan> whole_;     // plan whose trace is being cut for the first time, or null
  std::vector<uint32_t> pieces_;    // lengths of its pieces from the current one on, that one last
  size_t cut_at_ = kNoCut;          // operators after which this trace is to be cut
  std::vector<std::string> lines_;  // source lines of the trace's nodes once no plan is followed
  std::vector<std::weak_ptr<const Plan>> recent_;
  bool flush_denormal_ = false;
  std::shared_ptr<device::CancelToken> token_ = std::make_shared<device::CancelToken>();
  Statistics statistics_;
  int64_t busy_before_ = 0, kernels_before_ = 0;  // at the last reset of the statistics
  std::atomic<int64_t> waiting_ns_{0};

  std::mutex failed_mutex_;  // the worker never takes mutex_
  std::vector<Failed> failed_;
  std::shared_ptr<const Failure> seen_;  // returned last; what was cancelled because of it is no new error
  uint64_t fence_end_ = 0;               // launches that can fail have numbers below it
};

}  // namespace ae::fusion
