#include "device/host/pool.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_scheduler_observer.h>

namespace ae::device::host {
namespace {

/// Calls `thread_start` when a thread enters the arena for the first time.
class StartObserver final : public tbb::task_scheduler_observer {
 public:
  StartObserver(tbb::task_arena& arena, std::function<void()> start)
      : tbb::task_scheduler_observer(arena), start_(std::move(start)), id_(next_id_.fetch_add(1)) {
    observe(true);
  }
  ~StartObserver() override { observe(false); }

  void on_scheduler_entry(bool) override {
    thread_local std::vector<int> started;
    if (std::find(started.begin(), started.end(), id_) != started.end()) return;
    started.push_back(id_);
    if (start_) start_();
  }

 private:
  static inline std::atomic<int> next_id_{0};
  std::function<void()> start_;
  int id_;
};

}  // namespace

struct Pool::Arena {
  Arena(int threads, std::function<void()> start)
      : parallelism(
            tbb::global_control::max_allowed_parallelism,
            std::max<size_t>(threads, tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism))),
        arena(threads, 1),
        observer(arena, std::move(start)) {}
  tbb::global_control parallelism;
  tbb::task_arena arena;
  StartObserver observer;
};

int available_cpus() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

Pool::Pool(int threads, std::function<void()> thread_start)
    : process_(getpid()),
      threads_(threads > 0 ? threads : available_cpus()),
      arena_(std::make_unique<Arena>(threads_, std::move(thread_start))) {}

Pool::~Pool() {
  if (process_ != getpid()) static_cast<void>(arena_.release());
}

void Pool::enter(const std::function<void()>& body) {
  arena_->arena.execute([&] { body(); });
}

void Pool::parallel(int64_t count, const std::function<void(int64_t)>& body) {
  if (threads_ == 1 || count == 1) {
    for (int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  tbb::parallel_for(
      tbb::blocked_range<int64_t>(0, count, 1),
      [&](const tbb::blocked_range<int64_t>& range) {
        for (int64_t i = range.begin(); i != range.end(); ++i) body(i);
      },
      tbb::simple_partitioner());
}

}  // namespace ae::device::host
