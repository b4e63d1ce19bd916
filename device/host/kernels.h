// The inner loops of the tile machine: one function per primitive, dtype and kind of operands. They run over whole
// groups of 16 elements, so an element's bits never depend on where in a block it stands; lanes of padding hold garbage
// and no kernel traps on them. Results may be written over an operand of the same element size.
#pragma once

#include <cstdint>

#include "device/dtype.h"
#include "device/primitive.h"

namespace ae::device::host {

/// Elements in a group.
inline constexpr int64_t kGroup = 16;

constexpr int64_t padded(int64_t n) { return (n + kGroup - 1) / kGroup * kGroup; }

/// dst, a, b, c point at the first element; unused ones are ignored; a scalar operand is read at its first element and
/// must be repeated over 64 bytes. `groups` is the number of groups of 16.
using ElementKernel = void (*)(void* dst, const void* a, const void* b, const void* c, int64_t groups);

/// Which operands are vectors (v) and which scalars (s).
enum class Operands : uint8_t { vv, vs, sv };

/// These return null where the primitive has no meaning for the dtype.
ElementKernel unary_kernel(Primitive op, DType type);
ElementKernel binary_kernel(Primitive op, DType type, Operands operands);
ElementKernel cast_kernel(DType from, DType to);
/// a is a vector of bool; `operands` is about b and c.
ElementKernel select_kernel(int element_size, Operands operands);
/// a: positions; b, c: seed and offset, both scalars or both vectors.
ElementKernel random_kernel(bool scalar_key);
/// dst = a's first element.
ElementKernel fill_kernel(int element_size);

/// Reductions in canonical order. `n` elements are reduced for each result; `pitch` is the distance in elements between
/// rows of x. Widths are multiples of 16.
struct ReduceKernels {
  /// Reduces each of `rows` rows of x; result r goes to dst[r * dst_pitch].
  void (*rows)(void* dst, int64_t dst_pitch, const void* x, int64_t rows, int64_t n, int64_t pitch);
  /// Reduces n rows of x to one row of `width` results.
  void (*columns)(void* dst, const void* x, int64_t n, int64_t width, int64_t pitch);
  /// A chunk of columns, piece by piece: accumulators are 16 rows of `width`, the pieces but the last have a multiple
  /// of 16 rows.
  void (*start)(void* accumulators, int64_t width);
  void (*accumulate)(void* accumulators, const void* x, int64_t n, int64_t width, int64_t pitch);
  void (*finish)(void* dst, const void* accumulators, int64_t width);
};
const ReduceKernels* reduce_kernels(Primitive op, DType type);

/// Rough time of one element in units of a pointwise addition's, for the size of tasks.
double cost_of(Primitive op, DType type);

}  // namespace ae::device::host
