#include "device/device.h"

namespace ae::device {

OutOfMemory::OutOfMemory(int64_t requested_bytes, int64_t allocated_bytes, int64_t limit_bytes)
    : requested(requested_bytes), allocated(allocated_bytes), limit(limit_bytes) {
  text_ = "out of memory: tried to allocate " + std::to_string(requested) + " bytes with " + std::to_string(allocated) +
          " bytes in use";
  if (limit >= 0) text_ += " and a limit of " + std::to_string(limit) + " bytes";
}

}  // namespace ae::device
