// Operators that move data or make it from positions: copy, fill, arange, linspace, eye, tril, triu. Inputs as in
// opcode.h.
#include "fusion/ops/expression.h"

namespace ae::fusion {
namespace {

/// One conversion from the input's dtype to the output's, whatever the common dtype.
void copy(OpContext& context) {
  const bool negated = (context.attribute(0) & kCopyNegated) != 0;
  context.store(0, converted(raw_input(context, 0), context.output_type(0), negated).id);
}

/// start + i * step, in double for all floating dtypes and in int64 for integers, then rounded once.
void arange(OpContext& context) {
  const DType type = is_floating(context.common_type()) ? DType::kF64 : DType::kI64;
  const Expr position = Expr{&context, context.position()}.as(type);
  const Expr value = raw_input(context, 0).as(type) + raw_input(context, 1).as(type) * position;
  context.store_result(0, value.id);
}

/// From both ends, so that the second half counts down from `end`. Half types round at each step, as on the CPU; whole
/// numbers are cut off.
void linspace(OpContext& context) {
  const DType common = context.common_type(), type = is_floating(common) ? compute_type(common) : DType::kF64;
  const auto stepped = [&](Expr x) { return is_floating(common) ? x.as(common).as(type) : x; };
  const Expr position{&context, context.position()}, steps = raw_input(context, 3).as(DType::kI64);
  const Expr step = raw_input(context, 2).as(type);
  const auto way = [&](Expr count) { return stepped(step * stepped(count.as(type))); };
  const Expr up = raw_input(context, 0).as(type) + way(position);
  const Expr down = raw_input(context, 1).as(type) - way(steps - 1.0 - position);
  context.store_result(0, select(position + position + 1.0 < steps, up, down).id);
}

void eye(OpContext& context) {
  const Expr row{&context, context.index(-2)}, column{&context, context.index(-1)};
  context.store(0, (row == column).as(context.output_type(0)).id);
}

/// Keeps what lies on the given side of a diagonal of the last two dimensions; no arithmetic touches the values.
template <Primitive kept_side>
void triangle(OpContext& context) {
  context.store_result(0, select(triangle_mask(context, kept_side), input(context, 0), 0.0).id);
}

constexpr BuilderEntry kBuilders[] = {
    {Opcode::copy, copy},
    {Opcode::fill, copy},
    {Opcode::arange, arange},
    {Opcode::linspace, linspace},
    {Opcode::eye, eye},
    {Opcode::tril, triangle<Primitive::le>},
    {Opcode::triu, triangle<Primitive::ge>},
};

}  // namespace

std::span<const BuilderEntry> index_builders() { return kBuilders; }

}  // namespace ae::fusion
