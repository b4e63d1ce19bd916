// The native tier: tile codes that are worth it are compiled to machine code in the background and replace the tile
// kernels when they are ready. Results do not change by a bit, so nobody can tell when that was.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "device/host/native/compiler_process.h"
#include "device/host/tile_code.h"

namespace ae::device::host {

class NativeTier {
 public:
  enum class Mode : uint8_t {
    background,   // compile on a thread of its own
    immediately,  // compile when it is asked for; for tests
    off,
  };
  explicit NativeTier(Mode mode) : mode_(mode) {}
  /// Ends the thread after what it is compiling now.
  ~NativeTier();
  NativeTier(const NativeTier&) = delete;
  NativeTier& operator=(const NativeTier&) = delete;

  /// Asks for the native version of a code (see TileCode::native). From one thread at a time. Without a compiler the
  /// tile kernels go on.
  void request(std::shared_ptr<const TileCode> code, bool rows);
  /// Grows with every code that gets ready.
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
  Mode mode() const { return mode_; }

 private:
  struct Request {
    std::weak_ptr<const TileCode> code;
    bool rows;
  };
  void work();
  void compile(const TileCode& code, bool rows);
  std::shared_ptr<const TileCode> try_to_compile(const TileCode& code, bool rows);

  const Mode mode_;
  std::atomic<uint64_t> generation_{0};
  std::mutex mutex_;
  // On the heap: in a forked child it is left alone, since its end waits for the parent's sleeping thread.
  std::unique_ptr<std::condition_variable> changed_ = std::make_unique<std::condition_variable>();
  std::deque<Request> queue_;
  bool stopping_ = false;
  std::unique_ptr<std::thread> thread_;
  int process_ = 0;  // that started the thread

  // Of whoever compiles: the thread, or the caller of `request`.
  std::unique_ptr<native::CompilerProcess> compiler_;
  int starts_left_ = 3;
};

}  // namespace ae::device::host
