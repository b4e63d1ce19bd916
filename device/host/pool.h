// The one pool of threads that launches run on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace ae::device::host {

class Pool {
 public:
  /// threads <= 0: as many as the affinity mask has. `thread_start` is called once on each thread of the pool, and on
  /// each thread that enters it, before it runs anything.
  Pool(int threads, std::function<void()> thread_start);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int threads() const { return threads_; }
  /// Runs `body` on the calling thread as a member of the pool. For the life of a stream's worker.
  void enter(const std::function<void()>& body);
  /// Runs body(0) … body(count - 1) on the pool and returns when all are done; called inside `enter`. Bodies must not
  /// throw.
  void parallel(int64_t count, const std::function<void(int64_t)>& body);

 private:
  struct Arena;
  int process_;  // its id
  int threads_;
  // In a forked child it is left alone, since its end waits for the parent's threads.
  std::unique_ptr<Arena> arena_;
};

/// CPUs that the process may run on.
int available_cpus();

}  // namespace ae::device::host
