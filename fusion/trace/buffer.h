// A Buffer is the memory of one storage, seen from the trace, the plans and the worker. It knows nothing of torch.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "device/device.h"
#include "fusion/trace/free_list.h"

namespace ae::fusion {

/// Why a buffer has no valid content: what a failed launch says to everybody who reads what depends on it.
struct Failure {
  std::exception_ptr error;
  std::string origin;  // "file:line" of the operator that failed, or empty
};

/// Owners: the storage (through its DataPtr's context), the trace while nodes use it, and the engine while it hands it
/// around. Fields marked [trace] are guarded by the trace's lock.
///
/// Counting references is a good part of what recording costs. So a storage holds one more than its own to spare, which
/// the first trace that uses the buffer takes over without counting, and a last owner does not count down.
class alignas(64) Buffer {
 public:
  explicit Buffer(int64_t nbytes) : nbytes(nbytes) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  static void* operator new(size_t, std::align_val_t) { return FreeList<Buffer>::take(); }
  static void operator delete(void* memory, std::align_val_t) noexcept { FreeList<Buffer>::give(memory); }

  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept { drop(1); }
  /// Makes the only reference that there is a storage's, which ends with release_by_storage().
  void own_by_storage() noexcept {
    spare_ = 1;
    references_.store(2, std::memory_order_relaxed);
  }
  /// Nobody can record with the buffer any more.
  void release_by_storage() noexcept { drop(1 + std::exchange(spare_, 0)); }
  /// A reference for a trace, whose lock the caller holds. The storage, if there is one, is alive.
  void retain_by_trace() noexcept {
    if (std::exchange(spare_, 0) == 0) retain();
  }

 private:
  void drop(int32_t count) noexcept {
    if (references_.load(std::memory_order_acquire) == count ||
        references_.fetch_sub(count, std::memory_order_acq_rel) == count)
      delete this;
  }
  std::atomic<int32_t> references_{1};
  uint8_t spare_ = 0;  // [trace] of `references_`, those that the storage holds for a trace: 0 or 1

 public:
  // What recording touches comes first: with the counter above it fits in one line of the cache.
  std::atomic<bool> visible{true};  // a storage still owns it: its content can be seen after the trace
  /// What is known of the content by program order alone, so that index values can be checked when recording. Bits:
  /// kHostContent (a host copy put it there: set by the engine's copies to the device) and kRange (it is int64 and all
  /// values lie in [low, high]). Recording a node that writes the buffer clears them.
  static constexpr uint8_t kHostContent = 1, kRange = 2;
  std::atomic<uint8_t> known{0};
  uint32_t trace_index = 0;    // [trace]
  uint64_t trace_epoch = 0;    // [trace] trace in which `trace_index` is valid
  uint64_t written_epoch = 0;  // [trace] last trace that writes it
  uint64_t held_epoch = 0;     // [trace] last trace whose bytes budget counts it
  int64_t nbytes;              // [trace] changed only by a storage resize, when nothing is pending
  device::BlockRef block;      // [trace] null until a flush or the host gave it memory
  /// Launch numbers on the default stream, 1 + the number of the last launch that writes / uses it; 0: none.
  std::atomic<uint64_t> last_write{0};
  std::atomic<uint64_t> last_use{0};
  int64_t low = 0, high = 0;
  /// Set when a launch that should have produced the content failed or was cancelled. [trace]
  std::shared_ptr<const Failure> failure;
};

/// Owning pointer to a Buffer.
class BufferRef {
 public:
  BufferRef() = default;
  static BufferRef adopt(Buffer* buffer) {
    BufferRef ref;
    ref.buffer_ = buffer;
    return ref;
  }
  static BufferRef share(Buffer* buffer) {
    if (buffer) buffer->retain();
    return adopt(buffer);
  }
  BufferRef(const BufferRef& other) : buffer_(other.buffer_) {
    if (buffer_) buffer_->retain();
  }
  BufferRef(BufferRef&& other) noexcept : buffer_(other.buffer_) { other.buffer_ = nullptr; }
  BufferRef& operator=(BufferRef other) noexcept {
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  ~BufferRef() {
    if (buffer_) buffer_->release();
  }
  Buffer* get() const noexcept { return buffer_; }
  Buffer* operator->() const noexcept { return buffer_; }
  explicit operator bool() const noexcept { return buffer_ != nullptr; }
  Buffer* release() noexcept { return std::exchange(buffer_, nullptr); }

 private:
  Buffer* buffer_ = nullptr;
};

}  // namespace ae::fusion
