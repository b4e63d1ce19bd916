// Weight norm with its backward, and renorm: what PyTorch has kernels for, of recorded operators.
#include <tuple>

#include "engine/record/kernel.h"
#include "engine/record/pointwise.h"
#include "engine/record/reduce.h"
#include "engine/record/result.h"

namespace ae::engine {
namespace {

using at::Scalar;
using at::Tensor;
using Pair = std::tuple<Tensor, Tensor>;

/// All dimensions but one.
at::DimVector all_but(int64_t dim, int64_t rank) {
  at::DimVector dims;
  for (int64_t d = 0; d < rank; ++d)
    if (d != dim) dims.push_back(d);
  return dims;
}

bool is_weight(const Tensor& v, const Tensor& g, int64_t dim) {
  check_devices({&v, &g});
  const auto type = v.scalar_type();
  return (type == at::kFloat || type == at::kDouble) && g.scalar_type() == type && v.dim() > 1 && v.numel() > 0 &&
         (dim == 0 || dim == v.dim() - 1) && g.dim() == v.dim() && g.numel() == v.size(dim) && g.size(dim) == g.numel();
}

/// norms: of v without dimension `dim`; w = v * (g / norms).
Pair weight_norm(const Tensor& v, const Tensor& g, int64_t dim) {
  Call norms, ratio, w;
  if (is_weight(v, g, dim) && vector_norm(norms, v, 2, all_but(dim, v.dim()), true, std::nullopt) &&
      div(ratio, g, norms.result) && mul(w, v, ratio.result)) {
    return {w.result, norms.result};
  }
  return Fallback<Pair(const Tensor&, const Tensor&, int64_t)>::call("_weight_norm_interface", v, g, dim);
}

Pair weight_norm_backward(const Tensor& grad, const Tensor& v, const Tensor& g, const Tensor& norms, int64_t dim) {
  Call products, dot, grad_g, slope, along, across, ratio, grad_v;
  const bool fits = is_weight(v, g, dim) && is_neuron(norms) && grad.sizes().equals(v.sizes()) &&
                    grad.scalar_type() == v.scalar_type() && norms.scalar_type() == v.scalar_type();
  if (fits && mul(products, grad, v) && sum(dot, products.result, all_but(dim, v.dim()), true, std::nullopt) &&
      div(grad_g, dot.result, norms) && div(slope, grad_g.result, norms) && mul(along, v, slope.result) &&
      sub(across, grad, along.result, 1) && div(ratio, g, norms) && mul(grad_v, across.result, ratio.result)) {
    return {grad_v.result, grad_g.result};
  }
  using Signature = Pair(const Tensor&, const Tensor&, const Tensor&, const Tensor&, int64_t);
  return Fallback<Signature>::call("_weight_norm_interface_backward", grad, v, g, norms, dim);
}

/// Slices along `dim` whose norm is larger than maxnorm are scaled down to it.
bool renorm(Call& call, const Tensor& self, const Scalar& p, int64_t dim, const Scalar& maxnorm) {
  check_devices({&self});
  const auto type = self.scalar_type();
  const int64_t rank = self.dim();
  if ((type != at::kFloat && type != at::kDouble) || rank < 2 || self.numel() == 0 || dim < -rank || dim >= rank ||
      p.isComplex() || maxnorm.isComplex() || p.toDouble() <= 0 || maxnorm.toDouble() < 0) {
    return false;
  }
  Call norms, more, inverse, larger, scaled, factor;
  const Scalar one(1.0);
  static constexpr Rule kGreater{Rule::kTruth, kFloats};
  return vector_norm(norms, self, p, all_but(dim < 0 ? dim + rank : dim, rank), true, std::nullopt) &&
         add_scalar(more, norms.result, 1e-7, 1) && inverse.record(Opcode::reciprocal, kFloatOnly, {more.result}) &&
         mul_scalar(scaled, inverse.result, maxnorm) &&
         larger.record(Opcode::gt, kGreater, {norms.result, Arg::number(maxnorm)}) &&
         factor.record(Opcode::where, kFloatOnly,
                       {Arg::condition(larger.result), scaled.result, Arg::parameter(one)}) &&
         mul(call, self, factor.result);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_weight_norm_interface", &weight_norm);
  m.impl("_weight_norm_interface_backward", &weight_norm_backward);
  AE_FORMS(m, "renorm", "", ".out", renorm);
}

}  // namespace
}  // namespace ae::engine
