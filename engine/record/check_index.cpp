#include "engine/record/check_index.h"

#include "engine/library/out_call.h"

namespace ae::engine {
namespace {

using at::Tensor;

[[noreturn]] void fail(int64_t value, int64_t size, IndexFault fault, int64_t dim) {
  switch (fault) {
    case IndexFault::runtime_bounds:
      TORCH_CHECK(false, "index ", value, " is out of bounds for dimension ", dim, " with size ", size);
    case IndexFault::bounds:
      TORCH_CHECK_INDEX(false, "index ", value, " is out of bounds for dimension ", dim, " with size ", size);
    case IndexFault::copy_bounds:
      TORCH_CHECK_INDEX(false, "index_copy_(): index ", value, " is out of bounds for dimension ", dim, " with size ",
                        size);
    case IndexFault::flat:
      TORCH_CHECK_INDEX(false, "out of range: tried to access index ", value, " on a tensor of ", size, " elements.");
    default: TORCH_CHECK_INDEX(false, "index out of range in self");
  }
}

template <class T>
void check_all(const Tensor& index, int64_t low, int64_t high, IndexFault fault, int64_t dim) {
  const T* value = index.const_data_ptr<T>();
  for (int64_t i = 0; i < index.numel(); ++i)
    if (value[i] < low || value[i] > high) fail(value[i], high + 1, fault, dim);
}

constexpr auto check_range = [](const Tensor& index, int64_t low, int64_t high, int64_t fault, int64_t dim) {
  const auto check = index.scalar_type() == at::kInt ? &check_all<int32_t> : &check_all<int64_t>;
  check(index.contiguous(), low, high, static_cast<IndexFault>(fault), dim);
};
constexpr auto check_count = [](const Tensor& mask, int64_t repeats, int64_t values) {
  TORCH_CHECK(mask.sum().item().toLong() * repeats <= values, "Number of elements of source < number of ones in mask");
};

const library::OutCall<check_range> kCheckRange("check_index");
const library::OutCall<check_count> kCheckCount("check_mask");

}  // namespace

void IndexCheck::record() const {
  if (known == Known::unknown)
    kCheckRange.record_fence(/*can_fail=*/true, index, low, high, static_cast<int64_t>(fault), dim);
}

void check_mask(const Tensor& mask, int64_t repeats, int64_t values) {
  kCheckCount.record_fence(/*can_fail=*/true, mask, repeats, values);
}

}  // namespace ae::engine
