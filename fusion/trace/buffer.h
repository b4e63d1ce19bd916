// A Buffer is the memory of one storage, seen from the trace, the plans and the worker. It knows nothing of torch.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "device/device.h"

namespace ae::fusion {

/// Why a buffer has no valid content: what a failed launch says to everybody who reads what depends on it.
struct Failure {
  std::exception_ptr error;
  std::string origin;  // "file:line" of the operator that failed, or empty
};

/// Owners: the storage (through its DataPtr's context), the trace while nodes use it, and the engine while it hands it
/// around. Fields marked [trace] are guarded by the trace's lock.
class Buffer {
 public:
  explicit Buffer(int64_t nbytes) : nbytes(nbytes) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  /// Memory is kept by the thread that frees it and used again; see buffer.cpp.
  static void* operator new(size_t size);
  static void operator delete(void* memory) noexcept;

  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  int64_t nbytes;                   // [trace] changed only by a storage resize, when nothing is pending
  device::BlockRef block;           // [trace] null until a flush or the host gave it memory
  std::atomic<bool> visible{true};  // a storage still owns it: its content can be seen after the trace
  uint64_t trace_epoch = 0;         // [trace] trace in which `trace_index` is valid
  uint32_t trace_index = 0;         // [trace]
  uint64_t written_epoch = 0;       // [trace] last trace that writes it
  uint64_t held_epoch = 0;          // [trace] last trace whose bytes budget counts it
  /// Launch numbers on the default stream, 1 + the number of the last launch that writes / uses it; 0: none.
  std::atomic<uint64_t> last_write{0};
  std::atomic<uint64_t> last_use{0};
  /// What is known of the content by program order alone, so that index values can be checked when recording. Bits:
  /// kHostContent (a host copy put it there: set by the engine's copies to the device) and kRange (it is int64 and all
  /// values lie in [low, high]). Recording a node that writes the buffer clears them.
  static constexpr uint8_t kHostContent = 1, kRange = 2;
  std::atomic<uint8_t> known{0};
  int64_t low = 0, high = 0;
  /// Set when a launch that should have produced the content failed or was cancelled. [trace]
  std::shared_ptr<const Failure> failure;

 private:
  std::atomic<int32_t> references_{1};
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
