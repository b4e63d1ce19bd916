#include "device/host/native/compiler/ir_vec.h"

#include <array>
#include <cstring>

namespace ae::device::host::native {

IrTarget& ir_target() {
  thread_local IrTarget target;
  return target;
}

LLVMTypeRef vector_type(LLVMTypeRef element) { return LLVMVectorType(element, kLanes); }
LLVMTypeRef int_type(unsigned bits) { return LLVMIntTypeInContext(ir_target().context, bits); }
LLVMTypeRef float_type(unsigned bytes) {
  return bytes == 4 ? LLVMFloatTypeInContext(ir_target().context) : LLVMDoubleTypeInContext(ir_target().context);
}

LLVMValueRef splat(LLVMValueRef constant) {
  std::array<LLVMValueRef, kLanes> lanes;
  lanes.fill(constant);
  return LLVMConstVector(lanes.data(), kLanes);
}

LLVMValueRef call_intrinsic(const char* name, LLVMTypeRef overload, std::initializer_list<LLVMValueRef> operands) {
  const IrTarget& target = ir_target();
  const unsigned id = LLVMLookupIntrinsicID(name, std::strlen(name));
  const size_t overloads = overload ? 1 : 0;
  const LLVMValueRef function = LLVMGetIntrinsicDeclaration(target.module, id, &overload, overloads);
  const LLVMTypeRef type = LLVMIntrinsicGetType(target.context, id, &overload, overloads);
  return LLVMBuildCall2(target.builder, type, function, const_cast<LLVMValueRef*>(operands.begin()),
                        static_cast<unsigned>(operands.size()), "");
}

LLVMValueRef scale_floats(LLVMValueRef x, LLVMValueRef n) {
  const LLVMValueRef every_lane = LLVMConstAllOnes(int_type(16));
  const LLVMValueRef current_rounding = LLVMConstInt(int_type(32), 4, false);
  return call_intrinsic("llvm.x86.avx512.mask.scalef.ps.512", nullptr, {x, n, x, every_lane, current_rounding});
}

}  // namespace ae::device::host::native
