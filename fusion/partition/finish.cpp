#include "fusion/partition/finish.h"

#include <algorithm>

namespace ae::fusion {

namespace {

/// Values that lead to needed stores.
std::vector<bool> live_values(const SegmentState& segment, const std::vector<Write>& writes) {
  std::vector<bool> live(segment.kernel.instrs.size(), false);
  for (uint32_t write : segment.writes)
    if (writes[write].needed) live[writes[write].value] = true;
  for (size_t i = live.size(); i-- > 0;) {
    if (!live[i]) continue;
    const Instr& instr = segment.kernel.instrs[i];
    for (ValueId value : {instr.a, instr.b, instr.c})
      if (value != kNoValue) live[value] = true;
  }
  return live;
}

bool find_needed_in(const SegmentState& segment, std::vector<Write>& writes) {
  const std::vector<bool> live = live_values(segment, writes);
  for (const Read& read : segment.reads)
    if (live[read.value])
      for (uint32_t source : read.sources) writes[source].needed = true;
  return std::find(live.begin(), live.end(), true) != live.end();
}

/// Order in which dimensions are walked. Without a reduction it is free: the first store's memory order.
std::vector<int> dimension_order(const Dims& dims, const std::vector<const SegmentAccess*>& operands,
                                 size_t stores_from) {
  std::vector<int> order(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) order[d] = static_cast<int>(d);
  const bool reduced = std::any_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.reduced; });
  if (!reduced && stores_from < operands.size()) {
    const Strides& strides = operands[stores_from]->strides;
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return strides[a] > strides[b]; });
  }
  return order;
}

/// Fills space and views: dimensions in order, neighbours merged where every operand allows it.
void lay_out(const Dims& dims, const std::vector<const SegmentAccess*>& operands, size_t stores_from,
             device::Segment& out) {
  out.operands.resize(operands.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    const bool iota = operands[i]->buffer == kScalarBuffer;
    out.operands[i].slot = iota ? -1 : static_cast<int32_t>(operands[i]->buffer);
    out.operands[i].view.offset = operands[i]->offset;
  }
  device::Space& space = out.space;
  for (int d : dimension_order(dims, operands, stores_from)) {
    const int last = space.rank - 1;
    bool merge = last >= 0 && ((space.reduced >> last & 1) != 0) == dims[d].reduced;
    for (size_t i = 0; merge && i < operands.size(); ++i)
      merge = out.operands[i].view.strides[last] == operands[i]->strides[d] * dims[d].size;
    const int target = merge ? last : space.rank++;
    space.sizes[target] = merge ? space.sizes[target] * dims[d].size : dims[d].size;
    if (dims[d].reduced) space.reduced |= 1u << target;
    for (size_t i = 0; i < operands.size(); ++i) out.operands[i].view.strides[target] = operands[i]->strides[d];
  }
}

}  // namespace

void find_needed(Partitioner& partitioner, const std::vector<BufferNeed>& needs) {
  std::vector<Write>& writes = partitioner.writes;
  for (size_t b = 0; b < needs.size(); ++b)
    if (needs[b].visible)
      for (uint32_t write : partitioner.current[b]) writes[write].needed = true;
  for (auto launch = partitioner.launches.rbegin(); launch != partitioner.launches.rend(); ++launch) {
    if (!launch->library) {
      std::erase_if(launch->segments, [&](const SegmentState& segment) { return !find_needed_in(segment, writes); });
      continue;
    }
    const bool live = launch->fence || std::any_of(launch->writes.begin(), launch->writes.end(),
                                                   [&](uint32_t write) { return writes[write].needed; });
    if (!live) {
      launch->writes.clear();
      launch->sources.clear();
      continue;
    }
    for (const auto& sources : launch->sources)
      for (uint32_t source : sources) writes[source].needed = true;
  }
}

FinishedSegment finish_segment(const SegmentState& segment, const std::vector<Write>& writes) {
  const std::vector<bool> live = live_values(segment, writes);
  const std::vector<Instr>& instrs = segment.kernel.instrs;
  FinishedSegment out;
  std::vector<const SegmentAccess*> operands;
  std::vector<int32_t> operand_of(segment.reads.size(), -1), scalar_of(segment.scalars.size(), -1);
  std::unordered_map<uint32_t, ValueId> last_load;
  for (size_t r = 0; r < segment.reads.size(); ++r) {
    const Read& read = segment.reads[r];
    if (!live[read.value]) continue;
    operand_of[r] = static_cast<int32_t>(operands.size());
    operands.push_back(&read.access);
    out.kernel.operands.push_back(read.access.dtype);
    ValueId& last = last_load.try_emplace(read.access.buffer, read.value).first->second;
    last = std::max(last, read.value);
  }
  const size_t stores_from = operands.size();
  std::multimap<ValueId, Instr> stores;  // by the value after which they stand
  for (uint32_t number : segment.writes) {
    const Write& write = writes[number];
    if (!write.needed) continue;
    const auto load = last_load.find(write.access.buffer);
    const ValueId after = load == last_load.end() ? write.value : std::max(write.value, load->second);
    Instr store{Primitive::store,
                write.access.dtype,
                write.access.dtype,
                write.access.level,
                static_cast<int32_t>(operands.size()),
                write.value};
    stores.emplace(after, store);
    operands.push_back(&write.access);
    out.kernel.operands.push_back(write.access.dtype);
  }
  std::vector<ValueId> renamed(instrs.size(), kNoValue);
  const auto rename = [&](ValueId value) { return value == kNoValue ? kNoValue : renamed[value]; };
  for (size_t i = 0; i < instrs.size(); ++i) {
    if (!live[i]) continue;
    Instr instr = instrs[i];
    instr.a = rename(instr.a), instr.b = rename(instr.b), instr.c = rename(instr.c);
    if (instr.op == Primitive::load || instr.op == Primitive::iota) instr.index = operand_of[instr.index];
    if (instr.op == Primitive::scalar) {
      int32_t& scalar = scalar_of[instr.index];
      if (scalar < 0) {
        scalar = static_cast<int32_t>(out.segment.scalars.size());
        out.segment.scalars.push_back(segment.scalars[instr.index]);
        out.kernel.scalars.push_back(instr.type);
      }
      instr.index = scalar;
    }
    renamed[i] = static_cast<ValueId>(out.kernel.instrs.size());
    out.kernel.instrs.push_back(instr);
    for (auto [store, end] = stores.equal_range(static_cast<ValueId>(i)); store != end; ++store) {
      Instr stored = store->second;
      stored.a = renamed[stored.a];
      out.kernel.instrs.push_back(stored);
    }
  }
  lay_out(segment.dims, operands, stores_from, out.segment);
  return out;
}

}  // namespace ae::fusion
