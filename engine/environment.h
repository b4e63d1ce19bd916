// Our environment variables, read once at the first use of the device.
#pragma once

#include "device/host/native_tier.h"
#include "fusion/flush/policy.h"

namespace ae::engine {

struct Environment {
  fusion::PolicySettings policy;
  bool launch_blocking = false;
  int threads = 0;  // 0: as many as torch would use
  device::host::NativeTier::Mode native = device::host::NativeTier::Mode::background;
};

/// Throws ValueError, naming the variable and what it may be, on an unknown value.
Environment read_environment();

}  // namespace ae::engine
