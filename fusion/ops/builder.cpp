#include "fusion/ops/builder.h"

#include <array>
#include <stdexcept>
#include <string>

#include "fusion/ops/expression.h"

namespace ae::fusion {
namespace {

constexpr size_t kOpcodes = static_cast<size_t>(Opcode::library) + 1;

std::array<Builder, kOpcodes> make_table() {
  std::array<Builder, kOpcodes> table{};
  for (auto family : {unary_builders, binary_builders, activation_builders, hard_activation_builders, special_builders,
                      pointwise_loss_builders, ternary_builders, index_builders, random_builders, optimizer_builders,
                      reduction_builders, softmax_builders, norm_builders, recurrent_builders, loss_builders}) {
    for (const BuilderEntry& entry : family()) table[static_cast<size_t>(entry.opcode)] = entry.builder;
  }
  return table;
}

}  // namespace

ValueId OpContext::cast(ValueId value, DType type) {
  return type_of(value) == type ? value : emit(Primitive::cast, type, value);
}

ValueId OpContext::load_compute(int i) {
  const DType common = common_type();
  return cast(cast(load(i), common), compute_type(common));
}

void OpContext::store_result(int i, ValueId value) { store(i, cast(cast(value, common_type()), output_type(i))); }

void build(OpContext& context) {
  static const std::array<Builder, kOpcodes> table = make_table();
  const Builder builder = table[static_cast<size_t>(context.opcode())];
  if (!builder) throw std::logic_error(std::string("no builder for operator ") + name_of(context.opcode()));
  builder(context);
}

}  // namespace ae::fusion
