// Comparisons and logical operators: bool results of operands that meet in their common dtype.
#include "engine/record/kernel.h"
#include "engine/record/pointwise.h"

namespace ae::engine {
namespace {

template <Opcode opcode, const Rule& rule>
bool compare_scalar(Call& call, const at::Tensor& self, const at::Scalar& other) {
  return fits(other, self.scalar_type()) && call.record(opcode, rule, {self, Arg::number(other)});
}

#define AE_COMPARISON(name, rule)                                             \
  AE_FORMS(m, #name, ".Tensor", ".Tensor_out", (binary<Opcode::name, rule>)); \
  AE_FORMS(m, #name, ".Scalar", ".Scalar_out", (compare_scalar<Opcode::name, rule>))
#define AE_LOGICAL(name) AE_FORMS(m, #name, "", ".out", (binary<Opcode::name, kEquality>))

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  AE_COMPARISON(eq, kEquality);
  AE_COMPARISON(ne, kEquality);
  AE_COMPARISON(lt, kCompare);
  AE_COMPARISON(le, kCompare);
  AE_COMPARISON(gt, kCompare);
  AE_COMPARISON(ge, kCompare);
  AE_LOGICAL(logical_and);
  AE_LOGICAL(logical_or);
  AE_LOGICAL(logical_xor);
}

#undef AE_COMPARISON
#undef AE_LOGICAL

}  // namespace
}  // namespace ae::engine
