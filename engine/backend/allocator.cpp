#include "engine/backend/allocator.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <cstring>

#include "engine/backend/address_map.h"
#include "engine/backend/storage.h"
#include "engine/runtime.h"

namespace ae::engine {
namespace {

using c10::CachingDeviceAllocator::DeviceStats;

void set_stat(c10::CachingAllocator::StatArray& stats, int64_t current, int64_t peak, int64_t allocated,
              int64_t freed) {
  auto& all = stats[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
  all.current = current;
  all.peak = peak;
  all.allocated = allocated;
  all.freed = freed;
}

class NeuronAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t nbytes) override { return allocate_pointer(static_cast<int64_t>(nbytes)); }
  void copy_data(void* to, const void* from, std::size_t count) const override { std::memcpy(to, from, count); }

  bool initialized() override { return is_initialized(); }
  void emptyCache(c10::MempoolId_t) override {
    if (!is_initialized()) return;
    flush(fusion::FlushReason::synchronize);
    addresses().sweep();
    host_device().empty_cache();
  }
  void recordStream(const c10::DataPtr&, c10::Stream) override {}  // one stream: its order is enough
  void resetAccumulatedStats(c10::DeviceIndex) override { host_device().reset_accumulated_stats(); }
  void resetPeakStats(c10::DeviceIndex) override { host_device().reset_peak_stats(); }

  // What is recorded gets its memory first, so that figures show the tensors that the program holds.
  DeviceStats getDeviceStats(c10::DeviceIndex) override {
    flush(fusion::FlushReason::synchronize);
    const device::MemoryStats memory = host_device().memory_stats();
    DeviceStats stats;
    set_stat(stats.allocated_bytes, memory.allocated, memory.allocated_peak, memory.allocated_total,
             memory.freed_total);
    stats.active_bytes = stats.requested_bytes = stats.allocated_bytes;
    set_stat(stats.reserved_bytes, memory.reserved, memory.reserved_peak, memory.reserved, 0);
    set_stat(stats.allocation, memory.allocations, memory.allocations_peak, memory.allocations_total,
             memory.frees_total);
    stats.active = stats.allocation;
    stats.num_ooms = memory.out_of_memory;
    stats.num_alloc_retries = memory.cache_flushes;
    return stats;
  }

  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex) override {
    const int64_t total = memory_limit();
    const int64_t used = host_device().memory_stats().allocated;
    return {static_cast<size_t>(total > used ? total - used : 0), static_cast<size_t>(total)};
  }
};

NeuronAllocator g_allocator;
REGISTER_ALLOCATOR(kDeviceType, &g_allocator)

}  // namespace

c10::Allocator* neuron_allocator() { return &g_allocator; }

}  // namespace ae::engine
