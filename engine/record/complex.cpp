// Complex tensors made of two real ones: complex and polar.
#include <ATen/ExpandUtils.h>
#include <ATen/native/TypeProperties.h>
#include <ATen/ops/view_as_real.h>

#include "engine/record/kernel.h"
#include "engine/record/result.h"

namespace ae::engine {
namespace {

using at::Tensor;

/// Gets the target ready for parts that are computed from `a` and `b`; false where PyTorch raises, or where the target
/// shares memory with them, whose parts could be overwritten before they are read.
bool prepare_parts(const Call& call, const Tensor& a, const Tensor& b) {
  for (const Tensor* part : {&a, &b})
    if (!is_neuron(*part)) return false;
  const Tensor& target = call.target();
  const at::ScalarType type = a.scalar_type();
  if ((type != at::kFloat && type != at::kDouble) || b.scalar_type() != type || !is_neuron(target) ||
      target.scalar_type() != c10::toComplexType(type) || !at::are_expandable(a.sizes(), b.sizes())) {
    return false;
  }
  if (target.is_alias_of(a) || target.is_alias_of(b)) return false;
  at::assert_no_internal_overlap(target);
  const at::DimVector shape = at::infer_size_dimvector(a.sizes(), b.sizes());
  if (!target.sizes().equals(shape)) resize_out(target, shape, result_strides(shape, {a, b}, type));
  return true;
}

void store_parts(const Tensor& target, const Tensor& re, const Tensor& im) {
  if (target.numel() == 0) return;
  const Tensor pairs = at::view_as_real(target);
  record_pointwise(Opcode::copy, re.scalar_type(), Input(re), pairs.select(-1, 0));
  record_pointwise(Opcode::copy, im.scalar_type(), Input(im), pairs.select(-1, 1));
}

bool complex_of(Call& call, const Tensor& re, const Tensor& im) {
  if (!prepare_parts(call, re, im)) return false;
  store_parts(call.target(), re, im);
  return true;
}

bool polar(Call& call, const Tensor& size, const Tensor& angle) {
  if (!prepare_parts(call, size, angle)) return false;
  Call cosine, sine, re, im;
  const bool recorded = cosine.record(Opcode::cos, kFloatOnly, {angle}) &&
                        sine.record(Opcode::sin, kFloatOnly, {angle}) &&
                        re.record(Opcode::mul, kFloatOnly, {size, cosine.result}) &&
                        im.record(Opcode::mul, kFloatOnly, {size, sine.result});
  if (recorded) store_parts(call.target(), re.result, im.result);
  return recorded;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  AE_OUT(m, "complex.out", complex_of);
  AE_OUT(m, "polar.out", polar);
}

}  // namespace
}  // namespace ae::engine
