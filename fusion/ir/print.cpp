#include "fusion/ir/kernel.h"
#include "fusion/ir/text.h"

namespace ae::fusion {
namespace {

std::string list_of(const std::vector<DType>& types) {
  std::string text = "(";
  for (size_t i = 0; i < types.size(); ++i) {
    if (i > 0) text += ", ";
    text += short_name(types[i]);
  }
  return text + ")";
}

std::string print(const Instr& instr, size_t position) {
  std::string text;
  if (instr.op != Primitive::store) text += "%" + std::to_string(position) + " = ";
  text += std::string(name_of(instr.op)) + "." + short_name(instr.type);
  if (instr.out != instr.type) text += std::string("->") + short_name(instr.out);
  if (instr.op == Primitive::scalar) return text + " $" + std::to_string(instr.index);
  text += std::string(" ") + short_name(instr.level);
  const char* separator = " ";
  if (instr.index >= 0) {
    text += " @" + std::to_string(instr.index);
    separator = ", ";
  }
  for (ValueId id : {instr.a, instr.b, instr.c}) {
    if (id == kNoValue) continue;
    text += separator + ("%" + std::to_string(id));
    separator = ", ";
  }
  return text;
}

}  // namespace

std::string print(const Kernel& kernel) {
  std::string text = "kernel " + list_of(kernel.operands) + " scalars " + list_of(kernel.scalars) + " {\n";
  for (size_t i = 0; i < kernel.instrs.size(); ++i) text += "  " + print(kernel.instrs[i], i) + "\n";
  return text + "}\n";
}

}  // namespace ae::fusion
