#include "fusion/partition/segment_builder.h"

#include <algorithm>
#include <stdexcept>

namespace ae::fusion {

int32_t ConstantPool::position(DType type, double value) {
  const bool floating = is_floating(type);
  const uint64_t word = floating ? scalar_word(value) : scalar_word(static_cast<int64_t>(value));
  auto [it, added] = positions_[floating].try_emplace(word, first_ + static_cast<int32_t>(words_.size()));
  if (added) words_.push_back(word);
  return it->second;
}

SegmentAccess part_of(const SegmentAccess& access, Part part) {
  if (!is_complex(access.dtype)) return access;
  SegmentAccess real = access;
  real.dtype = real_type(access.dtype);
  real.offset = 2 * access.offset + (part == Part::imaginary ? 1 : 0);
  for (int64_t& stride : real.strides) stride *= 2;
  return real;
}

bool same_access(const SegmentAccess& a, const SegmentAccess& b, const Dims& dims) {
  if (a.buffer != b.buffer || a.dtype != b.dtype || a.offset != b.offset) return false;
  for (size_t d = 0; d < dims.size(); ++d)
    if (dims[d].size > 1 && a.strides[d] != b.strides[d]) return false;
  return true;
}

ValueId SegmentBuilder::append(Instr instr) {
  const auto depends = [this](ValueId value) { return value != kNoValue && segment_.from_reduction[value]; };
  const bool from_reduction = is_reduction(instr.op) || depends(instr.a) || depends(instr.b) || depends(instr.c);
  if (from_reduction && instr.level == Level::full) segment_.separable = false;
  segment_.kernel.instrs.push_back(instr);
  segment_.from_reduction.push_back(from_reduction);
  return static_cast<ValueId>(segment_.kernel.instrs.size()) - 1;
}

ValueId SegmentBuilder::scalar(int32_t position, DType type) {
  auto [it, added] = segment_.scalar_values.try_emplace(scalar_key(position, type), kNoValue);
  if (added) {
    segment_.scalars.push_back(position);
    segment_.kernel.scalars.push_back(type);
    it->second =
        append({Primitive::scalar, type, type, Level::full, static_cast<int32_t>(segment_.scalars.size()) - 1});
  }
  return it->second;
}

ValueId SegmentBuilder::load_part(int i, Part part) {
  const AccessView& view = node_.inputs[i];
  if (view.is_scalar)
    return scalar(static_cast<int32_t>(view.scalar) + (part == Part::imaginary ? 1 : 0), real_type(view.dtype));
  const SegmentAccess access = part_of(mapped_.inputs[i], part);
  const auto& own = segment_.writes_of[access.buffer];
  for (auto it = own.rbegin(); it != own.rend(); ++it)
    if (same_access(writes_[*it].access, access, segment_.dims)) return writes_[*it].value;
  for (uint32_t read : segment_.reads_of[access.buffer]) {
    const Read& known = segment_.reads[read];
    if (known.access.level == access.level && same_access(known.access, access, segment_.dims)) return known.value;
  }
  Read read{access, kNoValue, {}};
  for (uint32_t write : current_[access.buffer])
    if (std::find(own.begin(), own.end(), write) == own.end()) read.sources.push_back(write);
  read.value =
      append({Primitive::load, access.dtype, access.dtype, access.level, static_cast<int32_t>(segment_.reads.size())});
  segment_.reads_of[access.buffer].push_back(static_cast<uint32_t>(segment_.reads.size()));
  segment_.reads.push_back(std::move(read));
  return segment_.reads.back().value;
}

void SegmentBuilder::store_part(int i, Part part, ValueId value) {
  SegmentAccess access = part_of(mapped_.outputs[i], part);
  // A reduction over one element: both levels have the same points.
  if (level_of(value) == Level::full && reduced_points(segment_.dims) == 1) access.level = Level::full;
  if (access.level == Level::full) value = to_full(value);
  if (type_of(value) != access.dtype ||
      (access.level == Level::kept && level_of(value) == Level::full && !is_scalar(value)))
    throw std::logic_error(std::string("operator ") + name_of(node_.opcode) +
                           " stores a value of the wrong dtype or level");
  auto& own = segment_.writes_of[access.buffer];
  for (uint32_t earlier : own)
    if (same_access(writes_[earlier].access, access, segment_.dims)) writes_[earlier].superseded = true;
  const auto number = static_cast<uint32_t>(writes_.size());
  const bool kept = access.level == Level::kept;
  writes_.push_back(
      {access, value, (kept ? kept_points(segment_.dims) : points(segment_.dims)) * size_of(access.dtype)});
  own.push_back(number);
  segment_.writes.push_back(number);
}

ValueId SegmentBuilder::iota(const Strides& strides) {
  SegmentAccess access;
  access.dtype = DType::kI64;
  access.strides = strides;
  access.level = is_kept_level(segment_.dims, strides) ? Level::kept : Level::full;
  for (uint32_t read : segment_.reads_of[kScalarBuffer]) {
    const Read& known = segment_.reads[read];
    if (known.access.level == access.level && same_access(known.access, access, segment_.dims)) return known.value;
  }
  const auto index = static_cast<uint32_t>(segment_.reads.size());
  const ValueId value = append({Primitive::iota, DType::kI64, DType::kI64, access.level, static_cast<int32_t>(index)});
  segment_.reads.push_back({access, value, {}});
  segment_.reads_of[kScalarBuffer].push_back(index);
  return value;
}

ValueId SegmentBuilder::position() { return iota(row_major(segment_.dims, mapped_.kept_only)); }

ValueId SegmentBuilder::index_along(int dim) {
  if (dim < 0) dim += node_.rank;
  const NodeSpace& space = mapped_.space;
  Strides strides{};
  for (size_t d = 0; d < space.from.size(); ++d) strides[d] = space.from[d] == dim ? 1 : 0;
  return iota(map_strides(space.dims, strides, segment_.dims, mapped_.kept_only));
}

ValueId SegmentBuilder::to_full(ValueId value) {
  if (is_scalar(value) || level_of(value) == Level::full) return value;
  const DType type = type_of(value);
  return append({Primitive::broadcast, type, type, Level::full, -1, value});
}

ValueId SegmentBuilder::emit(Primitive op, DType type, ValueId a, ValueId b, ValueId c) {
  bool any_full = false, any_kept = false;
  for (ValueId value : {a, b, c}) {
    if (value == kNoValue || is_scalar(value)) continue;
    (level_of(value) == Level::full ? any_full : any_kept) = true;
  }
  // What is computed from scalars alone is the same everywhere; the kept level serves both.
  const bool reduced =
      std::any_of(segment_.dims.begin(), segment_.dims.end(), [](const Dim& dim) { return dim.reduced; });
  const Level level = any_full || (!any_kept && !reduced) ? Level::full : Level::kept;
  if (level == Level::full)
    for (ValueId* value : {&a, &b, &c})
      if (*value != kNoValue) *value = to_full(*value);
  Instr instr{op, type, type, level, -1, a, b, c};
  if (op == Primitive::cast) instr.type = type_of(a);
  if (is_comparison(op) || op == Primitive::logical_not || op == Primitive::is_nan || op == Primitive::is_inf)
    instr.out = DType::kBool;
  return append(instr);
}

ValueId SegmentBuilder::reduce(Primitive op, DType type, ValueId a) {
  // A number in the place of a tensor (a filled one, say) becomes one here: reductions read registers.
  if (is_scalar(a)) a = append({Primitive::cast, type, type, Level::full, -1, a});
  return append({op, type, type, Level::kept, -1, to_full(a)});
}

}  // namespace ae::fusion
