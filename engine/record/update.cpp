#include "engine/record/update.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ae::engine {

bool is_apart(const at::Tensor& tensor) {
  c10::SmallVector<std::pair<int64_t, int64_t>, 6> dims;  // stride, size
  for (int64_t d = 0; d < tensor.dim(); ++d)
    if (tensor.sizes()[d] > 1) dims.emplace_back(tensor.strides()[d], tensor.sizes()[d]);
  std::sort(dims.begin(), dims.end());
  int64_t reach = 0;  // of the dimensions so far
  for (const auto& [stride, size] : dims) {
    if (stride <= reach) return false;
    reach += (size - 1) * stride;
  }
  return true;
}

bool prepare_update(Call& call, const at::Tensor& self, const at::Tensor& index, const at::Tensor& source) {
  if (!call.is_in_place())
    return prepare_result(call, self.sizes(), self.scalar_type(), {&self, &index, &source}, {}, &self);
  return is_apart(self) && !self.storage().is_alias_of(index.storage()) &&
         !self.storage().is_alias_of(source.storage());
}

bool holds(at::ScalarType type, const at::Scalar& value) {
  if (value.isComplex()) return false;
  const double size = std::abs(value.toDouble());
  switch (type) {
    case at::kBool: return true;
    case at::kByte: return size <= std::numeric_limits<uint8_t>::max();  // negative numbers wrap
    case at::kChar: return size <= std::numeric_limits<int8_t>::max();
    case at::kShort: return size <= std::numeric_limits<int16_t>::max();
    case at::kInt: return size <= std::numeric_limits<int32_t>::max();
    case at::kLong: return value.isIntegral(/*includeBool=*/true) || size < 0x1p63;
    case at::kHalf: return !std::isfinite(size) || size <= std::numeric_limits<at::Half>::max();
    case at::kBFloat16: return !std::isfinite(size) || size <= std::numeric_limits<at::BFloat16>::max();
    case at::kFloat: return !std::isfinite(size) || size <= std::numeric_limits<float>::max();
    default: return type == at::kDouble;
  }
}

}  // namespace ae::engine
