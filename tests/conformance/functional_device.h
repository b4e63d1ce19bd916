// A small device for tests, with buffers as on a PJRT device: they are immutable and have no address, and a write makes
// a new one. A Block here is a name for a buffer that changes with each write. Kernels are evaluated by the slow
// reference, so there is nothing to compile or cache for a size.
#pragma once

#include <memory>

#include "device/device.h"

namespace ae::device::conformance {

std::unique_ptr<Device> make_functional_device();

}  // namespace ae::device::conformance
