#include "device/host/memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>

namespace ae::device::host {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kSmallLimit = 32 << 10;
constexpr int64_t kSlabBytes = 1 << 20;
constexpr int64_t kHugePage = 2 << 20;
constexpr int64_t kSegmentBytes = 16 << 20;      // for blocks below kOwnSegment
constexpr int64_t kOwnSegment = 8 << 20;         // larger blocks get a segment of their size
constexpr int64_t kCutRest = 4 << 10;            // smaller rests stay with their block
constexpr int64_t kCacheAllowance = 64LL << 20;  // of free memory, besides a quarter of what is in use

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/// Classes: multiples of 64 up to 1 KiB, then eight to a doubling.
int class_of(int64_t bytes) {
  if (bytes <= 1024) return static_cast<int>((bytes - 1) / 64);
  const int log = 63 - std::countl_zero(static_cast<uint64_t>(bytes - 1));  // 10 for (1024, 2048]
  return 16 + (log - 10) * 8 + static_cast<int>((bytes - 1 - (int64_t(1) << log)) >> (log - 3));
}
int64_t class_bytes(int size_class) {
  if (size_class < 16) return (size_class + 1) * 64;
  const int log = 10 + (size_class - 16) / 8;
  return (int64_t(1) << log) + ((size_class - 16) % 8 + 1) * (int64_t(1) << (log - 3));
}

/// Address space without memory behind it until it is touched; null when the system refuses.
void* map_memory(int64_t bytes) {
  // One huge page more, so that the start can be aligned to huge pages.
  const int64_t extra = bytes >= kHugePage ? kHugePage : 0;
  void* raw = mmap(nullptr, bytes + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  if (!extra) return raw;
  const auto begin = reinterpret_cast<uintptr_t>(raw);
  const uintptr_t aligned = (begin + kHugePage - 1) / kHugePage * kHugePage;
  if (aligned > begin) munmap(raw, aligned - begin);
  const uintptr_t end = begin + bytes + extra;
  if (end > aligned + bytes) munmap(reinterpret_cast<void*>(aligned + bytes), end - aligned - bytes);
  madvise(reinterpret_cast<void*>(aligned), bytes, MADV_HUGEPAGE);
  return reinterpret_cast<void*>(aligned);
}

int64_t physical_memory() { return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE); }

}  // namespace

void PoolBlock::dispose() noexcept { pool_->give_back(this); }

MemoryPool::MemoryPool(std::shared_ptr<StreamClock> clock) : clock_(std::move(clock)) {}

MemoryPool::~MemoryPool() {
  clock_->completed.store(UINT64_MAX);  // nothing runs any more
  trim(0);
  for (auto& free : small_) {
    for (PoolBlock* block : free) delete block;
  }
  for (auto& [address, bytes] : slabs_) munmap(address, bytes);
  for (PoolBlock* block : spare_objects_) delete block;
}

void MemoryPool::abandon(std::unique_ptr<MemoryPool> pool) {
  std::unique_lock lock(pool->mutex_);
  pool->clock_->completed.store(UINT64_MAX);
  if (pool->stats_.allocations == 0) {
    lock.unlock();
    return;
  }
  pool->abandoned_ = true;
  lock.unlock();
  pool.release();
}

BlockRef MemoryPool::take(int64_t bytes, bool idle) {
  std::unique_lock lock(mutex_);
  if (bytes < 0 || bytes > (int64_t(1) << 46)) refuse(bytes);
  const int64_t capacity = round_up(std::max<int64_t>(bytes, 1), kAlignment);
  if (limit_ >= 0 && stats_.allocated + capacity > limit_) refuse(bytes);
  PoolBlock* block = capacity <= kSmallLimit ? take_small(capacity, idle) : take_large(capacity, idle);
  if (!block) refuse(bytes);
  block->free_ = false;
  block->touched_ = true;
  block->reuse(bytes);
  count_taken(block->capacity_);
  return BlockRef::adopt(block);
}

void MemoryPool::count_taken(int64_t capacity) {
  stats_.allocated += capacity;
  stats_.allocated_total += capacity;
  stats_.allocated_peak = std::max(stats_.allocated_peak, stats_.allocated);
  ++stats_.allocations;
  ++stats_.allocations_total;
  stats_.allocations_peak = std::max(stats_.allocations_peak, stats_.allocations);
}

/// The cache is emptied even though that does not help: what the system has to give is for others then.
void MemoryPool::refuse(int64_t bytes) {
  ++stats_.out_of_memory;
  ++stats_.cache_flushes;
  trim(0);
  throw OutOfMemory(bytes, stats_.allocated, limit_);
}

PoolBlock* MemoryPool::take_small(int64_t capacity, bool idle) {
  const int size_class = class_of(capacity);
  auto& free = small_[size_class];
  if (!free.empty()) {
    // Last in, first out: warm in the cache. For the host: one of the last few that is at rest.
    const size_t lookback = idle ? std::min<size_t>(free.size(), 8) : 1;
    for (size_t i = 1; i <= lookback; ++i) {
      PoolBlock* block = free[free.size() - i];
      if (idle && !clock_->is_done(block->stamp_)) continue;
      free.erase(free.end() - static_cast<ptrdiff_t>(i));
      return block;
    }
    if (idle && clock_->is_done(free.front()->stamp_)) {
      PoolBlock* block = free.front();
      free.erase(free.begin());
      return block;
    }
  }
  const int64_t bytes = class_bytes(size_class);
  if (slab_end_ - slab_at_ < bytes) {
    void* slab = map_memory(kSlabBytes);
    if (!slab) return nullptr;
    slabs_.emplace_back(slab, kSlabBytes);
    slab_at_ = static_cast<std::byte*>(slab);
    slab_end_ = slab_at_ + kSlabBytes;
    stats_.reserved += kSlabBytes;
    stats_.reserved_peak = std::max(stats_.reserved_peak, stats_.reserved);
  }
  PoolBlock* block = new_object(slab_at_, bytes);
  block->size_class_ = static_cast<int16_t>(size_class);
  slab_at_ += bytes;
  return block;
}

PoolBlock* MemoryPool::take_large(int64_t capacity, bool idle) {
  PoolBlock* block = find_free(capacity, idle);
  if (!block) block = grow(capacity);
  if (!block) {
    ++stats_.cache_flushes;
    trim(0);
    block = grow(capacity);
  }
  return block ? cut(block, capacity) : nullptr;
}

/// Best fit; takes the block out of the free ones.
PoolBlock* MemoryPool::find_free(int64_t capacity, bool idle) {
  PoolBlock key(this, nullptr, capacity);
  int tries = 16;
  for (auto it = large_.lower_bound(&key); it != large_.end() && tries > 0; ++it, --tries) {
    PoolBlock* block = *it;
    // A segment of its own is for blocks near its size, or small ones would keep much memory from going back.
    if (block->capacity_ > kSegmentBytes && capacity < kOwnSegment && block->capacity_ > 4 * capacity &&
        !block->before_ && !block->after_) {
      continue;
    }
    if (idle && !clock_->is_done(block->stamp_)) continue;
    large_.erase(it);
    if (block->touched_) resident_free_ -= block->capacity_;
    return block;
  }
  return nullptr;
}

/// A new segment, all of it one block.
PoolBlock* MemoryPool::grow(int64_t capacity) {
  const int64_t keep = stats_.allocated / 4 + kCacheAllowance;
  if (resident_free_ > keep) trim(keep);
  const int64_t bytes = capacity < kOwnSegment ? kSegmentBytes : round_up(capacity, kHugePage);
  if (stats_.allocated + capacity > physical_memory()) return nullptr;
  // A model that was made on the host and copied here leaves holes of its size in malloc's heap, which malloc keeps.
  malloc_trim(0);
  void* memory = map_memory(bytes);
  if (!memory) return nullptr;
  stats_.reserved += bytes;
  stats_.reserved_peak = std::max(stats_.reserved_peak, stats_.reserved);
  PoolBlock* block = new_object(memory, bytes);
  block->size_class_ = -1;
  return block;
}

/// Leaves what is too much of a block free.
PoolBlock* MemoryPool::cut(PoolBlock* block, int64_t capacity) {
  const int64_t rest = block->capacity_ - capacity;
  if (rest < kCutRest) return block;
  PoolBlock* other = new_object(static_cast<std::byte*>(block->address_) + capacity, rest);
  other->size_class_ = -1;
  other->stamp_ = block->stamp_;
  other->touched_ = block->touched_;
  other->free_ = true;
  other->before_ = block;
  other->after_ = block->after_;
  if (other->after_) other->after_->before_ = other;
  block->after_ = other;
  block->capacity_ = capacity;
  large_.insert(other);
  if (other->touched_) resident_free_ += rest;
  return block;
}

PoolBlock* MemoryPool::new_object(void* address, int64_t capacity) {
  PoolBlock* block;
  if (spare_objects_.empty()) {
    block = new PoolBlock(this, address, capacity);
  } else {
    block = spare_objects_.back();
    spare_objects_.pop_back();
    block->place(address, capacity);
  }
  block->before_ = block->after_ = nullptr;
  block->stamp_ = 0;
  block->touched_ = false;
  return block;
}

void MemoryPool::give_back(PoolBlock* block) noexcept {
  std::unique_lock lock(mutex_);
  stats_.allocated -= block->capacity_;
  stats_.freed_total += block->capacity_;
  --stats_.allocations;
  ++stats_.frees_total;
  block->stamp_ = clock_->stamp();
  block->free_ = true;
  if (block->size_class_ >= 0) {
    small_[block->size_class_].push_back(block);
  } else {
    block = merge_with_neighbours(block);
    large_.insert(block);
    resident_free_ += block->capacity_;
  }
  if (abandoned_ && stats_.allocations == 0) {
    lock.unlock();
    delete this;
  }
}

PoolBlock* MemoryPool::merge_with_neighbours(PoolBlock* block) {
  const auto absorb = [&](PoolBlock* first, PoolBlock* second, PoolBlock* free) {
    large_.erase(free);
    if (free->touched_) resident_free_ -= free->capacity_;
    first->stamp_ = std::max(first->stamp_, second->stamp_);
    first->touched_ = true;
    first->capacity_ += second->capacity_;
    first->after_ = second->after_;
    if (first->after_) first->after_->before_ = first;
    spare_objects_.push_back(second);
    return first;
  };
  if (block->after_ && block->after_->free_) block = absorb(block, block->after_, block->after_);
  if (block->before_ && block->before_->free_) block = absorb(block->before_, block, block->before_);
  block->free_ = true;
  return block;
}

/// Gives free memory that no launch uses back to the system until at most `keep` bytes of it may be resident.
void MemoryPool::trim(int64_t keep) {
  std::vector<PoolBlock*> candidates(large_.begin(), large_.end());
  for (auto it = candidates.rbegin(); it != candidates.rend() && (resident_free_ > keep || keep == 0); ++it) {
    PoolBlock* block = *it;
    if (!clock_->is_done(block->stamp_)) continue;
    if (!block->before_ && !block->after_) {
      release_segment(block);
    } else if (block->touched_ && block->capacity_ >= kHugePage) {
      const auto begin = round_up(reinterpret_cast<int64_t>(block->address_), 4096);
      const auto end = (reinterpret_cast<int64_t>(block->address_) + block->capacity_) / 4096 * 4096;
      madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
      block->touched_ = false;
      resident_free_ -= block->capacity_;
    }
  }
}

void MemoryPool::release_segment(PoolBlock* block) {
  large_.erase(block);
  if (block->touched_) resident_free_ -= block->capacity_;
  munmap(block->address_, block->capacity_);
  stats_.reserved -= block->capacity_;
  spare_objects_.push_back(block);
}

MemoryStats MemoryPool::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

void MemoryPool::reset_peak_stats() {
  std::lock_guard lock(mutex_);
  stats_.allocated_peak = stats_.allocated;
  stats_.reserved_peak = stats_.reserved;
  stats_.allocations_peak = stats_.allocations;
}

void MemoryPool::reset_accumulated_stats() {
  std::lock_guard lock(mutex_);
  stats_.allocated_total = stats_.freed_total = 0;
  stats_.allocations_total = stats_.frees_total = 0;
  stats_.out_of_memory = stats_.cache_flushes = 0;
}

void MemoryPool::empty_cache() {
  std::lock_guard lock(mutex_);
  trim(0);
}

void MemoryPool::set_limit(int64_t bytes) {
  std::lock_guard lock(mutex_);
  limit_ = bytes;
}

int64_t MemoryPool::limit() const {
  std::lock_guard lock(mutex_);
  return limit_;
}

int64_t MemoryPool::live() const {
  std::lock_guard lock(mutex_);
  return stats_.allocations;
}

}  // namespace ae::device::host
