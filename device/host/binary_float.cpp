#include "device/host/binary_kernels.h"
#include "device/math/math.h"

namespace ae::device::host {
namespace {

AE_OP(FloatAdd, x + y);
AE_OP(FloatSub, x - y);
AE_OP(FloatMul, x* y);
AE_OP(FloatDiv, x / y);
AE_OP(FloatTruncDiv, std::trunc(x / y));
AE_OP(FloatMaximum, x != x ? x : y != y ? y : x < y ? y : x);
AE_OP(FloatMinimum, x != x ? x : y != y ? y : y < x ? y : x);
AE_OP(FloatFmax, x != x ? y : y != y ? x : x < y ? y : x);
AE_OP(FloatFmin, x != x ? y : y != y ? x : y < x ? y : x);
AE_OP(FloatCopysign, std::copysign(x, y));

/// C's fmod is exact, so any right implementation gives the same bits.
AE_OP(FloatFmod, std::fmod(x, y));
struct FloatRemainder {
  template <class T>
  static T apply(T x, T y) {
    T rest = std::fmod(x, y);
    if (rest != 0 && ((y < 0) != (rest < 0))) rest += y;
    return rest;
  }
};
/// Rounds the exact quotient down: what is left over is taken off first, so that the division is exact or nearly so.
struct FloatFloorDiv {
  template <class T>
  static T apply(T x, T y) {
    if (y == 0) return x / y;
    const T rest = std::fmod(x, y);
    T quotient = (x - rest) / y;
    if (rest != 0 && ((y < 0) != (rest < 0))) quotient -= T(1);
    if (quotient == 0) return std::copysign(T(0), x / y);
    const T low = std::floor(quotient);
    return quotient - low > T(0.5) ? low + T(1) : low;
  }
};

/// Long functions: one loop for all kinds of operands, with steps of 0 for scalars.
template <class T, class F>
inline void packet_loop(void* dst, const void* a, const void* b, int64_t groups, int64_t step_a, int64_t step_b, F f) {
  using V = math::Vec<T, 64 / sizeof(T)>;
  constexpr int64_t kLanes = 64 / sizeof(T);
  T* out = static_cast<T*>(dst);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  for (int64_t i = 0; i < groups * kGroup; i += kLanes) {
    f(V::load(x + i * step_a), V::load(y + i * step_b)).store(out + i);
  }
}
template <class T, auto kFunction>
void packet_kernel(void* dst, const void* a, const void* b, int64_t groups, Operands operands) {
  packet_loop<T>(dst, a, b, groups, operands != Operands::sv, operands != Operands::vs,
                 [](auto x, auto y) { return kFunction(x, y); });
}
template <class T, auto kFunction>
ElementKernel packets_of(Operands operands) {
  switch (operands) {
    case Operands::vv:
      return [](void* d, const void* a, const void* b, const void*, int64_t groups) {
        packet_kernel<T, kFunction>(d, a, b, groups, Operands::vv);
      };
    case Operands::vs:
      return [](void* d, const void* a, const void* b, const void*, int64_t groups) {
        packet_kernel<T, kFunction>(d, a, b, groups, Operands::vs);
      };
    case Operands::sv:
      return [](void* d, const void* a, const void* b, const void*, int64_t groups) {
        packet_kernel<T, kFunction>(d, a, b, groups, Operands::sv);
      };
  }
  return nullptr;
}

template <class T>
ElementKernel float_kernel(Primitive op, Operands operands) {
  switch (op) {
    case Primitive::add: return binary_of<FloatAdd, T>(operands);
    case Primitive::sub: return binary_of<FloatSub, T>(operands);
    case Primitive::mul: return binary_of<FloatMul, T>(operands);
    case Primitive::div: return binary_of<FloatDiv, T>(operands);
    case Primitive::floor_div: return binary_of<FloatFloorDiv, T>(operands);
    case Primitive::trunc_div: return binary_of<FloatTruncDiv, T>(operands);
    case Primitive::remainder: return binary_of<FloatRemainder, T>(operands);
    case Primitive::fmod: return binary_of<FloatFmod, T>(operands);
    case Primitive::pow: return packets_of<T, [](auto x, auto y) { return math::pow(x, y); }>(operands);
    case Primitive::atan2: return packets_of<T, [](auto x, auto y) { return math::atan2(x, y); }>(operands);
    case Primitive::hypot: return packets_of<T, [](auto x, auto y) { return math::hypot(x, y); }>(operands);
    case Primitive::maximum: return binary_of<FloatMaximum, T>(operands);
    case Primitive::minimum: return binary_of<FloatMinimum, T>(operands);
    case Primitive::fmax: return binary_of<FloatFmax, T>(operands);
    case Primitive::fmin: return binary_of<FloatFmin, T>(operands);
    case Primitive::copysign: return binary_of<FloatCopysign, T>(operands);
    default: return comparison_kernel<T>(op, operands);
  }
}

}  // namespace

ElementKernel binary_float_kernel(Primitive op, DType type, Operands operands) {
  return type == DType::kF32 ? float_kernel<float>(op, operands) : float_kernel<double>(op, operands);
}

ElementKernel binary_kernel(Primitive op, DType type, Operands operands) {
  switch (type) {
    case DType::kF32:
    case DType::kF64: return binary_float_kernel(op, type, operands);
    case DType::kBool: return binary_bool_kernel(op, operands);
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64: return binary_signed_kernel(op, type, operands);
    case DType::kU8:
    case DType::kU16:
    case DType::kU32:
    case DType::kU64: return binary_unsigned_kernel(op, type, operands);
    default: return nullptr;
  }
}

}  // namespace ae::device::host
