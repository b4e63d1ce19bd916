// Threads on which ATen, MKL and OpenMP use one thread only, so that results do not depend on the number of threads.
#pragma once

namespace ae::engine {

/// Makes the calling thread such a thread for good: the device's pool threads call it before their first launch.
void prepare_one_thread();

/// Makes the calling thread such a thread for a while.
class OneThreadScope {
 public:
  OneThreadScope();
  ~OneThreadScope();
  OneThreadScope(const OneThreadScope&) = delete;
  OneThreadScope& operator=(const OneThreadScope&) = delete;

 private:
  int omp_threads_, mkl_threads_;
};

}  // namespace ae::engine
