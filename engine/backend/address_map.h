// Which Buffer an address belongs to: addresses that were handed out, and memory of foreign storages with our device.
#pragma once

#include <c10/core/StorageImpl.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "fusion/trace/buffer.h"

namespace ae::engine {

class AddressMap {
 public:
  struct Place {
    fusion::Buffer* buffer;
    int64_t offset;  // bytes from the Buffer's start
  };
  /// The address of a Buffer was handed out. It is forgotten by remove(), which is called before the Buffer's end.
  void add(fusion::Buffer* buffer, void* address);
  void remove(fusion::Buffer* buffer);
  /// Where a storage lies that is not ours. Memory that nobody knows gets a Buffer of its own, which keeps the storage
  /// alive until nobody else does and nothing is pending on it.
  Place find(const c10::StorageImpl* storage);

  /// Lets go of foreign memory that nobody else uses any more.
  void sweep();

 private:
  struct Entry {
    fusion::Buffer* buffer;
    int64_t nbytes;
    fusion::BufferRef owned;                            // foreign memory only
    c10::intrusive_ptr<c10::StorageImpl> kept_storage;  // foreign memory only
  };
  using Entries = std::multimap<uintptr_t, Entry>;
  /// Takes out entries of foreign memory that are of no use any more; the caller drops them without the lock.
  std::vector<Entry> sweep_locked();

  std::mutex mutex_;
  Entries entries_;  // by first address
};

AddressMap& addresses();

}  // namespace ae::engine
