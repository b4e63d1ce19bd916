// A small device for tests, of the shape of a PJRT device: buffers are immutable and have no address, executables are
// compiled for one size, and inputs can be donated. Kernels are evaluated by the slow reference.
#pragma once

#include <memory>

#include "device/device.h"

namespace ae::device::conformance {

struct FunctionalCounts {
  int64_t compiled = 0;       // executables made, one for each kernel and geometry
  int64_t compiled_hits = 0;  // segments of compiled programs that found theirs
  int64_t donated = 0;        // blocks given to a submission that became a block of another content
};

class FunctionalDevice : public Device {
 public:
  virtual FunctionalCounts counts() const = 0;
};

std::unique_ptr<FunctionalDevice> make_functional_device();

}  // namespace ae::device::conformance
