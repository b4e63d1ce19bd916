#include "fusion/partition/segment.h"

#include <algorithm>

#include "fusion/partition/segment_builder.h"

namespace ae::fusion {

namespace {

/// Appends `from`'s instructions, reads and scalars to `into`; what both load or take is there once. Returns the new
/// names of the values.
std::vector<ValueId> append_values(SegmentState& into, const SegmentState& from) {
  std::vector<ValueId> renamed(from.kernel.instrs.size(), kNoValue);
  const auto rename = [&](ValueId value) { return value == kNoValue ? kNoValue : renamed[value]; };
  for (size_t i = 0; i < renamed.size(); ++i) {
    Instr instr = from.kernel.instrs[i];
    if (instr.op == Primitive::load || instr.op == Primitive::iota) {
      const Read& read = from.reads[instr.index];
      auto& known = into.reads_of[read.access.buffer];
      const auto same = std::find_if(known.begin(), known.end(), [&](uint32_t other) {
        const SegmentAccess& access = into.reads[other].access;
        return access.level == read.access.level && same_access(access, read.access, into.dims);
      });
      if (same != known.end()) {
        renamed[i] = into.reads[*same].value;
        continue;
      }
      instr.index = static_cast<int32_t>(into.reads.size());
      known.push_back(static_cast<uint32_t>(into.reads.size()));
      into.reads.push_back({read.access, static_cast<ValueId>(into.kernel.instrs.size()), read.sources});
    } else if (instr.op == Primitive::scalar) {
      const int32_t position = from.scalars[instr.index];
      const auto [known, added] = into.scalar_values.try_emplace(scalar_key(position, instr.type), kNoValue);
      if (!added) {
        renamed[i] = known->second;
        continue;
      }
      known->second = static_cast<ValueId>(into.kernel.instrs.size());
      instr.index = static_cast<int32_t>(into.scalars.size());
      into.scalars.push_back(position);
      into.kernel.scalars.push_back(instr.type);
    }
    instr.a = rename(instr.a), instr.b = rename(instr.b), instr.c = rename(instr.c);
    renamed[i] = static_cast<ValueId>(into.kernel.instrs.size());
    into.kernel.instrs.push_back(instr);
    into.from_reduction.push_back(from.from_reduction[i]);
  }
  return renamed;
}

}  // namespace

void redimension(SegmentState& segment, const Dims& dims, std::vector<Write>& writes) {
  if (dims == segment.dims) return;
  for (Read& read : segment.reads) read.access.strides = map_strides(segment.dims, read.access.strides, dims, false);
  for (uint32_t write : segment.writes)
    writes[write].access.strides = map_strides(segment.dims, writes[write].access.strides, dims, false);
  segment.dims = dims;
}

void merge(SegmentState& into, SegmentState& from, const Dims& dims, std::vector<Write>& writes) {
  redimension(into, dims, writes);
  redimension(from, dims, writes);
  const std::vector<ValueId> renamed = append_values(into, from);
  for (uint32_t write : from.writes) writes[write].value = renamed[writes[write].value];
  into.writes.insert(into.writes.end(), from.writes.begin(), from.writes.end());
  std::sort(into.writes.begin(), into.writes.end());  // program order
  // No key is in both: a buffer that one segment of a launch writes is used by no other one of that launch.
  into.writes_of.merge(from.writes_of);
  into.nodes.insert(into.nodes.end(), from.nodes.begin(), from.nodes.end());
  into.separable &= from.separable;
  from = {};
  from.closed = true;
}

}  // namespace ae::fusion
