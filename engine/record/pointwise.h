// Descriptions of pointwise operators (see kernel.h) that other files use too: foreach operators are loops over them.
#pragma once

#include "engine/record/shape.h"

namespace ae::engine {

bool add(Call& call, const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha);
bool sub(Call& call, const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha);
bool mul(Call& call, const at::Tensor& self, const at::Tensor& other);
bool div(Call& call, const at::Tensor& self, const at::Tensor& other);
bool add_scalar(Call& call, const at::Tensor& self, const at::Scalar& other, const at::Scalar& alpha);
bool sub_scalar(Call& call, const at::Tensor& self, const at::Scalar& other, const at::Scalar& alpha);
bool mul_scalar(Call& call, const at::Tensor& self, const at::Scalar& other);
bool div_scalar(Call& call, const at::Tensor& self, const at::Scalar& other);
bool pow(Call& call, const at::Tensor& self, const at::Tensor& exponent);
bool pow_scalar(Call& call, const at::Tensor& self, const at::Scalar& exponent);
bool scalar_pow(Call& call, const at::Scalar& self, const at::Tensor& exponent);
bool maximum(Call& call, const at::Tensor& self, const at::Tensor& other);
bool minimum(Call& call, const at::Tensor& self, const at::Tensor& other);
bool clamp_min(Call& call, const at::Tensor& self, const at::Scalar& low);
bool clamp_max(Call& call, const at::Tensor& self, const at::Scalar& high);
bool lerp(Call& call, const at::Tensor& self, const at::Tensor& end, const at::Tensor& weight);
bool lerp_scalar(Call& call, const at::Tensor& self, const at::Tensor& end, const at::Scalar& weight);
bool addcmul(Call& call, const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, const at::Scalar& value);
bool addcdiv(Call& call, const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, const at::Scalar& value);

/// A pointwise operator of one or two tensors that needs no more than its rule.
template <Opcode opcode, const Rule& rule>
bool unary(Call& call, const at::Tensor& self) {
  return call.record(opcode, rule, {self});
}
template <Opcode opcode, const Rule& rule>
bool binary(Call& call, const at::Tensor& self, const at::Tensor& other) {
  return call.record(opcode, rule, {self, other});
}

}  // namespace ae::engine
