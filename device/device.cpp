#include "device/device.h"

#include <cstring>

namespace ae::device {

OutOfMemory::OutOfMemory(int64_t requested_bytes, int64_t allocated_bytes, int64_t limit_bytes)
    : requested(requested_bytes), allocated(allocated_bytes), limit(limit_bytes) {
  text_ = "out of memory: tried to allocate " + std::to_string(requested) + " bytes with " + std::to_string(allocated) +
          " bytes in use";
  if (limit >= 0) text_ += " and a limit of " + std::to_string(limit) + " bytes";
}

BlockRef Device::copy_from_host(const void* from, int64_t bytes) {
  BlockRef block = allocate(bytes);
  if (bytes > 0) std::memcpy(block->address(), from, static_cast<size_t>(bytes));
  return block;
}

void Device::copy_to_host(const BlockRef& block, void* to) {
  if (block->size() > 0) std::memcpy(to, block->address(), static_cast<size_t>(block->size()));
}

}  // namespace ae::device
