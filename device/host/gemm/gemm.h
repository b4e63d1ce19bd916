// Products of float32 matrices on one thread, for processors whose library is not made for their widest registers.
//
// Order of the sums (so the bits depend on neither the cut of a product into pieces nor the strides): element (i, j) of
// a product is the sum over blocks of 1,024 of the inner dimension, each a chain of fused multiply-adds in order from
// 0.
#pragma once

#include <cstdint>

namespace ae::device::host::gemm {

/// A matrix in memory; strides in elements.
struct Matrix {
  const float* data = nullptr;
  int64_t row_stride = 0, column_stride = 0;
};

/// out = alpha * a @ b + beta * self, or alpha * a @ b without self.
struct Product {
  int64_t m, n, k;
  Matrix a;    // [m, k], any strides
  Matrix b;    // [k, n], one of its strides is 1
  float* out;  // [m, n], columns beside each other
  int64_t out_row_stride;
  Matrix self;  // [m, n] or data == nullptr; may be `out` itself, else must not overlap it; strides may be 0
  float alpha = 1, beta = 1;
  const float* packed = nullptr;  // b as `pack` writes it, for many products with one b; then `b` is not read
};

/// Whether `multiply` is the better choice on this machine: compiled for AVX-512, and the processor is not of the maker
/// whose library PyTorch uses. Measured on Zen 4, one thread, sizes of a small transformer: 97-111 GFLOPS here, 76-93
/// by the library, which takes its 256-bit kernels there.
bool is_preferred();

void multiply(const Product& product);

/// How many floats `pack` writes for b [k, n].
int64_t packed_size(int64_t k, int64_t n);
void pack(const Matrix& b, int64_t k, int64_t n, float* to);

/// Columns that are computed side by side; pieces of a product are best multiples of it (rows: of kRowTile).
inline constexpr int64_t kColumnTile = 32;
inline constexpr int64_t kRowTile = 14;

}  // namespace ae::device::host::gemm
