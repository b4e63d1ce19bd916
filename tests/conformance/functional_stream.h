// The functional device's stream: a thread that runs programs in order.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "tests/conformance/functional_program.h"

namespace ae::device::conformance {

class FunctionalStream final : public Stream {
 public:
  explicit FunctionalStream(std::shared_ptr<Account> account);
  ~FunctionalStream() override;
  uint64_t submit(Submission& submission) override;
  uint64_t completed() const noexcept override { return completed_; }
  uint64_t submitted() const noexcept override { return submitted_; }
  bool wait(uint64_t number, int milliseconds) override;
  int64_t busy_ns() const noexcept override { return busy_ns_; }
  int64_t donated() const noexcept { return donated_; }

 private:
  struct Slot {
    std::shared_ptr<Cell> before, after;  // after: null when the program neither makes nor writes it
    std::shared_ptr<Storage> now;         // where the content is, null: nowhere; the worker's
    bool is_freed = false;                // by the program
  };
  struct Run {
    std::shared_ptr<const Program> program;
    std::vector<Slot> slots;
    std::vector<uint64_t> scalars;
    std::shared_ptr<CancelToken> token;
    bool flush_denormal = false;
    std::function<void(const LaunchError*)> on_end;
    uint64_t first = 0;
    const std::vector<FunctionalLaunch>& launches() const {
      return static_cast<const FunctionalProgram&>(*program).launches;
    }
  };
  class Placement;

  static void run_launch(Run& run, const FunctionalLaunch& launch);
  static void settle(Run& run);
  LaunchError run_launches(Run& run);
  void publish(uint64_t number);
  void work();

  std::shared_ptr<Account> account_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Run> queue_;
  std::atomic<uint64_t> submitted_{0}, completed_{0};
  std::atomic<int64_t> busy_ns_{0}, donated_{0};
  bool stopping_ = false;
  std::thread worker_;
};

}  // namespace ae::device::conformance
