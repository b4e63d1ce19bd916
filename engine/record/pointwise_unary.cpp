// Functions of one tensor.
#include "engine/record/kernel.h"
#include "engine/record/pointwise.h"

namespace ae::engine {
namespace {

#define AE_UNARY(name, rule) AE_FORMS(m, #name, "", ".out", (unary<Opcode::name, rule>))

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  AE_UNARY(neg, kArithmetic);
  AE_UNARY(abs, kArithmetic);
  AE_UNARY(sign, kAnyType);
  AE_FORMS(m, "sgn", "", ".out", (unary<Opcode::sign, kAnyType>));
  AE_UNARY(floor, kArithmetic);
  AE_UNARY(ceil, kArithmetic);
  AE_UNARY(trunc, kArithmetic);
  AE_UNARY(round, kArithmetic);
  AE_UNARY(frac, kFloatOnly);
  AE_UNARY(bitwise_not, kWhole);
  AE_UNARY(logical_not, kCompare);
  AE_FUNCTIONAL(m, "isnan", (unary<Opcode::isnan, kCompare>));
  AE_FUNCTIONAL(m, "isinf", (unary<Opcode::isinf, kCompare>));

  AE_UNARY(sqrt, kToFloat);
  AE_UNARY(rsqrt, kToFloat);
  AE_UNARY(reciprocal, kToFloat);
  AE_UNARY(exp, kToFloat);
  AE_UNARY(exp2, kToFloat);
  AE_UNARY(expm1, kToFloat);
  AE_UNARY(log, kToFloat);
  AE_UNARY(log2, kToFloat);
  AE_UNARY(log10, kToFloat);
  AE_UNARY(log1p, kToFloat);
  AE_UNARY(sin, kToFloat);
  AE_UNARY(cos, kToFloat);
  AE_UNARY(tan, kToFloat);
  AE_UNARY(asin, kToFloat);
  AE_UNARY(acos, kToFloat);
  AE_UNARY(atan, kToFloat);
  AE_UNARY(sinh, kToFloat);
  AE_UNARY(cosh, kToFloat);
  AE_UNARY(tanh, kToFloat);
  AE_UNARY(erf, kToFloat);
  AE_UNARY(erfc, kToFloat);
  AE_UNARY(sigmoid, kToFloat);
}

#undef AE_UNARY

}  // namespace
}  // namespace ae::engine
