#include "engine/backend/one_thread.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <tuple>
#include <utility>

namespace ae::engine {
namespace {

// The OpenMP and MKL that torch itself uses; a build without MKL has only the first. MKL's setter returns the thread's
// earlier local setting, where 0 stands for the global one.
struct Libraries {
  int (*omp_get_max_threads)() = nullptr;
  void (*omp_set_num_threads)(int) = nullptr;
  int (*mkl_set_num_threads_local)(int) = nullptr;
};

template <class F>
void find(F*& function, const char* name) {
  function = reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, name));
}

const Libraries& libraries() {
  static const Libraries found = [] {
    Libraries result;
    find(result.omp_get_max_threads, "omp_get_max_threads");
    find(result.omp_set_num_threads, "omp_set_num_threads");
    find(result.mkl_set_num_threads_local, "MKL_Set_Num_Threads_Local");
    return result;
  }();
  return found;
}

// Returns the thread's OpenMP and MKL settings before.
std::pair<int, int> set_one_thread() {
  const Libraries& found = libraries();
  at::get_num_threads();  // ATen's lazy initialisation would undo the rest if it came later
  int omp = 1, mkl = 0;
  if (found.omp_set_num_threads) {
    omp = found.omp_get_max_threads();
    if (omp != 1) found.omp_set_num_threads(1);
  }
  if (found.mkl_set_num_threads_local) mkl = found.mkl_set_num_threads_local(1);
  return {omp, mkl};
}

}  // namespace

void prepare_one_thread() {
  set_one_thread();
  TORCH_CHECK(at::get_num_threads() == 1, "[neuron] a thread of the pool could not be set to one ATen thread");
}

OneThreadScope::OneThreadScope() { std::tie(omp_threads_, mkl_threads_) = set_one_thread(); }

OneThreadScope::~OneThreadScope() {
  const Libraries& found = libraries();
  if (found.omp_set_num_threads && omp_threads_ != 1) found.omp_set_num_threads(omp_threads_);
  if (found.mkl_set_num_threads_local) found.mkl_set_num_threads_local(mkl_threads_);
}

}  // namespace ae::engine
