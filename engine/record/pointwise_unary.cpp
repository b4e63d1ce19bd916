// Functions of one tensor.
#include <cmath>

#include "engine/record/kernel.h"
#include "engine/record/pointwise.h"

namespace ae::engine {
namespace {

bool round_decimals(Call& call, const at::Tensor& self, int64_t decimals) {
  const at::Scalar power(std::pow(10.0, static_cast<double>(std::abs(decimals))));
  return call.record(Opcode::round_decimals, kFloatOnly, {self, Arg::parameter(power)}, {decimals < 0 ? 1 : 0});
}

bool angle(Call& call, const at::Tensor& self) {
  return call.record(Opcode::angle, self.is_complex() ? kMagnitude : kToFloat, {self});
}

/// PyTorch calls it for complex numbers only; other ones are their own conjugates.
bool conj_physical(Call& call, const at::Tensor& self) {
  return self.is_complex() && call.record(Opcode::copy, kFloatField, {self}, {fusion::kCopyConjugated});
}

#define AE_UNARY(name, rule) AE_FORMS(m, #name, "", ".out", (unary<Opcode::name, rule>))

#define AE_SPECIAL(name, rule)                                     \
  AE_FUNCTIONAL(m, "special_" #name, (unary<Opcode::name, rule>)); \
  AE_OUT(m, "special_" #name ".out", (unary<Opcode::name, rule>))

// Functions that PyTorch's CPU does not have for half types.
constexpr Rule kToWideFloat{Rule::kFloat, type_bit(at::kFloat) | type_bit(at::kDouble)};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  AE_UNARY(neg, kField);
  AE_UNARY(abs, kMagnitude);
  AE_UNARY(sign, kAnyType);
  AE_FORMS(m, "sgn", "", ".out", (unary<Opcode::sign, kAnyValue>));
  AE_UNARY(floor, kArithmetic);
  AE_UNARY(ceil, kArithmetic);
  AE_UNARY(trunc, kArithmetic);
  AE_UNARY(round, kArithmetic);
  AE_UNARY(frac, kFloatOnly);
  AE_UNARY(bitwise_not, kWhole);
  AE_UNARY(logical_not, kEquality);
  AE_FUNCTIONAL(m, "isnan", (unary<Opcode::isnan, kEquality>));
  AE_FUNCTIONAL(m, "isinf", (unary<Opcode::isinf, kEquality>));
  AE_FUNCTIONAL(m, "signbit", (unary<Opcode::signbit, kCompare>));
  AE_OUT(m, "signbit.out", (unary<Opcode::signbit, kCompare>));
  AE_FUNCTIONAL(m, "isposinf", (unary<Opcode::isposinf, kCompare>));
  AE_OUT(m, "isposinf.out", (unary<Opcode::isposinf, kCompare>));
  AE_FUNCTIONAL(m, "isneginf", (unary<Opcode::isneginf, kCompare>));
  AE_OUT(m, "isneginf.out", (unary<Opcode::isneginf, kCompare>));

  AE_UNARY(sqrt, kToFloatField);
  AE_UNARY(rsqrt, kToFloatField);
  AE_UNARY(reciprocal, kToFloatField);
  AE_UNARY(exp, kToFloatField);
  AE_UNARY(exp2, kToFloat);
  AE_UNARY(expm1, kToFloat);
  AE_UNARY(log, kToFloatField);
  AE_UNARY(log2, kToFloatField);
  AE_UNARY(log10, kToFloatField);
  AE_UNARY(log1p, kToFloat);
  AE_UNARY(sin, kToFloatField);
  AE_UNARY(cos, kToFloatField);
  AE_UNARY(tan, kToFloatField);
  AE_UNARY(asin, kToFloat);
  AE_UNARY(acos, kToFloat);
  AE_UNARY(atan, kToFloat);
  AE_UNARY(sinh, kToFloatField);
  AE_UNARY(cosh, kToFloatField);
  AE_UNARY(tanh, kToFloatField);
  AE_UNARY(erf, kToFloat);
  AE_UNARY(erfc, kToFloat);
  AE_UNARY(sigmoid, kToFloatField);
  AE_UNARY(sinc, kToFloat);
  AE_UNARY(asinh, kToFloat);
  AE_UNARY(acosh, kToFloat);
  AE_UNARY(atanh, kToFloat);
  AE_UNARY(erfinv, kToFloat);
  AE_UNARY(lgamma, kToFloat);
  AE_UNARY(digamma, kToFloat);
  AE_UNARY(i0, kToFloat);
  AE_SPECIAL(i0e, kToFloat);
  AE_SPECIAL(i1, kToFloat);
  AE_SPECIAL(i1e, kToFloat);
  AE_SPECIAL(entr, kToFloat);
  AE_SPECIAL(erfcx, kToWideFloat);
  AE_SPECIAL(ndtri, kToWideFloat);
  AE_SPECIAL(log_ndtr, kToWideFloat);
  AE_FUNCTIONAL(m, "angle", angle);
  AE_OUT(m, "angle.out", angle);
  AE_OUT(m, "conj_physical.out", conj_physical);
  AE_FORMS(m, "round", ".decimals", ".decimals_out", round_decimals);
}

#undef AE_UNARY
#undef AE_SPECIAL

}  // namespace
}  // namespace ae::engine
