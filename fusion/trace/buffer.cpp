#include "fusion/trace/buffer.h"

#include <new>

namespace ae::fusion {

namespace {

// A trace lets go of thousands of buffers at once: more than malloc's own fast lists hold. So each thread keeps those
// that it freed, for the ones that it makes next.
struct FreeBuffer {
  FreeBuffer* next;
};
constexpr int kKept = 16384;

struct FreeList {
  FreeBuffer* first = nullptr;
  int count = 0;
  bool ended = false;  // the thread's objects are being destroyed
  ~FreeList() {
    ended = true;
    while (first) ::operator delete(std::exchange(first, first->next));
  }
};

// On the recording path: no call to find the thread's own.
thread_local FreeList free_list __attribute__((tls_model("initial-exec")));

}  // namespace

void* Buffer::operator new(size_t size) {
  FreeList& list = free_list;
  if (!list.first) return ::operator new(size);
  --list.count;
  return std::exchange(list.first, list.first->next);
}

void Buffer::operator delete(void* memory) noexcept {
  FreeList& list = free_list;
  if (list.ended || list.count >= kKept) return ::operator delete(memory);
  ++list.count;
  list.first = new (memory) FreeBuffer{list.first};
}

}  // namespace ae::fusion
