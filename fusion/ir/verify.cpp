#include "fusion/ir/kernel.h"
#include "fusion/ir/text.h"

namespace ae::fusion {
namespace {

bool is_half(DType type) { return type == DType::kF16 || type == DType::kBF16; }

/// Checks one instruction of a kernel whose earlier instructions are well formed; throws the reason as a string.
class InstrChecker {
 public:
  InstrChecker(const Kernel& kernel, size_t position)
      : kernel_(kernel), instr_(kernel.instrs[position]), position_(static_cast<ValueId>(position)) {}

  std::string check() const {
    if (static_cast<int>(instr_.op) >= kPrimitiveCount) return "unknown primitive";
    for (auto rule : {&InstrChecker::inputs_exist, &InstrChecker::index_exists, &InstrChecker::types_fit,
                      &InstrChecker::levels_fit}) {
      if (std::string reason = (this->*rule)(); !reason.empty()) return reason;
    }
    return {};
  }

 private:
  const Instr& value(ValueId id) const { return kernel_.instrs[id]; }

  std::string inputs_exist() const {
    const ValueId inputs[] = {instr_.a, instr_.b, instr_.c};
    const int arity = arity_of(instr_.op);
    for (int i = 0; i < 3; ++i) {
      if (i >= arity) {
        if (inputs[i] != kNoValue) return "more inputs than the primitive takes";
        continue;
      }
      if (inputs[i] == kNoValue) return "fewer inputs than the primitive takes";
      if (inputs[i] < 0 || inputs[i] >= position_) return "an input is not an earlier value";
      if (value(inputs[i]).op == Primitive::store) return "an input is a store, which has no value";
    }
    return {};
  }

  std::string index_exists() const {
    switch (instr_.op) {
      case Primitive::load:
      case Primitive::store:
      case Primitive::iota:
        if (instr_.index < 0 || instr_.index >= static_cast<int64_t>(kernel_.operands.size())) return "no such operand";
        if (kernel_.operands[instr_.index] != instr_.type) return "dtype differs from the operand's";
        return {};
      case Primitive::scalar:
        if (instr_.index < 0 || instr_.index >= static_cast<int64_t>(kernel_.scalars.size())) return "no such scalar";
        if (kernel_.scalars[instr_.index] != instr_.type) return "dtype differs from the scalar's";
        return {};
      default: return instr_.index == -1 ? std::string() : "an index where the primitive takes none";
    }
  }

  std::string types_fit() const {
    if (!is_defined(instr_.op, instr_.type)) return "the primitive is not defined on this dtype";
    if (instr_.op == Primitive::cast) {
      if (!is_defined(instr_.op, instr_.out)) return "no conversion to this dtype";
    } else if (instr_.out != result_type(instr_.op, instr_.type)) {
      return "wrong result dtype";
    }
    const ValueId inputs[] = {instr_.a, instr_.b, instr_.c};
    for (int i = 0; i < arity_of(instr_.op); ++i) {
      const DType wanted = instr_.op == Primitive::select && i == 0 ? DType::kBool : instr_.type;
      if (value(inputs[i]).out != wanted) return "an input has another dtype";
    }
    return {};
  }

  std::string levels_fit() const {
    if (instr_.op == Primitive::scalar) {
      return instr_.level == Level::full ? std::string() : "scalars say full";
    }
    if (instr_.op == Primitive::broadcast && instr_.level != Level::full) return "broadcast gives full level";
    if (is_reduction(instr_.op) && instr_.level != Level::kept) return "reductions give kept level";
    Level wanted = instr_.level;
    if (instr_.op == Primitive::broadcast) wanted = Level::kept;
    if (is_reduction(instr_.op)) wanted = Level::full;
    for (ValueId id : {instr_.a, instr_.b, instr_.c}) {
      if (id == kNoValue || value(id).op == Primitive::scalar) continue;
      if (value(id).level != wanted) return "an input has the wrong level";
    }
    return {};
  }

  const Kernel& kernel_;
  const Instr& instr_;
  ValueId position_;
};

}  // namespace

bool is_defined(Primitive op, DType type) {
  using P = Primitive;
  if (op == P::load || op == P::store || op == P::broadcast) return true;
  if (is_complex(type)) return false;
  if (op == P::cast || op == P::scalar) return true;
  if (is_half(type)) return false;
  const bool boolean = type == DType::kBool, floating = is_floating(type);
  switch (op) {
    case P::iota:
    case P::random_bits: return type == DType::kI64;
    case P::logical_not:
    case P::add:
    case P::mul:
    case P::select: return true;
    case P::reduce_any:
    case P::reduce_all: return boolean;
    case P::bitwise_not:
    case P::bitwise_and:
    case P::bitwise_or:
    case P::bitwise_xor: return !floating;
    case P::shift_left:
    case P::shift_right: return !floating && !boolean;
    case P::is_nan:
    case P::is_inf:
    case P::div:
    case P::atan2:
    case P::hypot:
    case P::copysign: return floating;
    default:
      if (is_comparison(op)) return true;
      if (op >= P::sqrt && op <= P::sigmoid) return floating;
      return !boolean;
  }
}

std::string verify(const Kernel& kernel) {
  std::vector<bool> is_memory(kernel.operands.size()), is_iota(kernel.operands.size());
  for (size_t i = 0; i < kernel.instrs.size(); ++i) {
    std::string reason = InstrChecker(kernel, i).check();
    const Instr& instr = kernel.instrs[i];
    if (reason.empty() && instr.index >= 0 && instr.op != Primitive::scalar) {
      (instr.op == Primitive::iota ? is_iota : is_memory)[instr.index] = true;
      if (is_iota[instr.index] && is_memory[instr.index])
        reason = "an iota operand, which has no memory, is also memory";
    }
    if (!reason.empty()) return "instruction " + std::to_string(i) + ": " + reason;
  }
  return {};
}

}  // namespace ae::fusion
