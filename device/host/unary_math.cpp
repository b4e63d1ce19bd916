// Unary functions from device/math.
#include "device/host/math_kernel.h"
#include "device/math/math.h"

namespace ae::device::host {
namespace {

template <class T>
ElementKernel kernel_of(Primitive op) {
  switch (op) {
#define AE_CASE(name) \
  case Primitive::name: return &math_kernel<T, [](auto x) { return math::name(x); }>;
    AE_CASE(exp)
    AE_CASE(exp2)
    AE_CASE(expm1)
    AE_CASE(log)
    AE_CASE(log2)
    AE_CASE(log10)
    AE_CASE(log1p)
    AE_CASE(sin)
    AE_CASE(cos)
    AE_CASE(tan)
    AE_CASE(asin)
    AE_CASE(acos)
    AE_CASE(atan)
    AE_CASE(sinh)
    AE_CASE(cosh)
    AE_CASE(tanh)
    AE_CASE(erf)
    AE_CASE(erfc)
    AE_CASE(sigmoid)
#undef AE_CASE
    default: return nullptr;
  }
}

}  // namespace

ElementKernel unary_math_kernel(Primitive op, DType type) {
  return type == DType::kF32 ? kernel_of<float>(op) : kernel_of<double>(op);
}

}  // namespace ae::device::host
