// Element types that values, registers and buffers can have.
#pragma once

#include <cstdint>

namespace ae {

enum class DType : uint8_t {
  kBool,
  kU8,
  kI8,
  kI16,
  kI32,
  kI64,
  kU16,
  kU32,
  kU64,
  kF16,
  kBF16,
  kF32,
  kF64,
  kC64,
  kC128
};

/// Size of one element in bytes.
constexpr int64_t size_of(DType dtype) {
  constexpr int64_t kSizes[] = {1, 1, 1, 2, 4, 8, 2, 4, 8, 2, 2, 4, 8, 8, 16};
  return kSizes[static_cast<int>(dtype)];
}

/// The name PyTorch users know: "float32", "bfloat16", "bool"…
constexpr const char* name_of(DType dtype) {
  constexpr const char* kNames[] = {"bool",     "uint8",   "int8",    "int16",     "int32",
                                    "int64",    "uint16",  "uint32",  "uint64",    "float16",
                                    "bfloat16", "float32", "float64", "complex64", "complex128"};
  return kNames[static_cast<int>(dtype)];
}

constexpr bool is_complex(DType dtype) { return dtype == DType::kC64 || dtype == DType::kC128; }
/// The type of a complex number's two parts; other types are their own.
constexpr DType real_type(DType dtype) {
  return dtype == DType::kC64 ? DType::kF32 : dtype == DType::kC128 ? DType::kF64 : dtype;
}
constexpr bool is_floating(DType dtype) { return dtype >= DType::kF16 && dtype <= DType::kF64; }
constexpr bool is_integral(DType dtype) { return dtype >= DType::kU8 && dtype <= DType::kU64; }

/// The type in which an operator on `dtype` computes inside itself: half types compute in fp32 and round once at the
/// operator's end (PyTorch's `opmath_t`).
constexpr DType compute_type(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16 ? DType::kF32 : dtype;
}

}  // namespace ae
