// The native tier's compiler as the engine sees it: a process of its own, `ae_native_compiler`, which lies beside the
// engine's library. So LLVM's 60 MiB are never part of the user's process, nor can it crash or stop it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "device/host/native/object_code.h"
#include "device/host/native/run.h"

namespace ae::device::host::native {

/// For one thread at a time. The process ends with this, or with ours.
class CompilerProcess {
 public:
  /// Null when there is no compiler: the engine was built without it, or it cannot be started.
  static std::unique_ptr<CompilerProcess> start();
  ~CompilerProcess();
  CompilerProcess(const CompilerProcess&) = delete;
  CompilerProcess& operator=(const CompilerProcess&) = delete;

  /// Whether a primitive can be part of a run.
  bool can_compile(Primitive op, DType type, DType out);
  /// Throws std::runtime_error with LLVM's words, or when the process has died.
  std::shared_ptr<const ObjectCode> compile(const std::vector<Run>& runs);

 private:
  explicit CompilerProcess(int socket) : socket_(socket) {}
  int socket_;
  std::map<std::tuple<Primitive, DType, DType>, bool> known_;
};

}  // namespace ae::device::host::native
