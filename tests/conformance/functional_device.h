// A small device for tests that is like a PJRT device: buffers are immutable and have no address, a write makes a new
// buffer, executables are made for one size each. A Block here is a name for a buffer that changes with each write.
#pragma once

#include <memory>

#include "device/device.h"

namespace ae::device::conformance {

std::unique_ptr<Device> make_functional_device();

}  // namespace ae::device::conformance
