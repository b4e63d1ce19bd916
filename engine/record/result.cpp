#include "engine/record/result.h"

namespace ae::engine {

bool prepare_result(Call& call, at::IntArrayRef sizes, at::ScalarType dtype,
                    std::initializer_list<const at::Tensor*> inputs, at::IntArrayRef strides, const at::Tensor* self) {
  if (call.is_functional()) {
    call.result = strides.empty() ? make_tensor(sizes, dtype) : make_tensor(sizes, strides, dtype);
    return true;
  }
  const at::Tensor& target = call.target();
  check_devices({&target});
  if (target.scalar_type() != dtype || at::has_internal_overlap(target) != at::MemOverlap::No) return false;
  if (call.is_in_place() && !target.sizes().equals(sizes)) return false;
  for (const at::Tensor* input : inputs)
    if (target.storage().is_alias_of(input->storage()) &&
        !(self == input && target.is_same(*input) && target.sizes().equals(sizes)))
      return false;
  if (!target.sizes().equals(sizes)) resize_out(target, sizes, strides);
  return true;
}

}  // namespace ae::engine
