// Conversions between dtypes, selection and fills.
#include <cstdint>

#include "device/host/kernels.h"
#include "device/math/half.h"
#include "device/math/vec.h"

namespace ae::device::host {
namespace {

using math::Vec;

/// How the elements of a dtype become numbers that can be converted, and back.
template <class T>
struct Plain {
  using Number = T;
  using Storage = T;
  static Vec<T, 16> load(const T* from) { return Vec<T, 16>::load(from); }
  static void store(T* to, Vec<T, 16> x) { x.store(to); }
};
struct F16 {
  using Number = float;
  using Storage = uint16_t;
  static Vec<float, 16> load(const uint16_t* from) { return math::from_f16(Vec<uint16_t, 16>::load(from)); }
  static void store(uint16_t* to, Vec<float, 16> x) { math::to_f16(x).store(to); }
};
struct BF16 {
  using Number = float;
  using Storage = uint16_t;
  static Vec<float, 16> load(const uint16_t* from) { return math::from_bf16(Vec<uint16_t, 16>::load(from)); }
  static void store(uint16_t* to, Vec<float, 16> x) { math::to_bf16(x).store(to); }
};

template <class From, class To>
void cast_loop(void* dst, const void* a, const void*, const void*, int64_t groups) {
  auto* out = static_cast<typename To::Storage*>(dst);
  auto* x = static_cast<const typename From::Storage*>(a);
  for (int64_t i = 0; i < groups * kGroup; i += kGroup) {
    To::store(out + i, math::convert<typename To::Number>(From::load(x + i)));
  }
}

template <class From>
void to_bool_loop(void* dst, const void* a, const void*, const void*, int64_t groups) {
  auto* out = static_cast<uint8_t*>(dst);
  auto* x = static_cast<const typename From::Storage*>(a);
  for (int64_t i = 0; i < groups * kGroup; i += kGroup) {
    typename From::Number numbers[kGroup];
    From::load(x + i).store(numbers);
    for (int64_t j = 0; j < kGroup; ++j) out[i + j] = numbers[j] != 0;
  }
}

template <class From>
ElementKernel cast_from(DType to) {
  switch (to) {
    case DType::kBool: return &to_bool_loop<From>;
    case DType::kU8: return &cast_loop<From, Plain<uint8_t>>;
    case DType::kI8: return &cast_loop<From, Plain<int8_t>>;
    case DType::kI16: return &cast_loop<From, Plain<int16_t>>;
    case DType::kI32: return &cast_loop<From, Plain<int32_t>>;
    case DType::kI64: return &cast_loop<From, Plain<int64_t>>;
    case DType::kU16: return &cast_loop<From, Plain<uint16_t>>;
    case DType::kU32: return &cast_loop<From, Plain<uint32_t>>;
    case DType::kU64: return &cast_loop<From, Plain<uint64_t>>;
    case DType::kF16: return &cast_loop<From, F16>;
    case DType::kBF16: return &cast_loop<From, BF16>;
    case DType::kF32: return &cast_loop<From, Plain<float>>;
    case DType::kF64: return &cast_loop<From, Plain<double>>;
    default: return nullptr;
  }
}

template <class T, Operands kOperands>
void select_loop(void* dst, const void* a, const void* b, const void* c, int64_t groups) {
  const int64_t n = groups * kGroup;
  T* out = static_cast<T*>(dst);
  const uint8_t* mask = static_cast<const uint8_t*>(a);
  const T* x = static_cast<const T*>(b);
  const T* y = static_cast<const T*>(c);
  const T x0 = *x, y0 = *y;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const T yes = kOperands == Operands::sv ? x0 : x[i];
    const T no = kOperands == Operands::vs ? y0 : y[i];
    out[i] = mask[i] ? yes : no;
  }
}
template <class T>
ElementKernel select_of(Operands operands) {
  return operands == Operands::vv   ? &select_loop<T, Operands::vv>
         : operands == Operands::vs ? &select_loop<T, Operands::vs>
                                    : &select_loop<T, Operands::sv>;
}

template <class T>
void fill_loop(void* dst, const void* a, const void*, const void*, int64_t groups) {
  const T x = *static_cast<const T*>(a);
  T* out = static_cast<T*>(dst);
  for (int64_t i = 0; i < groups * kGroup; ++i) out[i] = x;
}

}  // namespace

ElementKernel cast_kernel(DType from, DType to) {
  switch (from) {
    case DType::kBool:
    case DType::kU8: return cast_from<Plain<uint8_t>>(to);
    case DType::kI8: return cast_from<Plain<int8_t>>(to);
    case DType::kI16: return cast_from<Plain<int16_t>>(to);
    case DType::kI32: return cast_from<Plain<int32_t>>(to);
    case DType::kI64: return cast_from<Plain<int64_t>>(to);
    case DType::kU16: return cast_from<Plain<uint16_t>>(to);
    case DType::kU32: return cast_from<Plain<uint32_t>>(to);
    case DType::kU64: return cast_from<Plain<uint64_t>>(to);
    case DType::kF16: return cast_from<F16>(to);
    case DType::kBF16: return cast_from<BF16>(to);
    case DType::kF32: return cast_from<Plain<float>>(to);
    case DType::kF64: return cast_from<Plain<double>>(to);
    default: return nullptr;
  }
}

ElementKernel select_kernel(int element_size, Operands operands) {
  switch (element_size) {
    case 1: return select_of<uint8_t>(operands);
    case 2: return select_of<uint16_t>(operands);
    case 4: return select_of<uint32_t>(operands);
    default: return select_of<uint64_t>(operands);
  }
}

ElementKernel fill_kernel(int element_size) {
  switch (element_size) {
    case 1: return &fill_loop<uint8_t>;
    case 2: return &fill_loop<uint16_t>;
    case 4: return &fill_loop<uint32_t>;
    default: return &fill_loop<uint64_t>;
  }
}

}  // namespace ae::device::host
