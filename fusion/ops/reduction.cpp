// Reductions; inputs and attributes as in opcode.h. The common dtype is that in which PyTorch accumulates (int64 for
// sums of integers); half types accumulate in fp32. Counts, divisors and exponents are parameters.
#include "fusion/ops/expression.h"

namespace ae::fusion {
namespace {

template <Primitive op>
void plain(OpContext& context) {
  context.store_result(0, reduce(op, input(context, 0)).id);
}

/// Extremes of bool are "any" and "all".
template <Primitive op, Primitive of_bool>
void extreme(OpContext& context) {
  const Expr a = input(context, 0);
  context.store_result(0, reduce(a.type() == DType::kBool ? of_bool : op, a).id);
}

/// Gives bool, or uint8 for uint8.
template <Primitive op>
void truth(OpContext& context) {
  const Expr result = reduce(op, raw_input(context, 0).as(DType::kBool));
  context.store(0, result.as(context.output_type(0)).id);
}

void mean(OpContext& context) { context.store_result(0, (reduce_sum(input(context, 0)) / parameter(context, 1)).id); }

/// Two passes: the mean, then the squares of what differs from it.
void var(OpContext& context) {
  const Expr a = input(context, 0);
  const Expr mean = reduce_sum(a) / parameter(context, 1);
  const Expr centred = a - mean;
  const Expr variance = reduce_sum(centred * centred) / parameter(context, 2);
  context.store_result(0, (context.attribute(0) == 1 ? sqrt(variance) : variance).id);
  if (context.outputs() > 1) context.store_result(1, mean.id);
}

void norm(OpContext& context) {
  const Expr a = input(context, 0);
  const auto result = [&] {
    switch (context.attribute(0)) {
      case 0: return sqrt(reduce_sum(a * a));
      case 1: return reduce_sum(abs(a));
      case 2: return reduce_max(abs(a));
      case 3: return reduce(Primitive::reduce_min, abs(a));
      case 4: return reduce_sum((a != 0.0).as(a.type()));
      default: {
        const Expr p = parameter(context, 1);
        return pow(reduce_sum(pow(abs(a), p)), reciprocal(p));
      }
    }
  }();
  context.store_result(0, result.id);
}

void nansum(OpContext& context) {
  const Expr a = input(context, 0);
  context.store_result(0, reduce_sum(select(is_nan(a), 0.0, a)).id);
}

void count_nonzero(OpContext& context) {
  context.store_result(0, reduce_sum(raw_input(context, 0).as(DType::kBool).as(DType::kI64)).id);
}

/// The extreme is the reduction's own result, so that it is equal to an element, or is NaN as the first NaN is.
void first_index(OpContext& context) {
  constexpr double kNone = 4611686018427387904.0;  // 2^62: beyond every index
  const Expr a = input(context, 0), extreme = input(context, 1);
  Expr hit = a == extreme;
  if (is_floating(a.type())) hit = hit | is_nan(a);
  const int64_t dim = context.attribute(0);
  const Expr index{&context, dim == device::kMaxRank ? context.position() : context.index(static_cast<int>(dim))};
  context.store(0, reduce(Primitive::reduce_min, select(hit, index, kNone)).id);
}

constexpr BuilderEntry kBuilders[] = {
    {Opcode::sum, plain<Primitive::reduce_sum>},
    {Opcode::prod, plain<Primitive::reduce_prod>},
    {Opcode::amax, extreme<Primitive::reduce_max, Primitive::reduce_any>},
    {Opcode::amin, extreme<Primitive::reduce_min, Primitive::reduce_all>},
    {Opcode::any, truth<Primitive::reduce_any>},
    {Opcode::all, truth<Primitive::reduce_all>},
    {Opcode::mean, mean},
    {Opcode::var, var},
    {Opcode::norm, norm},
    {Opcode::nansum, nansum},
    {Opcode::count_nonzero, count_nonzero},
    {Opcode::first_index, first_index},
};

}  // namespace

std::span<const BuilderEntry> reduction_builders() { return kBuilders; }

}  // namespace ae::fusion
