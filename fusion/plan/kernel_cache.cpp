#include "fusion/plan/kernel_cache.h"

#include "fusion/codegen/tile.h"

namespace ae::fusion {

LoadedKernel KernelCache::get(const Kernel& kernel) {
  const uint64_t hash = hash_of(kernel);
  auto [it, end] = by_hash_.equal_range(hash);
  for (; it != end; ++it) {
    if (it->second->kernel != kernel) continue;
    entries_.splice(entries_.begin(), entries_, it->second);
    return it->second->loaded;
  }
  ++made_;
  const device::TileProgram program = to_tile_program(kernel);
  entries_.push_front({kernel, {device_.load(program), program.name}});
  by_hash_.emplace(hash, entries_.begin());
  if (entries_.size() > kMaxKernels) {
    const auto last = std::prev(entries_.end());
    auto [old, old_end] = by_hash_.equal_range(hash_of(last->kernel));
    while (old != old_end && old->second != last) ++old;
    by_hash_.erase(old);
    entries_.erase(last);
  }
  return entries_.front().loaded;
}

}  // namespace ae::fusion
