// Adds one operator to a segment: the builder functions of fusion/ops write into the segment's kernel through this.
#pragma once

#include <vector>

#include "fusion/ops/builder.h"
#include "fusion/partition/segment.h"

namespace ae::fusion {

/// Constants of the whole plan: they are passed behind the trace's scalars.
class ConstantPool {
 public:
  explicit ConstantPool(int32_t first) : first_(first) {}
  /// Position of the constant in the program's scalars.
  int32_t position(DType type, double value);
  const std::vector<uint64_t>& words() const { return words_; }

 private:
  int32_t first_;
  std::vector<uint64_t> words_;
  std::unordered_map<uint64_t, int32_t> positions_[2];  // integers, floats
};

/// A node's operands, seen over the dimensions of the segment that it joins.
struct MappedNode {
  std::vector<SegmentAccess> inputs, outputs;  // scalars: buffer == kScalarBuffer; complex ones: see part_of
  NodeSpace space;
  bool kept_only = false;  // a pointwise operator over the segment's kept dimensions
};

class SegmentBuilder final : public OpContext {
 public:
  /// `current` gives, by buffer, the writes that a load of it sees.
  SegmentBuilder(SegmentState& segment, const NodeView& node, const MappedNode& mapped, std::vector<Write>& writes,
                 const std::vector<std::vector<uint32_t>>& current, ConstantPool& constants)
      : segment_(segment), node_(node), mapped_(mapped), writes_(writes), current_(current), constants_(constants) {}

  Opcode opcode() const override { return node_.opcode; }
  int inputs() const override { return static_cast<int>(node_.inputs.size()); }
  int outputs() const override { return static_cast<int>(node_.outputs.size()); }
  int64_t attribute(int i) const override {
    return i < static_cast<int>(node_.attributes.size()) ? node_.attributes[i] : 0;
  }
  DType input_type(int i) const override { return node_.inputs[i].dtype; }
  DType output_type(int i) const override { return node_.outputs[i].dtype; }
  DType common_type() const override { return node_.common; }
  bool is_reduced() const override { return mapped_.space.reduces; }
  Level input_level(int i) const override { return mapped_.inputs[i].level; }
  Level output_level(int i) const override { return mapped_.outputs[i].level; }
  ValueId load_part(int i, Part part) override;
  void store_part(int i, Part part, ValueId value) override;
  ValueId position() override;
  ValueId constant(DType type, double value) override { return scalar(constants_.position(type, value), type); }
  ValueId emit(Primitive op, DType type, ValueId a, ValueId b, ValueId c) override;
  ValueId reduce(Primitive op, DType type, ValueId a) override;
  DType type_of(ValueId value) const override { return segment_.kernel.instrs[value].out; }
  Level level_of(ValueId value) const override { return segment_.kernel.instrs[value].level; }

 private:
  ValueId index_along(int dim) override;
  ValueId append(Instr instr);
  ValueId scalar(int32_t position, DType type);
  ValueId iota(const Strides& strides);
  ValueId to_full(ValueId value);
  bool is_scalar(ValueId value) const { return segment_.kernel.instrs[value].op == Primitive::scalar; }

  SegmentState& segment_;
  const NodeView& node_;
  const MappedNode& mapped_;
  std::vector<Write>& writes_;
  const std::vector<std::vector<uint32_t>>& current_;
  ConstantPool& constants_;
};

/// Key of `SegmentState::scalar_values`.
constexpr int32_t scalar_key(int32_t position, DType type) { return position * 32 + static_cast<int32_t>(type); }

/// A part of a complex access: every other real number. Any other access is its own real part.
SegmentAccess part_of(const SegmentAccess& access, Part part);

/// Same elements of the same buffer.
bool same_access(const SegmentAccess& a, const SegmentAccess& b, const Dims& dims);

}  // namespace ae::fusion
