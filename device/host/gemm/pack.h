// Columns of a matrix put beside each other, as the product's inner loop reads them.
#pragma once

#include <cstdint>

namespace ae::device::host::gemm {

/// to[p * kColumnTile + j] = from[p * row_stride + j * column_stride] for p < k and j < columns; zeros for the other j.
/// One of the strides is 1.
void pack_columns(const float* from, int64_t row_stride, int64_t column_stride, int64_t k, int64_t columns, float* to);

}  // namespace ae::device::host::gemm
