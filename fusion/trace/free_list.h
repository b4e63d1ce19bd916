// Memory of objects that are made and ended all the time. A trace lets go of thousands of them at once, more than
// malloc's own fast lists hold. So each thread keeps those that it freed, for the ones that it makes next.
#pragma once

#include <new>
#include <utility>

namespace ae::fusion {

/// For the `operator new` and `operator delete` of a final class.
template <class T>
class FreeList {
 public:
  static void* take() {
    List& list = list_;
    if (list.first == nullptr) [[unlikely]]
      return ::operator new(sizeof(T), std::align_val_t(alignof(T)));
    --list.count;
    return std::exchange(list.first, list.first->next);
  }
  static void give(void* memory) noexcept {
    List& list = list_;
    if (list.count >= list.most) [[unlikely]]
      if (!start()) return ::operator delete(memory, std::align_val_t(alignof(T)));
    ++list.count;
    list.first = new (memory) Free{list.first};
  }

 private:
  struct Free {
    Free* next;
  };
  /// Without a constructor or destructor, which would be looked for at each access.
  struct List {
    Free* first;
    int count, most;
    bool was_started;
  };
  struct Cleanup {
    ~Cleanup() {
      list_.most = 0;  // objects of the thread that end later are freed
      while (list_.first)
        ::operator delete(std::exchange(list_.first, list_.first->next), std::align_val_t(alignof(T)));
    }
  };
  /// The thread's first object is freed: true. False where the list is full, or the thread ends.
  [[gnu::noinline]] static bool start() noexcept {
    if (list_.was_started) return false;
    thread_local Cleanup cleanup;
    (void)&cleanup;
    list_.was_started = true;
    list_.most = 16384;
    return true;
  }
  // On the recording path: no call to find the thread's own.
  static thread_local List list_ __attribute__((tls_model("initial-exec")));
};

template <class T>
constinit thread_local typename FreeList<T>::List FreeList<T>::list_{};

}  // namespace ae::fusion
