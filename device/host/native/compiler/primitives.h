// The primitives as LLVM IR.
#pragma once

#include <llvm-c/Core.h>

#include "device/dtype.h"
#include "device/primitive.h"

namespace ae::device::host::native {

/// The LLVM type of an element in memory and in registers. Bool is i8, as in memory; half types are i16.
LLVMTypeRef element_type_of(DType type);

/// Appends a primitive over 16 lanes and gives its value; null for primitives that are not known here, which keep their
/// tile kernels. `type` and `out` as in TileInstr; operands that the primitive lacks are ignored. The bits are those of
/// the tile kernels (a NaN's payload aside).
LLVMValueRef emit_primitive(Primitive op, DType type, DType out, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c);

}  // namespace ae::device::host::native
