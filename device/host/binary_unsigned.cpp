#include "device/host/binary_int_kernels.h"

namespace ae::device::host {

ElementKernel binary_unsigned_kernel(Primitive op, DType type, Operands operands) {
  switch (type) {
    case DType::kU8: return int_kernel<uint8_t>(op, operands);
    case DType::kU16: return int_kernel<uint16_t>(op, operands);
    case DType::kU32: return int_kernel<uint32_t>(op, operands);
    case DType::kU64: return int_kernel<uint64_t>(op, operands);
    default: return nullptr;
  }
}

/// Bools are bytes of 0 and 1.
ElementKernel binary_bool_kernel(Primitive op, Operands operands) {
  switch (op) {
    case Primitive::add:
    case Primitive::maximum:
    case Primitive::fmax:
    case Primitive::bitwise_or: return binary_of<IntOr, uint8_t>(operands);
    case Primitive::mul:
    case Primitive::minimum:
    case Primitive::fmin:
    case Primitive::bitwise_and: return binary_of<IntAnd, uint8_t>(operands);
    case Primitive::sub:
    case Primitive::bitwise_xor: return binary_of<IntXor, uint8_t>(operands);
    default: return comparison_kernel<uint8_t>(op, operands);
  }
}

}  // namespace ae::device::host
