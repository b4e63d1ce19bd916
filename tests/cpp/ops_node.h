// One operator by itself: builds its kernel and runs it with the interpreter.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <vector>

#include "fusion/ir/element.h"
#include "fusion/ops/builder.h"

namespace ae::fusion::testing {

struct NodeOperand {
  DType type;
  bool is_scalar = false;
  std::vector<int64_t> strides;
  std::vector<double> values;  // of the memory that the strides walk over; complex: real, imaginary, real…
};

struct Node {
  Opcode opcode;
  DType common;
  std::vector<int64_t> attributes;
  std::vector<int64_t> sizes;
  uint32_t reduced = 0;
  std::vector<NodeOperand> inputs, outputs;
};

/// Memory for `values` in dtype `type`; integers beyond 2^53 are not needed.
inline std::vector<char> to_memory(DType type, const std::vector<double>& values) {
  std::vector<char> memory(values.size() * size_of(type));
  for (size_t i = 0; i < values.size(); ++i) {
    std::memcpy(memory.data() + i * size_of(type), convert(Element::of(values[i]), DType::kF64, type).bytes,
                size_of(type));
  }
  return memory;
}

inline std::vector<double> from_memory(DType type, const std::vector<char>& memory) {
  std::vector<double> values;
  for (size_t at = 0; at < memory.size(); at += size_of(type)) {
    Element element;
    std::memcpy(element.bytes, memory.data() + at, size_of(type));
    values.push_back(convert(element, type, DType::kF64).get<double>());
  }
  return values;
}

/// A part of an operand's values; of other types than complex, all of them.
inline std::vector<double> part_of(const NodeOperand& operand, Part part) {
  if (!is_complex(operand.type)) return operand.values;
  std::vector<double> values;
  for (size_t i = part == Part::real ? 0 : 1; i < operand.values.size(); i += 2) values.push_back(operand.values[i]);
  return values;
}

/// The inverse: adds a part to the values of an operand.
inline void put_part(const std::vector<double>& values, DType type, Part part, std::vector<double>& all) {
  const size_t step = is_complex(type) ? 2 : 1, first = part == Part::real ? 0 : 1;
  all.resize(values.size() * step);
  for (size_t i = 0; i < values.size(); ++i) all[i * step + first] = values[i];
}

class NodeContext final : public OpContext {
 public:
  explicit NodeContext(const Node& node) : node_(node) {
    space_.rank = static_cast<int>(node.sizes.size());
    space_.reduced = node.reduced;
    std::copy(node.sizes.begin(), node.sizes.end(), space_.sizes);
  }

  /// Builds, verifies and runs; throws what verify says. Gives the outputs' memory as numbers.
  std::vector<std::vector<double>> run() {
    build(*this);
    if (std::string reason = verify(kernel_); !reason.empty()) throw std::logic_error(reason + "\n" + print(kernel_));
    std::vector<InterpreterOperand> operands;
    for (Memory& memory : memory_) operands.push_back({memory.bytes.data(), memory.view});
    interpret(kernel_, space_, operands, scalars_);
    std::vector<std::vector<double>> results(node_.outputs.size());
    for (const Memory& memory : memory_) {
      if (memory.output < 0) continue;
      const DType type = node_.outputs[memory.output].type;
      put_part(from_memory(real_type(type), memory.bytes), type, memory.part, results[memory.output]);
    }
    return results;
  }
  const Kernel& kernel() const { return kernel_; }

  Opcode opcode() const override { return node_.opcode; }
  int inputs() const override { return static_cast<int>(node_.inputs.size()); }
  int outputs() const override { return static_cast<int>(node_.outputs.size()); }
  int64_t attribute(int i) const override {
    return i < static_cast<int>(node_.attributes.size()) ? node_.attributes[i] : 0;
  }
  DType input_type(int i) const override { return node_.inputs[i].type; }
  DType output_type(int i) const override { return node_.outputs[i].type; }
  DType common_type() const override { return node_.common; }
  bool is_reduced() const override { return node_.reduced != 0; }
  Level input_level(int i) const override { return level_of_strides(node_.inputs[i].strides); }
  Level output_level(int i) const override { return level_of_strides(node_.outputs[i].strides); }

  ValueId load_part(int i, Part part) override {
    const NodeOperand& input = node_.inputs[i];
    const DType type = real_type(input.type);
    const std::vector<double> values = part_of(input, part);
    if (input.is_scalar) return constant(type, values[0]);
    return append(
        {Primitive::load, type, type, input_level(i), add_memory(type, to_memory(type, values), input.strides)});
  }
  void store_part(int i, Part part, ValueId value) override {
    const NodeOperand& output = node_.outputs[i];
    const DType type = real_type(output.type);
    const size_t count = part_of(output, part).size();
    const auto operand = add_memory(type, std::vector<char>(count * size_of(type)), output.strides);
    memory_.back().output = i;
    memory_.back().part = part;
    const Level level = output_level(i);
    append({Primitive::store, type, type, level, operand, level == Level::full ? to_full(value) : value});
  }
  ValueId position() override {
    std::vector<int64_t> strides(node_.sizes.size());
    int64_t stride = 1;
    for (size_t d = strides.size(); d-- > 0; stride *= node_.sizes[d]) strides[d] = stride;
    return iota(strides);
  }
  ValueId constant(DType type, double value) override {
    uint64_t word = static_cast<uint64_t>(is_floating(type) ? 0 : static_cast<int64_t>(value));
    if (is_floating(type)) std::memcpy(&word, &value, sizeof word);
    scalars_.push_back(word);
    kernel_.scalars.push_back(type);
    return append({Primitive::scalar, type, type, Level::full, static_cast<int32_t>(scalars_.size()) - 1});
  }
  ValueId emit(Primitive op, DType type, ValueId a, ValueId b, ValueId c) override {
    Level level = is_reduced() ? Level::kept : Level::full;
    for (ValueId value : {a, b, c}) {
      if (value != kNoValue && !is_scalar(value) && level_of(value) == Level::full) level = Level::full;
    }
    if (level == Level::full) {
      for (ValueId* value : {&a, &b, &c}) *value = *value == kNoValue ? kNoValue : to_full(*value);
    }
    if (op == Primitive::cast) return append({op, type_of(a), type, level, -1, a});
    return append({op, type, result_type(op, type), level, -1, a, b, c});
  }
  ValueId reduce(Primitive op, DType type, ValueId a) override {
    return append({op, type, type, Level::kept, -1, to_full(a)});
  }
  DType type_of(ValueId value) const override { return kernel_.instrs[value].out; }
  Level level_of(ValueId value) const override { return kernel_.instrs[value].level; }

 private:
  ValueId index_along(int dim) override {
    std::vector<int64_t> strides(node_.sizes.size());
    strides[dim < 0 ? dim + static_cast<int>(strides.size()) : dim] = 1;
    return iota(strides);
  }
  struct Memory {
    std::vector<char> bytes;
    device::OperandView view;
    int output = -1;
    Part part = Part::real;
  };

  bool is_scalar(ValueId value) const { return kernel_.instrs[value].op == Primitive::scalar; }
  Level level_of_strides(const std::vector<int64_t>& strides) const {
    bool kept = node_.reduced != 0;
    for (size_t d = 0; d < strides.size(); ++d) {
      if (node_.reduced >> d & 1 && node_.sizes[d] > 1 && strides[d] != 0) kept = false;
    }
    return kept ? Level::kept : Level::full;
  }
  ValueId append(const Instr& instr) {
    kernel_.instrs.push_back(instr);
    return static_cast<ValueId>(kernel_.instrs.size()) - 1;
  }
  ValueId to_full(ValueId value) {
    if (is_scalar(value) || level_of(value) == Level::full) return value;
    return append({Primitive::broadcast, type_of(value), type_of(value), Level::full, -1, value});
  }
  ValueId iota(const std::vector<int64_t>& strides) {
    return append(
        {Primitive::iota, DType::kI64, DType::kI64, level_of_strides(strides), add_memory(DType::kI64, {}, strides)});
  }
  int32_t add_memory(DType type, std::vector<char> bytes, const std::vector<int64_t>& strides) {
    Memory memory{std::move(bytes), {}};
    std::copy(strides.begin(), strides.end(), memory.view.strides);
    memory_.push_back(std::move(memory));
    kernel_.operands.push_back(type);
    return static_cast<int32_t>(memory_.size()) - 1;
  }

  const Node& node_;
  device::Space space_;
  Kernel kernel_;
  std::vector<Memory> memory_;
  std::vector<uint64_t> scalars_;
};

}  // namespace ae::fusion::testing
