#include "device/host/binary_int_kernels.h"

namespace ae::device::host {

ElementKernel binary_signed_kernel(Primitive op, DType type, Operands operands) {
  switch (type) {
    case DType::kI8: return int_kernel<int8_t>(op, operands);
    case DType::kI16: return int_kernel<int16_t>(op, operands);
    case DType::kI32: return int_kernel<int32_t>(op, operands);
    case DType::kI64: return int_kernel<int64_t>(op, operands);
    default: return nullptr;
  }
}

}  // namespace ae::device::host
