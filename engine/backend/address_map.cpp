#include "engine/backend/address_map.h"

#include "engine/runtime.h"

namespace ae::engine {

using fusion::Buffer;
using fusion::BufferRef;

AddressMap& addresses() {
  static AddressMap& map = *new AddressMap;  // leaked: storages outlive static destruction
  return map;
}

void AddressMap::add(Buffer* buffer, void* address) {
  if (address == nullptr) return;
  std::lock_guard lock(mutex_);
  entries_.insert({reinterpret_cast<uintptr_t>(address), {buffer, buffer->nbytes, {}, {}}});
}

void AddressMap::remove(Buffer* buffer) {
  if (!buffer->block) return;
  std::lock_guard lock(mutex_);
  const auto [first, last] = entries_.equal_range(reinterpret_cast<uintptr_t>(buffer->block->address()));
  for (auto it = first; it != last; ++it) {
    if (it->second.buffer == buffer) {
      entries_.erase(it);
      return;
    }
  }
}

std::vector<AddressMap::Entry> AddressMap::sweep_locked() {
  std::vector<Entry> swept;
  for (auto it = entries_.begin(); it != entries_.end();) {
    Entry& entry = it->second;
    if (entry.kept_storage && entry.kept_storage.use_count() == 1 && recorder().is_idle(*entry.buffer)) {
      swept.push_back(std::move(entry));
      it = entries_.erase(it);
    } else {
      ++it;
    }
  }
  return swept;
}

void AddressMap::sweep() {
  std::vector<Entry> swept;  // dropped after unlocking
  std::lock_guard lock(mutex_);
  swept = sweep_locked();
}

AddressMap::Place AddressMap::find(const c10::StorageImpl* storage) {
  static Buffer& empty = *new Buffer(0);
  const auto address = reinterpret_cast<uintptr_t>(storage->data_ptr().get());
  const auto nbytes = static_cast<int64_t>(storage->nbytes());
  if (address == 0 || nbytes == 0) return {&empty, 0};
  std::vector<Entry> swept;
  std::lock_guard lock(mutex_);
  for (auto it = entries_.upper_bound(address); it != entries_.begin();) {
    --it;
    const int64_t offset = static_cast<int64_t>(address - it->first);
    if (offset + nbytes <= it->second.nbytes) return {it->second.buffer, offset};
  }
  swept = sweep_locked();
  const uintptr_t base = address & ~uintptr_t{63};
  const int64_t span = nbytes + static_cast<int64_t>(address - base);
  BufferRef buffer = BufferRef::adopt(new Buffer(span));
  buffer->block = host_device().wrap(reinterpret_cast<void*>(base), span, [] {});
  auto kept =
      c10::intrusive_ptr<c10::StorageImpl>::unsafe_reclaim_from_nonowning(const_cast<c10::StorageImpl*>(storage));
  Buffer* raw = buffer.get();
  entries_.insert({base, {raw, span, std::move(buffer), std::move(kept)}});
  return {raw, static_cast<int64_t>(address - base)};
}

}  // namespace ae::engine
