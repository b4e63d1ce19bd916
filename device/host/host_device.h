// The host device: our CPU device. Launches run on one worker thread per stream and one oneTBB pool.
#pragma once

#include <functional>
#include <memory>

#include "device/device.h"
#include "device/host/native_tier.h"

namespace ae::device::host {

struct HostOptions {
  int threads = 0;  // size of the pool; 0: as many as the process may use (affinity mask)
  /// Called once on each thread that runs launches, before its first one: makes the host library (ATen, MKL, OpenMP)
  /// run on one thread there.
  std::function<void()> thread_start;
  NativeTier::Mode native = NativeTier::Mode::background;
};

/// Makes the host device. One per process is the rule; tests make more.
std::unique_ptr<Device> make_host_device(const HostOptions& options);

}  // namespace ae::device::host
