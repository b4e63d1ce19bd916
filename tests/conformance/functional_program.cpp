#include "tests/conformance/functional_program.h"

namespace ae::device::conformance {

namespace {

/// Position of `item`, which is added if it is new.
template <class T>
int position_in(std::vector<T>& items, const T& item) {
  const auto at = std::find(items.begin(), items.end(), item);
  const auto position = static_cast<int>(at - items.begin());
  if (at == items.end()) items.push_back(item);
  return position;
}

}  // namespace

StaticKernel::StaticKernel(const TileProgram& program, const Segment& segment, std::vector<int> argument_of,
                           std::vector<int64_t> argument_bytes)
    : argument_bytes_(std::move(argument_bytes)) {
  fixed_.program = program;
  fixed_.space = segment.space;
  for (const SegmentOperand& operand : segment.operands) fixed_.views.push_back(operand.view);
  fixed_.slots = std::move(argument_of);
  for (const TileInstr& instr : program.instrs)
    if (instr.op == Primitive::store) position_in(outputs_, fixed_.slots[instr.operand]);
}

std::vector<Bytes> StaticKernel::call(std::vector<Bytes> arguments, std::vector<uint64_t> scalars) const {
  if (arguments.size() != argument_bytes_.size()) throw std::logic_error("compiled for another number of arguments");
  for (size_t i = 0; i < arguments.size(); ++i)
    if (static_cast<int64_t>(arguments[i].size()) != argument_bytes_[i])
      throw std::logic_error("compiled for arguments of another size");
  host::testing::TileCase run = fixed_;
  run.memory = std::move(arguments);
  run.scalars = std::move(scalars);
  return host::testing::run_slowly(run);
}

std::shared_ptr<const StaticKernel> FunctionalExecutable::compile(const Segment& segment,
                                                                  const std::vector<int>& argument_of,
                                                                  const std::vector<int64_t>& argument_bytes,
                                                                  bool& made) const {
  const Space& space = segment.space;
  std::vector<int64_t> key{space.rank, space.reduced};
  key.insert(key.end(), space.sizes, space.sizes + space.rank);
  for (size_t i = 0; i < segment.operands.size(); ++i) {
    const OperandView& view = segment.operands[i].view;
    key.insert(key.end(), {argument_of[i], view.offset});
    key.insert(key.end(), view.strides, view.strides + space.rank);
  }
  key.insert(key.end(), argument_bytes.begin(), argument_bytes.end());
  std::lock_guard lock(mutex_);
  std::shared_ptr<const StaticKernel>& kernel = kernels_[std::move(key)];
  made = !kernel;
  if (made) kernel = std::make_shared<StaticKernel>(program_, segment, argument_of, argument_bytes);
  return kernel;
}

StaticSegment FunctionalProgram::compile(const Segment& segment, std::vector<int32_t>& writes, int64_t& made,
                                         int64_t& found) const {
  const auto& executable = static_cast<const FunctionalExecutable&>(*segment.executable);
  StaticSegment out;
  std::vector<int> argument_of;
  std::vector<int64_t> argument_bytes;
  for (const SegmentOperand& operand : segment.operands)
    argument_of.push_back(operand.slot < 0 ? -1 : position_in(out.arguments, operand.slot));
  for (int32_t slot : out.arguments) argument_bytes.push_back(slot_bytes.at(slot));
  bool is_new = false;
  out.kernel = executable.compile(segment, argument_of, argument_bytes, is_new);
  out.scalars = segment.scalars;
  ++(is_new ? made : found);
  for (int argument : out.kernel->outputs()) position_in(writes, out.arguments[argument]);
  return out;
}

FunctionalProgram::FunctionalProgram(ProgramSpec spec, int64_t& made, int64_t& found)
    : slots(spec.slots), slot_bytes(std::move(spec.slot_bytes)) {
  std::vector<int32_t> last_write(slots, -1);
  for (LaunchSpec& from : spec.launches) {
    FunctionalLaunch launch;
    for (const Segment& segment : from.segments)
      launch.segments.push_back(compile(segment, launch.writes, made, found));
    for (size_t i = from.library_writes_from; i < from.library_slots.size(); ++i)
      position_in(launch.writes, from.library_slots[i]);
    for (int32_t slot : launch.writes) last_write.at(slot) = static_cast<int32_t>(launches.size());
    launch.spec = std::move(from);
    launches.push_back(std::move(launch));
  }
  for (int32_t slot = 0; slot < slots; ++slot)
    if (last_write[slot] >= 0) launches[last_write[slot]].last_writes.push_back(slot);
}

}  // namespace ae::device::conformance
