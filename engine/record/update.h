// Operators that change some elements of a tensor, chosen by an index: scatter, index_add and their kin.
#pragma once

#include "engine/record/check_index.h"
#include "engine/record/kernel.h"
#include "engine/record/result.h"

namespace ae::engine {

/// Dtypes that ATen's indexing kernels have (and we record).
inline constexpr uint64_t kIndexed = kFloats | kInts | kBools;

inline bool is_index(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kLong || tensor.scalar_type() == at::kInt;
}

/// True if no two elements of a tensor share memory, as its strides show it (a view may be apart in other ways too).
bool is_apart(const at::Tensor& tensor);

/// prepare_result for a target that keeps some elements of `self`; an in-place target may be any view that is apart.
bool prepare_update(Call& call, const at::Tensor& self, const at::Tensor& index, const at::Tensor& source);

/// Gets the call's target ready to be changed in place: the functional and the out= form copy `self` into it first.
/// False, with nothing changed, where the fallback knows better. `check`: what has to hold before
/// anything is written.
template <class Check>
bool begin_update(Call& call, const at::Tensor& self, const at::Tensor& index, const at::Tensor& source, Check check) {
  if (!prepare_update(call, self, index, source)) return false;
  check();
  const at::Tensor& target = result_of(call);
  if (!target.is_same(self) && self.numel() != 0)
    record_pointwise(Opcode::copy, self.scalar_type(), {Input(self)}, {target});
  return true;
}
/// The same for an index, which may be known to be outside: that is for the fallback too.
inline bool begin_update(Call& call, const at::Tensor& self, const at::Tensor& source, const IndexCheck& check) {
  return check.known != Known::outside && begin_update(call, self, check.index, source, [&] { check.record(); });
}

/// The dimension, not negative, with 0-dim tensors counted as having one; -1 if there is none such.
inline int64_t valid_dim(const at::Tensor& self, int64_t dim) {
  const int64_t rank = std::max<int64_t>(self.dim(), 1);
  return dim < -rank || dim >= rank ? -1 : dim < 0 ? dim + rank : dim;
}
/// The size of a dimension; 0-dim tensors have one of size 1.
inline int64_t extent_of(const at::Tensor& tensor, int64_t dim) { return tensor.dim() == 0 ? 1 : tensor.sizes()[dim]; }

/// True if PyTorch converts the number to this dtype without an error.
bool holds(at::ScalarType type, const at::Scalar& value);

}  // namespace ae::engine
