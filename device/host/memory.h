// The host device's caching allocator. Blocks belong to a stream: a block that is freed while launches use it may be
// handed at once to a later launch of that stream, since launches run in order. Thread safe.
//
// Small blocks (up to 32 KiB) come from size classes with a free list each. Large ones are cut from segments by best
// fit and merged with their free neighbours. Memory of large segments is resident only where it was touched, and goes
// back to the system when the cache would grow beyond a quarter of what is in use. Before the pool grows, what malloc
// keeps of the host's freed memory goes back too.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "device/device.h"
#include "device/host/clock.h"

namespace ae::device::host {

class MemoryPool;

/// A block of the pool, in use or free. The object is recycled with its memory.
class PoolBlock final : public Block {
 public:
  PoolBlock(MemoryPool* pool, void* address, int64_t capacity)
      : Block(address, capacity), pool_(pool), capacity_(capacity) {}

 private:
  friend class MemoryPool;
  void dispose() noexcept override;
  void reuse(int64_t bytes) noexcept {
    references_.store(1, std::memory_order_relaxed);
    size_ = bytes;
  }
  void place(void* address, int64_t capacity) noexcept {
    address_ = address;
    capacity_ = capacity;
  }

  MemoryPool* pool_;
  int64_t capacity_;             // bytes of memory, a multiple of 64
  uint64_t stamp_ = 0;           // while free: launches below this number may still use it
  PoolBlock* before_ = nullptr;  // neighbours in a segment of large blocks
  PoolBlock* after_ = nullptr;
  int16_t size_class_ = -1;  // -1: large
  bool free_ = false;
  bool touched_ = false;  // may have resident pages
};

class MemoryPool {
 public:
  explicit MemoryPool(std::shared_ptr<StreamClock> clock);
  ~MemoryPool();

  /// For launches of the stream. Throws OutOfMemory.
  BlockRef allocate(int64_t bytes) { return take(bytes, false); }
  /// For the host to write at once: no queued launch uses the block.
  BlockRef allocate_idle(int64_t bytes) { return take(bytes, true); }

  MemoryStats stats() const;
  void reset_peak_stats();
  void reset_accumulated_stats();
  void empty_cache();
  void set_limit(int64_t bytes);
  int64_t limit() const;
  /// Blocks in use.
  int64_t live() const;
  /// The device is gone: the pool deletes itself with its last block.
  static void abandon(std::unique_ptr<MemoryPool> pool);

 private:
  friend class PoolBlock;
  struct BySize {
    bool operator()(const PoolBlock* a, const PoolBlock* b) const {
      return a->capacity_ != b->capacity_ ? a->capacity_ < b->capacity_ : a->address_ < b->address_;
    }
  };
  static constexpr int kClasses = 56;

  BlockRef take(int64_t bytes, bool idle);
  void give_back(PoolBlock* block) noexcept;
  PoolBlock* take_small(int64_t capacity, bool idle);
  PoolBlock* take_large(int64_t capacity, bool idle);
  PoolBlock* find_free(int64_t capacity, bool idle);
  PoolBlock* grow(int64_t capacity);
  PoolBlock* cut(PoolBlock* block, int64_t capacity);
  PoolBlock* new_object(void* address, int64_t capacity);
  PoolBlock* merge_with_neighbours(PoolBlock* block);
  void refuse(int64_t bytes);
  void trim(int64_t keep);
  void release_segment(PoolBlock* block);
  void count_taken(int64_t capacity);

  std::shared_ptr<StreamClock> clock_;
  mutable std::mutex mutex_;
  std::array<std::vector<PoolBlock*>, kClasses> small_;
  std::vector<std::pair<void*, int64_t>> slabs_;
  std::byte* slab_at_ = nullptr;
  std::byte* slab_end_ = nullptr;
  std::set<PoolBlock*, BySize> large_;
  std::vector<PoolBlock*> spare_objects_;
  int64_t resident_free_ = 0;  // bytes of free large blocks that may be resident
  int64_t limit_ = -1;
  MemoryStats stats_;
  bool abandoned_ = false;
};

}  // namespace ae::device::host
