// Checks of operands of pointwise operators that raise on some values: fences.
//
//   check_divisor        in(divisor, integral) -> nothing: no zero in it
//   check_probabilities  in(input) -> nothing: all of it within [0, 1]
#include <ATen/Dispatch.h>

#include "engine/library/call.h"
#include "engine/library/operators.h"
#include "engine/record/record.h"

namespace ae::engine::library {
namespace {

/// True if `test` holds for each element. The whole is looked at without branches in between.
template <class T, class Test>
bool all(const at::Tensor& tensor, Test test) {
  const at::Tensor values = tensor.contiguous();
  const T* value = values.const_data_ptr<T>();
  bool good = true;
  for (int64_t i = 0; i < values.numel(); ++i) good &= test(value[i]);
  return good;
}

std::shared_ptr<const device::LibraryCall> make_check_divisor(const fusion::NodeView& node) {
  return make_call({whole(node)}, [](std::span<at::Tensor> t, Scalars) {
    AT_DISPATCH_INTEGRAL_TYPES_AND(at::kBool, t[0].scalar_type(), "check_divisor", [&] {
      TORCH_CHECK(all<scalar_t>(t[0], [](scalar_t x) { return x != 0; }), "ZeroDivisionError");
    });
  });
}

std::shared_ptr<const device::LibraryCall> make_check_probabilities(const fusion::NodeView& node) {
  return make_call({whole(node)}, [](std::span<at::Tensor> t, Scalars) {
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, t[0].scalar_type(), "check_probabilities", [&] {
      TORCH_CHECK(all<scalar_t>(t[0], [](scalar_t x) { return x >= scalar_t(0) && x <= scalar_t(1); }),
                  "all elements of input should be between 0 and 1");
    });
  });
}

}  // namespace

const int kCheckDivisor = register_library("check_divisor", make_check_divisor);
const int kCheckProbabilities = register_library("check_probabilities", make_check_probabilities);

}  // namespace ae::engine::library
