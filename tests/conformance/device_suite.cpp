#include "tests/conformance/device_suite.h"

#include <utility>

namespace ae::device::conformance {

TileProgram multiply_add_program() {
  TileProgram program;
  program.registers = {{Level::full, 4}};
  program.operands = {DType::kF32, DType::kF32};
  program.scalars = {DType::kF32, DType::kF32};
  const TileSource reg{TileSource::reg, 0}, s0{TileSource::scalar, 0}, s1{TileSource::scalar, 1};
  const auto f32 = DType::kF32;
  program.instrs = {{Primitive::load, f32, f32, Level::full, 0, 0, {}, {}, {}},
                    {Primitive::mul, f32, f32, Level::full, 0, 0, reg, s0, {}},
                    {Primitive::add, f32, f32, Level::full, 0, 0, reg, s1, {}},
                    {Primitive::store, f32, f32, Level::full, 0, 1, reg, {}, {}}};
  return program;
}

TileProgram sum_program() {
  TileProgram program;
  program.registers = {{Level::full, 4}, {Level::kept, 4}};
  program.operands = {DType::kF32, DType::kF32};
  const auto f32 = DType::kF32;
  program.instrs = {{Primitive::load, f32, f32, Level::full, 0, 0, {}, {}, {}},
                    {Primitive::reduce_sum, f32, f32, Level::full, 1, 0, {TileSource::reg, 0}, {}, {}},
                    {Primitive::store, f32, f32, Level::kept, 0, 1, {TileSource::reg, 1}, {}, {}}};
  return program;
}

Space line(int64_t n) {
  Space space;
  space.rank = 1;
  space.sizes[0] = n;
  return space;
}

OperandView dense_line() {
  OperandView view;
  view.strides[0] = 1;
  return view;
}

Segment DeviceSuite::multiply_add(int64_t n, int32_t x, int32_t out, int32_t scalar) {
  return {
      device_->load(multiply_add_program()), line(n), {{x, dense_line()}, {out, dense_line()}}, {scalar, scalar + 1}};
}

Segment DeviceSuite::sum(int64_t n, int32_t x, int32_t out) {
  Space space = line(n);
  space.reduced = 1;
  return {device_->load(sum_program()), space, {{x, dense_line()}, {out, OperandView{}}}, {}};
}

LaunchSpec DeviceSuite::call(Call::Body body, std::vector<int32_t> slots, int pieces) {
  LaunchSpec launch;
  launch.library = std::make_shared<Call>(std::move(body), pieces);
  launch.library_slots = std::move(slots);
  return launch;
}

void DeviceSuite::wait_all() { ASSERT_TRUE(stream().wait(stream().submitted(), 60'000)); }

std::vector<BlockRef> DeviceSuite::run(ProgramSpec spec, std::vector<BlockRef> slots, std::vector<uint64_t> scalars) {
  Submission submission;
  submission.program = device_->compile(std::move(spec));
  submission.slots = std::move(slots);
  submission.scalars = std::move(scalars);
  stream().submit(submission);
  wait_all();
  return std::move(submission.slots);
}

BlockRef DeviceSuite::put(const std::vector<float>& numbers) {
  return device_->copy_from_host(numbers.data(), static_cast<int64_t>(numbers.size() * sizeof(float)));
}

std::vector<float> DeviceSuite::get(const BlockRef& block) {
  wait_all();
  std::vector<float> numbers(block->size() / sizeof(float));
  device_->copy_to_host(block, numbers.data());
  return numbers;
}

}  // namespace ae::device::conformance
