// Checks of index values for operators that write in place: such an operator must not have written anything when it
// fails. So values that are not known when recording are checked by a node of their own, a fence, before it.
#pragma once

#include "engine/record/known.h"

namespace ae::engine {

/// How the CPU says that an index is out of range.
enum class IndexFault : int64_t {
  runtime_bounds,  // RuntimeError: index 9 is out of bounds for dimension 0 with size 4
  bounds,          // IndexError, the same text
  copy_bounds,     // IndexError, the same text after "index_copy_(): "
  in_self,         // IndexError: index out of range in self
  flat,            // IndexError: out of range: tried to access index 9 on a tensor of 4 elements.
};

/// An index whose values have to lie in [low, high], and what is known of them. `dim` is what the CPU's text names.
struct IndexCheck {
  IndexCheck(const at::Tensor& index, int64_t low, int64_t high, IndexFault fault, int64_t dim = 0)
      : index(index), low(low), high(high), fault(fault), dim(dim), known(known_range(index, low, high)) {}
  /// Records the check if it is needed.
  void record() const;

  const at::Tensor& index;
  int64_t low, high;
  IndexFault fault;
  int64_t dim;
  Known known;
};

/// Records the check that `values` has as many elements as `mask`, repeated `repeats` times, has true ones.
void check_mask(const at::Tensor& mask, int64_t repeats, int64_t values);

}  // namespace ae::engine
