// Machine code from an object file.
#pragma once

#include <string>
#include <vector>

#include "device/host/native/run.h"

namespace ae::device::host::native {

/// The functions of an object file, in executable memory of their own; gone with this.
class ObjectCode {
 public:
  /// Takes an x86-64 ELF object file that needs nothing from elsewhere and defines run_0 to run_(count - 1). Throws
  /// std::runtime_error on anything else.
  ObjectCode(const std::string& object, size_t count);
  ~ObjectCode();
  ObjectCode(const ObjectCode&) = delete;
  ObjectCode& operator=(const ObjectCode&) = delete;

  const std::vector<RunFunction>& functions() const { return functions_; }

 private:
  std::vector<RunFunction> functions_;
  void* memory_ = nullptr;
  size_t size_ = 0;
};

}  // namespace ae::device::host::native
