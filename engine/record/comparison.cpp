// Comparisons and logical operators: bool results of operands that meet in their common dtype.
#include "engine/record/kernel.h"
#include "engine/record/pointwise.h"

namespace ae::engine {
namespace {

template <Opcode opcode>
bool compare_scalar(Call& call, const at::Tensor& self, const at::Scalar& other) {
  return fits(other, self.scalar_type()) && call.record(opcode, kCompare, {self, Arg::number(other)});
}

#define AE_COMPARISON(name)                                                       \
  AE_FORMS(m, #name, ".Tensor", ".Tensor_out", (binary<Opcode::name, kCompare>)); \
  AE_FORMS(m, #name, ".Scalar", ".Scalar_out", compare_scalar<Opcode::name>)
#define AE_LOGICAL(name) AE_FORMS(m, #name, "", ".out", (binary<Opcode::name, kCompare>))

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  AE_COMPARISON(eq);
  AE_COMPARISON(ne);
  AE_COMPARISON(lt);
  AE_COMPARISON(le);
  AE_COMPARISON(gt);
  AE_COMPARISON(ge);
  AE_LOGICAL(logical_and);
  AE_LOGICAL(logical_or);
  AE_LOGICAL(logical_xor);
}

#undef AE_COMPARISON
#undef AE_LOGICAL

}  // namespace
}  // namespace ae::engine
