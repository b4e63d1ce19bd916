// Rare functions of one and two tensors: library nodes, each one call of ATen's CPU kernel on the whole. Operands are
// brought to the common dtype first.
#include <ATen/ops/frexp_cpu_dispatch.h>
#include <ATen/ops/gcd_cpu_dispatch.h>
#include <ATen/ops/igamma_cpu_dispatch.h>
#include <ATen/ops/igammac_cpu_dispatch.h>
#include <ATen/ops/lcm_cpu_dispatch.h>
#include <ATen/ops/nextafter_cpu_dispatch.h>
#include <ATen/ops/polygamma_cpu_dispatch.h>
#include <ATen/ops/special_airy_ai_cpu_dispatch.h>
#include <ATen/ops/special_bessel_j0_cpu_dispatch.h>
#include <ATen/ops/special_bessel_j1_cpu_dispatch.h>
#include <ATen/ops/special_bessel_y0_cpu_dispatch.h>
#include <ATen/ops/special_bessel_y1_cpu_dispatch.h>
#include <ATen/ops/special_chebyshev_polynomial_t_cpu_dispatch.h>
#include <ATen/ops/special_chebyshev_polynomial_u_cpu_dispatch.h>
#include <ATen/ops/special_chebyshev_polynomial_v_cpu_dispatch.h>
#include <ATen/ops/special_chebyshev_polynomial_w_cpu_dispatch.h>
#include <ATen/ops/special_hermite_polynomial_h_cpu_dispatch.h>
#include <ATen/ops/special_hermite_polynomial_he_cpu_dispatch.h>
#include <ATen/ops/special_laguerre_polynomial_l_cpu_dispatch.h>
#include <ATen/ops/special_legendre_polynomial_p_cpu_dispatch.h>
#include <ATen/ops/special_modified_bessel_i0_cpu_dispatch.h>
#include <ATen/ops/special_modified_bessel_i1_cpu_dispatch.h>
#include <ATen/ops/special_modified_bessel_k0_cpu_dispatch.h>
#include <ATen/ops/special_modified_bessel_k1_cpu_dispatch.h>
#include <ATen/ops/special_scaled_modified_bessel_k0_cpu_dispatch.h>
#include <ATen/ops/special_scaled_modified_bessel_k1_cpu_dispatch.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_t_cpu_dispatch.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_u_cpu_dispatch.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_v_cpu_dispatch.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_w_cpu_dispatch.h>
#include <ATen/ops/special_spherical_bessel_j0_cpu_dispatch.h>
#include <ATen/ops/special_zeta_cpu_dispatch.h>

#include <ATen/ExpandUtils.h>
#include <ATen/native/TypeProperties.h>

#include "engine/library/out_call.h"
#include "engine/record/kernel.h"
#include "engine/record/result.h"

// X(name): functions of one tensor, and of two tensors that broadcast; integers become floating.
// clang-format off
#define AE_RARE_UNARY(X)                                                                                         \
  X(special_airy_ai) X(special_bessel_j0) X(special_bessel_j1) X(special_bessel_y0) X(special_bessel_y1)         \
  X(special_modified_bessel_i0) X(special_modified_bessel_i1) X(special_modified_bessel_k0)                      \
  X(special_modified_bessel_k1) X(special_scaled_modified_bessel_k0) X(special_scaled_modified_bessel_k1)        \
  X(special_spherical_bessel_j0)
#define AE_RARE_BINARY(X)                                                                                        \
  X(special_zeta) X(special_chebyshev_polynomial_t) X(special_chebyshev_polynomial_u)                            \
  X(special_chebyshev_polynomial_v) X(special_chebyshev_polynomial_w) X(special_hermite_polynomial_h)            \
  X(special_hermite_polynomial_he) X(special_laguerre_polynomial_l) X(special_legendre_polynomial_p)             \
  X(special_shifted_chebyshev_polynomial_t) X(special_shifted_chebyshev_polynomial_u)                            \
  X(special_shifted_chebyshev_polynomial_v) X(special_shifted_chebyshev_polynomial_w)
// clang-format on

namespace ae::engine {
namespace {

using at::Tensor;
using library::OutCall;

// Other dtypes, where ATen has a kernel for them at all, are left to the fallback.
constexpr uint64_t kWideFloats = type_bit(at::kFloat) | type_bit(at::kDouble);
constexpr Rule kRare{Rule::kFloat, kWideFloats};
constexpr Rule kNeighbour{Rule::kCommon, kWideFloats | type_bit(at::kBFloat16)};
constexpr Rule kInteger{Rule::kCommon, kInts};

/// The operand as a tensor of this dtype on the device.
Tensor converted(const Tensor& tensor, at::ScalarType type) {
  if (is_neuron(tensor) && tensor.scalar_type() == type) return tensor;
  const Tensor result = make_tensor(tensor.sizes(), type);
  if (result.numel() == 0) return result;
  if (is_neuron(tensor))
    record_pointwise(Opcode::copy, tensor.scalar_type(), {Input(tensor)}, result);
  else
    record_pointwise(Opcode::fill, type, {number_input(read_cpu_scalar(tensor), type)}, result);
  return result;
}

/// The dtype in which the operands meet; Undefined where it is not recorded.
at::ScalarType meeting_type(Rule rule, std::initializer_list<const Tensor*> operands) {
  at::native::ResultTypeState state;
  for (const Tensor* operand : operands) {
    if (!is_recordable(operand->scalar_type())) return at::ScalarType::Undefined;
    state = at::native::update_result_type_state(*operand, state);
  }
  at::ScalarType type = at::native::result_type(state);
  if (rule.result == Rule::kFloat && c10::isIntegralType(type, /*includeBool=*/true))
    type = c10::typeMetaToScalarType(c10::get_default_dtype());
  return contains(rule.types, type) ? type : at::ScalarType::Undefined;
}

template <const auto& node, const Rule& rule>
bool unary_node(Call& call, const Tensor& self) {
  const at::ScalarType type = meeting_type(rule, {&self});
  if (!is_neuron(self) || type == at::ScalarType::Undefined) return false;
  const at::DimVector strides = result_strides(self.sizes(), {self}, type);
  if (!prepare_result(call, self.sizes(), type, {&self}, strides, &self)) return false;
  if (self.numel() != 0) node.record(converted(self, type), result_of(call));
  return true;
}

template <const auto& node, const Rule& rule>
bool binary_node(Call& call, const Tensor& self, const Tensor& other) {
  for (const Tensor* operand : {&self, &other})
    if (!is_neuron(*operand) && !is_cpu_scalar(*operand)) throw_devices(*operand);
  const at::ScalarType type = meeting_type(rule, {&self, &other});
  if (type == at::ScalarType::Undefined) return false;
  const at::DimVector shape = at::infer_size_dimvector(self.sizes(), other.sizes());
  if (!prepare_result(call, shape, type, {&self, &other}, result_strides(shape, {self, other}, type), &self))
    return false;
  if (result_of(call).numel() != 0) node.record(converted(self, type), converted(other, type), result_of(call));
  return true;
}

#define AE_NODE(name) const OutCall<&at::cpu::name##_outf> name##_node(#name);
AE_RARE_UNARY(AE_NODE)
AE_RARE_BINARY(AE_NODE)
AE_NODE(igamma)
AE_NODE(igammac)
AE_NODE(nextafter)
AE_NODE(gcd)
AE_NODE(lcm)
AE_NODE(polygamma)
#undef AE_NODE

bool polygamma(Call& call, int64_t order, const Tensor& self) {
  if (order == 0) return call.record(Opcode::digamma, kToFloat, {self});
  if (order == 1) return call.record(Opcode::trigamma, kToFloat, {self});
  const at::ScalarType type = meeting_type(kToFloat, {&self});
  if (!is_neuron(self) || type == at::ScalarType::Undefined || order < 0) return false;
  const at::DimVector strides = result_strides(self.sizes(), {self}, type);
  if (!prepare_result(call, self.sizes(), type, {&self}, strides, &self)) return false;
  if (self.numel() != 0) polygamma_node.record(order, converted(self, type), result_of(call));
  return true;
}

const OutCall<&at::cpu::frexp_outf> kFrexp("frexp");

std::tuple<Tensor&, Tensor&> frexp_out(const Tensor& self, Tensor& mantissa, Tensor& exponent) {
  check_devices({&self, &mantissa, &exponent});
  const at::ScalarType type = self.scalar_type();
  bool plain = contains(kFloats, type) && mantissa.scalar_type() == type && exponent.scalar_type() == at::kInt;
  for (const Tensor* result : {&mantissa, &exponent}) {
    plain = plain && at::has_internal_overlap(*result) == at::MemOverlap::No &&
            !result->storage().is_alias_of(self.storage());
  }
  if (!plain || mantissa.storage().is_alias_of(exponent.storage())) {
    return Fallback<std::tuple<Tensor&, Tensor&>(const Tensor&, Tensor&, Tensor&)>::call("frexp.Tensor_out", self,
                                                                                         mantissa, exponent);
  }
  resize_out(mantissa, self.sizes());
  resize_out(exponent, self.sizes());
  if (self.numel() != 0) kFrexp.record(self, mantissa, exponent);
  return {mantissa, exponent};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
#define AE_REGISTER(name)                                    \
  AE_FUNCTIONAL(m, #name, (unary_node<name##_node, kRare>)); \
  AE_OUT(m, #name ".out", (unary_node<name##_node, kRare>));
  AE_RARE_UNARY(AE_REGISTER)
#undef AE_REGISTER
#define AE_REGISTER(name)                                     \
  AE_FUNCTIONAL(m, #name, (binary_node<name##_node, kRare>)); \
  AE_OUT(m, #name ".out", (binary_node<name##_node, kRare>));
  AE_RARE_BINARY(AE_REGISTER)
#undef AE_REGISTER
  AE_FORMS(m, "igamma", "", ".out", (binary_node<igamma_node, kFloatOnly>));
  AE_FORMS(m, "igammac", "", ".out", (binary_node<igammac_node, kFloatOnly>));
  AE_FORMS(m, "nextafter", "", ".out", (binary_node<nextafter_node, kNeighbour>));
  AE_FORMS(m, "gcd", "", ".out", (binary_node<gcd_node, kInteger>));
  AE_FORMS(m, "lcm", "", ".out", (binary_node<lcm_node, kInteger>));
  m.impl("frexp.Tensor_out", &frexp_out);
  AE_FUNCTIONAL(m, "polygamma", polygamma);
  AE_OUT(m, "polygamma.out", polygamma);
}

}  // namespace
}  // namespace ae::engine
