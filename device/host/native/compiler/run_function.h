// The LLVM function of a run.
#pragma once

#include <llvm-c/Core.h>

#include "device/host/native/run.h"

namespace ae::device::host::native {

/// Adds `void name(ptr cells, i64 rows, i64 groups)` (RunFunction) to the module that ir_target() names.
void add_run_function(const Run& run, const char* name);

}  // namespace ae::device::host::native
