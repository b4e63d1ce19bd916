// Loaded kernels by IR. Bounded; the least recently used goes first.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <unordered_map>

#include "device/device.h"
#include "fusion/ir/kernel.h"

namespace ae::fusion {

struct LoadedKernel {
  std::shared_ptr<const device::Executable> executable;
  std::string name;  // what it computes, for the report
};

class KernelCache {
 public:
  static constexpr size_t kMaxKernels = 4096;
  explicit KernelCache(device::Device& device) : device_(device) {}

  /// The kernel, loaded; made if it is new.
  LoadedKernel get(const Kernel& kernel);
  int64_t made() const { return made_; }

 private:
  struct Entry {
    Kernel kernel;
    LoadedKernel loaded;
  };
  using Entries = std::list<Entry>;
  device::Device& device_;
  Entries entries_;
  std::unordered_multimap<uint64_t, Entries::iterator> by_hash_;
  int64_t made_ = 0;
};

}  // namespace ae::fusion
