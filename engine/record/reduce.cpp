// Reductions over any dimensions.
#include "engine/record/reduce.h"

#include <cmath>

#include "engine/record/kernel.h"
#include "engine/record/result.h"

namespace ae::engine {
namespace {

constexpr int64_t kMaxRank = 32;  // bits of a node's mask of reduced dimensions

bool reduce_planned(Call& call, Opcode opcode, at::ScalarType common, at::ScalarType type, const at::Tensor& self,
                    const Reduction& reduction, c10::ArrayRef<Input> more_inputs, c10::ArrayRef<int64_t> attributes) {
  if (!prepare_result(call, reduction.result, type, {&self})) return false;
  c10::SmallVector<Input, 4> inputs{self};
  inputs.append(more_inputs.begin(), more_inputs.end());
  record_reduce(opcode, common, reduction.sizes, reduction.mask, inputs, result_of(call), attributes);
  return true;
}

at::ScalarType sum_type(const at::Tensor& self, std::optional<at::ScalarType> dtype) {
  if (dtype) return *dtype;
  return c10::isIntegralType(self.scalar_type(), /*includeBool=*/true) ? at::kLong : self.scalar_type();
}

/// Sums of complex numbers are complex.
bool is_summable(const at::Tensor& self, at::ScalarType type) {
  return is_plain(self) || (is_plain_or_complex(self) && c10::isComplexType(type));
}

bool sum_all(Call& call, const at::Tensor& self, std::optional<at::ScalarType> dtype) {
  return sum(call, self, std::nullopt, false, dtype);
}

bool mean_all(Call& call, const at::Tensor& self, std::optional<at::ScalarType> dtype) {
  return mean(call, self, std::nullopt, false, dtype);
}

bool prod(Call& call, const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim,
          std::optional<at::ScalarType> dtype) {
  const at::ScalarType type = sum_type(self, dtype);
  if (!is_plain(self) || !contains(kFloats | kInts, type)) return false;
  return reduce(call, Opcode::prod, type, type, self, dims, keepdim);
}
bool prod_dim(Call& call, const at::Tensor& self, int64_t dim, bool keepdim, std::optional<at::ScalarType> dtype) {
  return prod(call, self, at::IntArrayRef(dim), keepdim, dtype);
}
bool prod_all(Call& call, const at::Tensor& self, std::optional<at::ScalarType> dtype) {
  return prod(call, self, std::nullopt, false, dtype);
}

template <Opcode opcode>
bool extreme(Call& call, const at::Tensor& self, at::IntArrayRef dims, bool keepdim) {
  return is_plain(self) && reduce(call, opcode, self.scalar_type(), self.scalar_type(), self, dims, keepdim);
}
template <Opcode opcode>
bool extreme_all(Call& call, const at::Tensor& self) {
  return extreme<opcode>(call, self, {}, false);
}

/// any and all give bool, but uint8 for uint8.
template <Opcode opcode>
bool truth(Call& call, const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim) {
  if (!is_plain_or_complex(self) || (dims && dims->empty())) return false;
  const at::ScalarType type = self.scalar_type() == at::kByte ? at::kByte : at::kBool;
  if (!call.is_functional() && call.target().scalar_type() != type) return false;
  return reduce(call, opcode, self.scalar_type(), type, self, dims, keepdim);
}
template <Opcode opcode>
bool truth_dim(Call& call, const at::Tensor& self, int64_t dim, bool keepdim) {
  return truth<opcode>(call, self, at::IntArrayRef(dim), keepdim);
}
template <Opcode opcode>
bool truth_all(Call& call, const at::Tensor& self) {
  return truth<opcode>(call, self, std::nullopt, false);
}

/// Elements minus correction, what a variance is divided by; negative correction is PyTorch's business.
double divisor_of(const Reduction& reduction, const std::optional<at::Scalar>& correction) {
  return std::max(0.0, static_cast<double>(reduction.count) - (correction ? correction->toDouble() : 1.0));
}

bool is_variance(const at::Tensor& self, const std::optional<at::Scalar>& correction) {
  return contains(kFloats, self.scalar_type()) && !(correction && correction->isComplex());
}

template <bool deviation>
bool var(Call& call, const at::Tensor& self, at::OptionalIntArrayRef dims, const std::optional<at::Scalar>& correction,
         bool keepdim) {
  Reduction reduction;
  if (!is_variance(self, correction) || !plan_reduction(self, dims, keepdim, reduction)) return false;
  const double divisor = divisor_of(reduction, correction);
  if (divisor == 0) return false;  // PyTorch warns
  const at::ScalarType type = self.scalar_type(), scalar_type = compute_scalar_type(type);
  const Input count(static_cast<double>(reduction.count), scalar_type), divided_by(divisor, scalar_type);
  return reduce_planned(call, Opcode::var, type, type, self, reduction, {count, divided_by}, {deviation});
}

using TensorPair = std::tuple<at::Tensor, at::Tensor>;

template <bool deviation>
TensorPair var_mean(const at::Tensor& self, at::OptionalIntArrayRef dims, const std::optional<at::Scalar>& correction,
                    bool keepdim) {
  Reduction reduction;
  const bool planned = is_variance(self, correction) && plan_reduction(self, dims, keepdim, reduction);
  const double divisor = planned ? divisor_of(reduction, correction) : 0;
  if (divisor == 0) {
    using Signature = TensorPair(const at::Tensor&, at::OptionalIntArrayRef, const std::optional<at::Scalar>&, bool);
    return Fallback<Signature>::call(deviation ? "std_mean.correction" : "var_mean.correction", self, dims, correction,
                                     keepdim);
  }
  const at::ScalarType type = self.scalar_type(), scalar_type = compute_scalar_type(type);
  const Input inputs[] = {self, Input(static_cast<double>(reduction.count), scalar_type), Input(divisor, scalar_type)};
  const at::Tensor outputs[] = {make_tensor(reduction.result, type), make_tensor(reduction.result, type)};
  record_reduce(Opcode::var, type, reduction.sizes, reduction.mask, inputs, outputs, {deviation});
  return {outputs[0], outputs[1]};
}

/// Attribute of norm.
int64_t norm_form(double ord) {
  if (ord == 2) return 0;
  if (ord == 1) return 1;
  if (ord == 0) return 4;
  if (std::isinf(ord)) return ord > 0 ? 2 : 3;
  return 5;
}

bool norm_dim(Call& call, const at::Tensor& self, const std::optional<at::Scalar>& p, at::IntArrayRef dims,
              bool keepdim) {
  return vector_norm(call, self, p.value_or(2), dims, keepdim, std::nullopt);
}
bool norm_dtype(Call& call, const at::Tensor& self, const std::optional<at::Scalar>& p, at::IntArrayRef dims,
                bool keepdim, at::ScalarType dtype) {
  return vector_norm(call, self, p.value_or(2), dims, keepdim, dtype);
}

bool nansum(Call& call, const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim,
            std::optional<at::ScalarType> dtype) {
  const at::ScalarType type = sum_type(self, dtype);
  if (c10::isIntegralType(self.scalar_type(), /*includeBool=*/true)) return sum(call, self, dims, keepdim, dtype);
  return is_plain(self) && contains(kFloats, type) && reduce(call, Opcode::nansum, type, type, self, dims, keepdim);
}

bool count_nonzero(Call& call, const at::Tensor& self, at::IntArrayRef dims) {
  const at::ScalarType common = self.is_complex() ? self.scalar_type() : at::kLong;
  return is_plain_or_complex(self) && reduce(call, Opcode::count_nonzero, common, at::kLong, self, dims, false);
}

bool trace(Call& call, const at::Tensor& self) {
  if (self.dim() != 2 || !is_neuron(self) || self.numel() == 0 || !contains(kField.types, self.scalar_type())) {
    return false;
  }
  const int64_t length = std::min(self.size(0), self.size(1)), step = self.stride(0) + self.stride(1);
  const at::Tensor diagonal = make_tensor(self.storage(), {length}, {step}, self.storage_offset(), self.scalar_type());
  return sum(call, diagonal, std::nullopt, false, std::nullopt);
}

bool logsumexp(Call& call, const at::Tensor& self, at::IntArrayRef dims, bool keepdim) {
  if (!contains(kFloats, self.scalar_type())) return false;
  return reduce(call, Opcode::logsumexp, self.scalar_type(), self.scalar_type(), self, dims, keepdim);
}

}  // namespace

bool plan_reduction(const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim, Reduction& reduction) {
  const int64_t rank = self.dim();
  if (rank > kMaxRank || self.numel() == 0) return false;
  const bool all = !dims || dims->empty();
  if (!all) {
    const int64_t limit = std::max<int64_t>(rank, 1);
    for (int64_t dim : *dims) {
      if (dim < -limit || dim >= limit) return false;
      const uint32_t bit = uint32_t{1} << (dim < 0 ? dim + limit : dim);
      if (reduction.mask & bit) return false;
      reduction.mask |= bit;
    }
  } else {
    reduction.mask = static_cast<uint32_t>((uint64_t{1} << std::max<int64_t>(rank, 1)) - 1);
  }
  if (rank == 0) {
    reduction.sizes = {1};
    return true;
  }
  const auto sizes = self.sizes();
  reduction.sizes.assign(sizes.begin(), sizes.end());
  for (int64_t d = 0; d < rank; ++d) {
    if (!(reduction.mask >> d & 1)) {
      reduction.result.push_back(sizes[d]);
      continue;
    }
    reduction.count *= sizes[d];
    if (keepdim) reduction.result.push_back(1);
  }
  return true;
}

bool reduce(Call& call, Opcode opcode, at::ScalarType common, at::ScalarType type, const at::Tensor& self,
            at::OptionalIntArrayRef dims, bool keepdim, c10::ArrayRef<Input> more_inputs,
            c10::ArrayRef<int64_t> attributes) {
  Reduction reduction;
  return plan_reduction(self, dims, keepdim, reduction) &&
         reduce_planned(call, opcode, common, type, self, reduction, more_inputs, attributes);
}

bool sum(Call& call, const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim,
         std::optional<at::ScalarType> dtype) {
  const at::ScalarType type = sum_type(self, dtype);
  if (!is_summable(self, type) || !contains(kField.types, type)) return false;
  return reduce(call, Opcode::sum, type, type, self, dims, keepdim);
}

bool mean(Call& call, const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim,
          std::optional<at::ScalarType> dtype) {
  const at::ScalarType type = dtype.value_or(self.scalar_type());
  Reduction reduction;
  if (!is_summable(self, type) || !contains(kFloatField.types, type) || !plan_reduction(self, dims, keepdim, reduction))
    return false;
  const Input count(static_cast<double>(reduction.count), compute_scalar_type(type));
  return reduce_planned(call, Opcode::mean, type, type, self, reduction, count, {});
}

bool vector_norm(Call& call, const at::Tensor& self, const at::Scalar& ord, at::OptionalIntArrayRef dims, bool keepdim,
                 std::optional<at::ScalarType> dtype) {
  const at::ScalarType type = dtype.value_or(self.scalar_type());
  const uint64_t types = self.is_complex() ? kComplexes : kFloats;
  if (!contains(types, self.scalar_type()) || !contains(types, type) || !c10::canCast(self.scalar_type(), type) ||
      c10::promoteTypes(self.scalar_type(), type) != type || ord.isComplex()) {
    return false;
  }
  const double p = ord.toDouble();
  const int64_t form = norm_form(p);
  const Input exponent(p, compute_scalar_type(type));
  return reduce(call, Opcode::norm, type, c10::toRealValueType(type), self, dims, keepdim,
                form == 5 ? c10::ArrayRef<Input>(exponent) : c10::ArrayRef<Input>(), {form});
}

bool max_of_all(Call& call, const at::Tensor& self) { return extreme_all<Opcode::amax>(call, self); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  AE_FUNCTIONAL(m, "sum", sum_all);
  AE_FUNCTIONAL(m, "sum.dim_IntList", sum);
  AE_OUT(m, "sum.IntList_out", sum);
  AE_FUNCTIONAL(m, "mean", mean_all);
  AE_FUNCTIONAL(m, "mean.dim", mean);
  AE_OUT(m, "mean.out", mean);
  AE_FUNCTIONAL(m, "prod", prod_all);
  AE_FUNCTIONAL(m, "prod.dim_int", prod_dim);
  AE_OUT(m, "prod.int_out", prod_dim);

  AE_FUNCTIONAL(m, "amax", extreme<Opcode::amax>);
  AE_OUT(m, "amax.out", extreme<Opcode::amax>);
  AE_FUNCTIONAL(m, "amin", extreme<Opcode::amin>);
  AE_OUT(m, "amin.out", extreme<Opcode::amin>);
  AE_FUNCTIONAL(m, "max", extreme_all<Opcode::amax>);
  AE_OUT(m, "max.unary_out", extreme_all<Opcode::amax>);
  AE_FUNCTIONAL(m, "min", extreme_all<Opcode::amin>);
  AE_OUT(m, "min.unary_out", extreme_all<Opcode::amin>);

  AE_FUNCTIONAL(m, "any", truth_all<Opcode::any>);
  AE_OUT(m, "any.all_out", truth_all<Opcode::any>);
  AE_FUNCTIONAL(m, "any.dim", truth_dim<Opcode::any>);
  AE_OUT(m, "any.out", truth_dim<Opcode::any>);
  AE_FUNCTIONAL(m, "any.dims", truth<Opcode::any>);
  AE_OUT(m, "any.dims_out", truth<Opcode::any>);
  AE_FUNCTIONAL(m, "all", truth_all<Opcode::all>);
  AE_OUT(m, "all.all_out", truth_all<Opcode::all>);
  AE_FUNCTIONAL(m, "all.dim", truth_dim<Opcode::all>);
  AE_OUT(m, "all.out", truth_dim<Opcode::all>);
  AE_FUNCTIONAL(m, "all.dims", truth<Opcode::all>);
  AE_OUT(m, "all.dims_out", truth<Opcode::all>);

  AE_FUNCTIONAL(m, "var.correction", var<false>);
  AE_OUT(m, "var.correction_out", var<false>);
  AE_FUNCTIONAL(m, "std.correction", var<true>);
  AE_OUT(m, "std.correction_out", var<true>);
  m.impl("var_mean.correction", &var_mean<false>);
  m.impl("std_mean.correction", &var_mean<true>);

  AE_FUNCTIONAL(m, "linalg_vector_norm", vector_norm);
  AE_OUT(m, "linalg_vector_norm.out", vector_norm);
  AE_FUNCTIONAL(m, "norm.ScalarOpt_dim", norm_dim);
  AE_OUT(m, "norm.out", norm_dim);
  AE_FUNCTIONAL(m, "norm.ScalarOpt_dim_dtype", norm_dtype);
  AE_OUT(m, "norm.dtype_out", norm_dtype);
  AE_FUNCTIONAL(m, "nansum", nansum);
  AE_OUT(m, "nansum.out", nansum);
  AE_FUNCTIONAL(m, "count_nonzero.dim_IntList", count_nonzero);
  AE_FUNCTIONAL(m, "trace", trace);
  AE_FUNCTIONAL(m, "logsumexp", logsumexp);
  AE_OUT(m, "logsumexp.out", logsumexp);
}

}  // namespace ae::engine
