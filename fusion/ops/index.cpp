// Operators that move data or make it from positions: copy, fill, arange, tril, triu. Inputs as in opcode.h.
#include "fusion/ops/expression.h"

namespace ae::fusion {
namespace {

/// One conversion from the input's dtype to the output's, whatever the common dtype; also how complex values are moved.
void copy(OpContext& context) { context.store(0, context.cast(context.load(0), context.output_type(0))); }

/// start + i * step, in double for all floating dtypes and in int64 for integers, then rounded once.
void arange(OpContext& context) {
  const DType type = is_floating(context.common_type()) ? DType::kF64 : DType::kI64;
  const Expr position = Expr{&context, context.position()}.as(type);
  const Expr value = raw_input(context, 0).as(type) + raw_input(context, 1).as(type) * position;
  context.store_result(0, value.id);
}

/// Keeps what lies on the given side of a diagonal of the last two dimensions; no arithmetic touches the values.
template <Primitive kept_side>
void triangle(OpContext& context) {
  const Expr row{&context, context.index(-2)}, column{&context, context.index(-1)};
  const Expr keep = apply(kept_side, column - row, row.constant(static_cast<double>(context.attribute(0))));
  context.store_result(0, select(keep, input(context, 0), 0.0).id);
}

constexpr BuilderEntry kBuilders[] = {
    {Opcode::copy, copy},
    {Opcode::fill, copy},
    {Opcode::arange, arange},
    {Opcode::tril, triangle<Primitive::le>},
    {Opcode::triu, triangle<Primitive::ge>},
};

}  // namespace

std::span<const BuilderEntry> index_builders() { return kBuilders; }

}  // namespace ae::fusion
