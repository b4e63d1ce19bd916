// The interface between fusion and the places where launches run. A device offers blocks of memory, loads executables,
// and runs programs (a plan's launches, in order) on streams. Nothing here knows of tensors or traces.
//
// Rules that every device keeps (tests/conformance checks them):
// - Launches of one stream take effect in the order of submission. A launch's number is its place in that order.
// - An error in a launch cancels the rest of its program; later programs run.
// - The content of a block is only what launches and host copies of the same stream put there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/tile_program.h"

namespace ae::device {

// ---------------------------------------------------------------------------------------------------------- Memory

/// A piece of device memory, reference counted. Its memory goes back to its device's allocator with the last reference;
/// stream order makes that safe while launches that use it are still queued.
class Block {
 public:
  virtual ~Block() = default;
  /// Host address of the first byte, 64-byte aligned with readable padding up to a multiple of 64 bytes, or null on
  /// devices without addresses.
  void* address() const noexcept { return address_; }
  int64_t size() const noexcept { return size_; }

  /// Whether somebody besides the caller, who holds a reference, holds one.
  bool is_shared() const noexcept { return references_.load(std::memory_order_acquire) != 1; }

  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) dispose();
  }

 protected:
  Block(void* address, int64_t size) : address_(address), size_(size) {}
  /// Called with the last reference gone; any thread. Default: delete this.
  virtual void dispose() noexcept { delete this; }
  std::atomic<int32_t> references_{1};
  void* address_;
  int64_t size_;
};

/// Owning pointer to a Block.
class BlockRef {
 public:
  BlockRef() = default;
  /// Takes over the reference that the caller holds.
  static BlockRef adopt(Block* block) {
    BlockRef ref;
    ref.block_ = block;
    return ref;
  }
  BlockRef(const BlockRef& other) : block_(other.block_) {
    if (block_) block_->retain();
  }
  BlockRef(BlockRef&& other) noexcept : block_(other.block_) { other.block_ = nullptr; }
  BlockRef& operator=(BlockRef other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~BlockRef() {
    if (block_) block_->release();
  }
  Block* get() const noexcept { return block_; }
  Block* operator->() const noexcept { return block_; }
  explicit operator bool() const noexcept { return block_ != nullptr; }

 private:
  Block* block_ = nullptr;
};

/// Thrown when a device has no memory for a block, after it has emptied its caches.
class OutOfMemory : public std::exception {
 public:
  OutOfMemory(int64_t requested, int64_t allocated, int64_t limit);
  const char* what() const noexcept override { return text_.c_str(); }
  int64_t requested, allocated, limit;  // bytes

 private:
  std::string text_;
};

struct MemoryStats {  // bytes and counts
  int64_t allocated = 0, allocated_peak = 0, allocated_total = 0, freed_total = 0;
  int64_t reserved = 0, reserved_peak = 0;
  int64_t allocations = 0, allocations_peak = 0, allocations_total = 0, frees_total = 0;
  int64_t out_of_memory = 0, cache_flushes = 0;
};

// -------------------------------------------------------------------------------------------------------- Programs

/// A loaded kernel; made by Device::load, immutable, shared by launches and plans.
class Executable {
 public:
  virtual ~Executable() = default;
};

/// A library computation (matmul, attention, indexing…), or any host code, that is one launch. The object holds shapes
/// and attributes; it is immutable and called by many threads at once.
class LibraryCall {
 public:
  virtual ~LibraryCall() = default;
  /// In how many independent pieces it runs. Depends on shapes and attributes alone.
  virtual int pieces() const { return 1; }
  /// Runs one piece on the calling thread. `addresses[i]` is the first byte of operand i's block; `scalars` are the
  /// program's scalars from `LaunchSpec::library_scalars` on. Throws on errors that depend on data.
  virtual void run(int piece, void* const* addresses, const uint64_t* scalars) const = 0;
};

/// One operand of a launch: a slot of the program and how it is seen.
struct SegmentOperand {
  int32_t slot = -1;  // -1: an iota operand, which has no memory
  OperandView view;
};

/// One kernel over one index space.
struct Segment {
  std::shared_ptr<const Executable> executable;
  Space space;
  std::vector<SegmentOperand> operands;
  std::vector<int32_t> scalars;  // positions in the program's scalars
};

/// One launch: segments that do not depend on each other (their index spaces are concatenated), or one library call.
struct LaunchSpec {
  std::vector<Segment> segments;
  std::shared_ptr<const LibraryCall> library;
  std::vector<int32_t> library_slots;
  int32_t library_writes_from = 0;  // the call writes library_slots from this position on, and only reads those before
  int32_t library_scalars = 0;
  std::vector<int32_t> allocate;  // slots that get a fresh block just before this launch
  std::vector<int32_t> free;      // slots whose block the program drops just after it
};

struct ProgramSpec {
  int32_t slots = 0;
  std::vector<int64_t> slot_bytes;
  std::vector<LaunchSpec> launches;
};

/// A compiled plan; made by Device::compile.
class Program {
 public:
  virtual ~Program() = default;
};

/// What went wrong in a program.
struct LaunchError {
  std::exception_ptr error;
  int launch = 0;  // index in the program; launches from it on did not run
};

/// Ties submissions together: once a launch of one has failed, the programs that carry the same token and run later are
/// cancelled with the same error.
struct CancelToken {
  std::atomic<bool> failed{false};
  std::exception_ptr error;  // set before `failed`
};

/// What one submission needs: blocks of the slots, scalars, and whom to tell at the end.
struct Submission {
  std::shared_ptr<const Program> program;
  std::vector<BlockRef> slots;  // in: blocks of slots that exist before
  std::vector<uint64_t> scalars;
  std::shared_ptr<CancelToken> token;  // may be null
  bool flush_denormal = false;         // the launches' floating-point mode
  /// Called once on the stream's thread when the program has ended; `error` is null when all went well. Must not throw.
  std::function<void(const LaunchError* error)> on_end;
};

class Stream {
 public:
  virtual ~Stream() = default;
  /// Queues a program. Blocks for the slots named in `allocate` are made now, in launch order, and written to
  /// `submission.slots`, where the caller finds them on return. Slots that the program frees are empty on return: those
  /// that it also allocates share memory that only the program uses, and of those given by the caller it drops the
  /// reference in `submission.slots` (a block that nobody else holds may become a later slot's). On a device that does
  /// not write in place, slots that the program writes hold a new block on return, whose content is what the launches
  /// that ran have left in the slot; the block that was given stays as it is, or, if nobody but `slots` held it,
  /// becomes the new one (it is donated). Takes `scalars` and `on_end`. Returns the number of the program's first
  /// launch; launch i has that number + i. Throws OutOfMemory, in which case nothing was queued and `slots` is as it
  /// was.
  virtual uint64_t submit(Submission& submission) = 0;
  /// Number of launches that have ended (or were cancelled): all launches with a number below it are done.
  virtual uint64_t completed() const noexcept = 0;
  /// Number that the next submitted launch will get.
  virtual uint64_t submitted() const noexcept = 0;
  /// Waits until completed() >= number, for at most `milliseconds`; true when reached.
  virtual bool wait(uint64_t number, int milliseconds) = 0;
  /// Time spent running launches so far, in nanoseconds.
  virtual int64_t busy_ns() const noexcept = 0;
};

struct Capabilities {
  bool addressable = false;     // blocks have host addresses
  bool write_in_place = false;  // launches write into existing blocks (else they make new ones)
  bool dynamic_sizes = false;   // one executable serves any sizes
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const Capabilities& capabilities() const = 0;
  virtual std::shared_ptr<const Executable> load(const TileProgram& program) = 0;
  virtual std::shared_ptr<const Program> compile(ProgramSpec spec) = 0;
  virtual Stream& default_stream() = 0;

  /// A block that no queued launch uses any more, for the host to write. Throws OutOfMemory.
  virtual BlockRef allocate(int64_t bytes) = 0;
  /// Copies between blocks and host memory. The launches that write the block have ended. `copy_from_host` throws
  /// OutOfMemory. They use the block's address; devices without addresses do it in their own way.
  virtual BlockRef copy_from_host(const void* from, int64_t bytes);
  virtual void copy_to_host(const BlockRef& block, void* to);
  /// A block that wraps memory of somebody else; `release` is called with the last reference.
  virtual BlockRef wrap(void* address, int64_t bytes, std::function<void()> release) = 0;
  virtual MemoryStats memory_stats() const = 0;
  virtual void reset_peak_stats() = 0;
  virtual void reset_accumulated_stats() = 0;
  virtual void empty_cache() = 0;
  /// Bytes that may be allocated at most; negative: no limit.
  virtual void set_memory_limit(int64_t bytes) = 0;
  virtual int64_t memory_limit() const = 0;
};

}  // namespace ae::device
