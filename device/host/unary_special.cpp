// Unary functions from device/math/special.h.
#include "device/host/math_kernel.h"
#include "device/math/special.h"

namespace ae::device::host {
namespace {

template <class T>
ElementKernel kernel_of(Primitive op) {
  switch (op) {
#define AE_CASE(name) \
  case Primitive::name: return &math_kernel<T, [](auto x) { return math::name(x); }>;
    AE_CASE(asinh)
    AE_CASE(acosh)
    AE_CASE(atanh)
    AE_CASE(erfinv)
    AE_CASE(erfcx)
    AE_CASE(lgamma)
    AE_CASE(digamma)
    AE_CASE(trigamma)
    AE_CASE(i0)
    AE_CASE(i0e)
    AE_CASE(i1)
    AE_CASE(i1e)
    AE_CASE(ndtri)
    AE_CASE(log_ndtr)
#undef AE_CASE
    default: return nullptr;
  }
}

}  // namespace

ElementKernel unary_special_kernel(Primitive op, DType type) {
  return type == DType::kF32 ? kernel_of<float>(op) : kernel_of<double>(op);
}

}  // namespace ae::device::host
