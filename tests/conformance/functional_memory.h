// Memory of the functional device.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "device/device.h"

namespace ae::device::conformance {

using Bytes = std::vector<std::byte>;

/// What a block holds that nobody has written: a pattern that is unlikely to give right results.
inline Bytes unwritten(int64_t size) { return Bytes(static_cast<size_t>(size), std::byte{0xcb}); }

/// Counts what storages take; outlives the device with the last of them.
struct Account {
  std::mutex mutex;
  MemoryStats stats;
  int64_t limit = -1;
};

/// Bytes that the account counts. Throws OutOfMemory.
class Storage {
 public:
  Storage(int64_t size, std::shared_ptr<Account> account) : account_(std::move(account)), size_(size) {
    std::lock_guard lock(account_->mutex);
    MemoryStats& stats = account_->stats;
    if (size < 0 || (account_->limit >= 0 && stats.allocated + size > account_->limit)) {
      ++stats.out_of_memory;
      throw OutOfMemory(size, stats.allocated, account_->limit);
    }
    stats.allocated += size;
    stats.reserved = stats.allocated;
    stats.allocated_peak = std::max(stats.allocated_peak, stats.allocated);
    ++stats.allocations;
    ++stats.allocations_total;
  }
  ~Storage() {
    std::lock_guard lock(account_->mutex);
    account_->stats.allocated -= size_;
    account_->stats.reserved = account_->stats.allocated;
    --account_->stats.allocations;
    ++account_->stats.frees_total;
  }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  int64_t size() const { return size_; }

  Bytes bytes;  // the stream's thread alone writes it, and only before the cell is ready

 private:
  std::shared_ptr<Account> account_;
  int64_t size_;
};

/// The content of one block: known once the launches that make it have ended, and the same ever after.
struct Cell {
  explicit Cell(std::shared_ptr<Storage> s) : storage(std::move(s)) {}
  std::shared_ptr<Storage> storage;
  std::atomic<bool> ready{false};
};

/// What the users hold. The stream's queue holds cells, so that a block that is not shared is the submission's alone.
class FunctionalBlock final : public Block {
 public:
  explicit FunctionalBlock(std::shared_ptr<Cell> cell)
      : Block(nullptr, cell->storage->size()), cell_(std::move(cell)) {}
  const std::shared_ptr<Cell>& cell() const { return cell_; }
  static BlockRef make(std::shared_ptr<Cell> cell) { return BlockRef::adopt(new FunctionalBlock(std::move(cell))); }

 private:
  std::shared_ptr<Cell> cell_;
};

inline const std::shared_ptr<Cell>& cell_of(const BlockRef& block) {
  return static_cast<const FunctionalBlock*>(block.get())->cell();
}

}  // namespace ae::device::conformance
