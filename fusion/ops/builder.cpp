#include "fusion/ops/builder.h"

#include <array>
#include <stdexcept>
#include <string>

#include "fusion/ops/expression.h"

namespace ae::fusion {
namespace {

constexpr size_t kOpcodes = static_cast<size_t>(Opcode::library) + 1;

using Family = std::span<const BuilderEntry> (*)();
using Table = std::array<Builder, kOpcodes>;

Table make_table(std::initializer_list<Family> families) {
  Table table{};
  for (const Family family : families) {
    for (const BuilderEntry& entry : family()) table[static_cast<size_t>(entry.opcode)] = entry.builder;
  }
  return table;
}

const Table& real_table() {
  static const Table table =
      make_table({unary_builders, binary_builders, activation_builders, hard_activation_builders, special_builders,
                  pointwise_loss_builders, ternary_builders, index_builders, random_builders, optimizer_builders,
                  reduction_builders, softmax_builders, norm_builders, recurrent_builders, loss_builders});
  return table;
}

const Table& complex_table() {
  static const Table table = make_table({complex_builders, complex_function_builders});
  return table;
}

/// Conversions to real numbers have a complex input only.
bool has_complex_operand(const OpContext& context) {
  if (is_complex(context.common_type())) return true;
  for (int i = 0; i < context.inputs(); ++i)
    if (is_complex(context.input_type(i))) return true;
  return false;
}

}  // namespace

ValueId OpContext::cast(ValueId value, DType type) {
  return type_of(value) == type ? value : emit(Primitive::cast, type, value);
}

ValueId OpContext::index(int dim) {
  if (kind_of(opcode()) == OpKind::pointwise)
    throw std::logic_error(std::string("operator ") + name_of(opcode()) +
                           " reads its index along a dimension, so its kind in fusion/ops/opcode.h is indexed");
  return index_along(dim);
}

ValueId OpContext::load_compute(int i) {
  const DType common = common_type();
  return cast(cast(load(i), common), compute_type(common));
}

void OpContext::store_result(int i, ValueId value) { store(i, cast(cast(value, common_type()), output_type(i))); }

void build(OpContext& context) {
  const Table& table = has_complex_operand(context) ? complex_table() : real_table();
  const Builder builder = table[static_cast<size_t>(context.opcode())];
  if (!builder)
    throw std::logic_error(std::string("no builder for operator ") + name_of(context.opcode()) + " on " +
                           name_of(context.common_type()));
  builder(context);
}

}  // namespace ae::fusion
