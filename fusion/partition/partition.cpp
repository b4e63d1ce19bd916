#include "fusion/partition/partition.h"

#include <algorithm>

#include "fusion/partition/finish.h"
#include "fusion/partition/sink.h"

namespace ae::fusion {

namespace {

std::string launch_name(const Partitioner& partitioner, const std::vector<uint32_t>& nodes) {
  std::string name;
  size_t left = nodes.size();
  for (uint32_t node : nodes) {
    if (name.size() > 100) return name + " +" + std::to_string(left);
    if (!name.empty()) name += ' ';
    name += name_of(partitioner.nodes[node].opcode);
    --left;
  }
  return name;
}

/// Turns a partition into the device's program and the plan's tables.
class PlanWriter {
 public:
  PlanWriter(Partitioner& partitioner, const std::vector<BufferNeed>& needs, KernelCache& kernels,
             const LibraryResolver& library)
      : partitioner_(partitioner), needs_(needs), kernels_(kernels), library_(library), first_use_(needs.size(), -1) {}

  void write(Plan& plan, device::Device& device) {
    plan.uses.resize(needs_.size());
    for (const LaunchState& launch : partitioner_.launches) {
      if (launch.library && launch.writes.empty() && !launch.fence) continue;
      if (!launch.library && launch.segments.empty()) continue;
      launch.library ? write_library(launch, plan) : write_fused(launch, plan);
    }
    note_memory(plan, device.capabilities());
    for (const Write& write : partitioner_.writes)
      if (!write.needed) plan.bytes_not_written += write.bytes;
    if (spec_.launches.empty()) return;
    spec_.slots = static_cast<int32_t>(needs_.size());
    for (const BufferNeed& need : needs_) spec_.slot_bytes.push_back(need.nbytes);
    plan.program = device.compile(std::move(spec_));
  }

 private:
  void use(Plan& plan, int32_t slot, bool writes) {
    const auto launch = static_cast<int32_t>(spec_.launches.size());
    if (first_use_[slot] < 0) first_use_[slot] = launch;
    plan.uses[slot].last_use = launch;
    if (!writes) return;
    plan.uses[slot].last_write = launch;
    if (plan.uses[slot].first_write < 0) plan.uses[slot].first_write = launch;
  }

  void write_fused(const LaunchState& launch, Plan& plan) {
    device::LaunchSpec spec;
    Plan::LaunchInfo info;
    for (const SegmentState& segment : launch.segments) {
      FinishedSegment finished = finish_segment(segment, partitioner_.writes);
      finished.segment.executable = kernels_.get(finished.kernel).executable;
      for (const Instr& instr : finished.kernel.instrs)
        if (instr.op == Primitive::load || instr.op == Primitive::store)
          use(plan, finished.segment.operands[instr.index].slot, instr.op == Primitive::store);
      info.nodes.insert(info.nodes.end(), segment.nodes.begin(), segment.nodes.end());
      spec.segments.push_back(std::move(finished.segment));
    }
    std::sort(info.nodes.begin(), info.nodes.end());
    info.name = launch_name(partitioner_, info.nodes);
    info.segments = spec.segments.size();
    info.why_not_more = text_of(launch.opened_because);
    plan.launches.push_back(std::move(info));
    spec_.launches.push_back(std::move(spec));
  }

  void write_library(const LaunchState& launch, Plan& plan) {
    const NodeView& node = partitioner_.nodes[launch.node];
    device::LaunchSpec spec;
    spec.library = library_(node);
    spec.library_scalars = static_cast<int32_t>(node.first_scalar);
    for (const AccessView& input : node.inputs) {
      spec.library_slots.push_back(static_cast<int32_t>(input.buffer));
      use(plan, static_cast<int32_t>(input.buffer), false);
    }
    spec.library_writes_from = static_cast<int32_t>(spec.library_slots.size());
    for (const AccessView& output : node.outputs) {
      spec.library_slots.push_back(static_cast<int32_t>(output.buffer));
      use(plan, static_cast<int32_t>(output.buffer), true);
    }
    plan.can_fail |= launch.fence;
    plan.launches.push_back({"library", {launch.node}, text_of(Mismatch::library), 0, node.attributes[0]});
    spec_.launches.push_back(std::move(spec));
  }

  void note_memory(Plan& plan, const device::Capabilities& device) {
    for (size_t b = 0; b < needs_.size(); ++b) {
      Plan::BufferUse& buffer = plan.uses[b];
      if (first_use_[b] < 0) continue;
      const auto slot = static_cast<int32_t>(b);
      buffer.made = !needs_[b].has_block;
      buffer.kept = buffer.made && needs_[b].visible;
      if (buffer.made) spec_.launches[first_use_[b]].allocate.push_back(slot);
      // Where launches make new blocks, one that nobody will see is theirs to take.
      buffer.given_up = !device.write_in_place && !buffer.made && !needs_[b].visible;
      buffer.replaced = !device.write_in_place && !buffer.made && buffer.last_write >= 0;
      if ((buffer.made && !buffer.kept) || buffer.given_up) spec_.launches[buffer.last_use].free.push_back(slot);
    }
  }

  Partitioner& partitioner_;
  const std::vector<BufferNeed>& needs_;
  KernelCache& kernels_;
  const LibraryResolver& library_;
  std::vector<int32_t> first_use_;
  device::ProgramSpec spec_;
};

}  // namespace

std::shared_ptr<Plan> make_plan(const Trace& trace, const std::vector<BufferNeed>& needs, KernelCache& kernels,
                                device::Device& device, const LibraryResolver& library) {
  Partitioner partitioner(trace, needs);
  partitioner.run();
  find_needed(partitioner, needs);
  sink_launches(partitioner);
  auto plan = std::make_shared<Plan>();
  plan->words = trace.words;
  plan->needs = needs;
  plan->operators = trace.size();
  plan->constants = partitioner.constants.words();
  PlanWriter(partitioner, needs, kernels, library).write(*plan, device);
  return plan;
}

}  // namespace ae::fusion
