// The tile machine against a hand-written fused loop and a STREAM-like copy, and the price of a launch.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "device/device.h"
#include "device/host/host_device.h"

namespace ae::device::host {
namespace {

constexpr TileSource kNone{};
TileSource reg(uint16_t index) { return {TileSource::reg, index}; }
TileSource scalar(uint16_t index) { return {TileSource::scalar, index}; }
uint64_t word_of(double x) {
  uint64_t word;
  std::memcpy(&word, &x, 8);
  return word;
}

TileInstr instr(Primitive op, uint16_t dst, TileSource a, TileSource b = kNone, uint16_t operand = 0) {
  return {op, DType::kF32, DType::kF32, Level::full, dst, operand, a, b, kNone};
}

/// z = x; four times z = (z*y + x)*0.5 - |y|: twenty instructions. Operands: x, y, z.
TileProgram chain_program() {
  TileProgram program;
  program.registers.assign(4, {Level::full, 4});
  program.operands.assign(3, DType::kF32);
  program.scalars = {DType::kF32};
  auto& code = program.instrs;
  code.push_back(instr(Primitive::load, 0, kNone, kNone, 0));
  code.push_back(instr(Primitive::load, 1, kNone, kNone, 1));
  for (int i = 0; i < 4; ++i) {
    const TileSource z = reg(i == 0 ? 0 : 2);
    code.push_back(instr(Primitive::mul, 2, z, reg(1)));
    code.push_back(instr(Primitive::add, 2, reg(2), reg(0)));
    code.push_back(instr(Primitive::mul, 2, reg(2), scalar(0)));
    code.push_back(instr(Primitive::abs, 3, reg(1)));
    code.push_back(instr(Primitive::sub, 2, reg(2), reg(3)));
  }
  code.push_back(instr(Primitive::store, 0, reg(2), kNone, 2));
  return program;
}

/// out = f(x).
TileProgram unary_program(Primitive op) {
  TileProgram program;
  program.registers.assign(1, {Level::full, 4});
  program.operands.assign(2, DType::kF32);
  program.instrs = {instr(Primitive::load, 0, kNone, kNone, 0), instr(op, 0, reg(0)),
                    instr(Primitive::store, 0, reg(0), kNone, 1)};
  return program;
}

/// out = sum of x.
TileProgram sum_program() {
  TileProgram program;
  program.registers = {{Level::full, 4}, {Level::kept, 4}};
  program.operands.assign(2, DType::kF32);
  program.instrs = {instr(Primitive::load, 0, kNone, kNone, 0), instr(Primitive::reduce_sum, 1, reg(0))};
  program.instrs.push_back({Primitive::store, DType::kF32, DType::kF32, Level::kept, 0, 1, reg(1), kNone, kNone});
  return program;
}

struct Bench {
  explicit Bench(NativeTier::Mode native = NativeTier::Mode::off)
      : device(make_host_device({.threads = 2, .thread_start = {}, .native = native})) {}
  std::unique_ptr<Device> device;
  std::shared_ptr<const Program> program;
  std::vector<BlockRef> slots;

  void prepare(const TileProgram& tile_program, const Space& space, const std::vector<OperandView>& views,
               const std::vector<int64_t>& elements) {
    Segment segment{device->load(tile_program), space, {}, {}};
    std::vector<int64_t> bytes;
    for (size_t i = 0; i < views.size(); ++i) {
      segment.operands.push_back({static_cast<int32_t>(i), views[i]});
      bytes.push_back(elements[i] * 4);
      slots.push_back(device->allocate(bytes.back()));
      std::fill_n(static_cast<float*>(slots.back()->address()), elements[i], 0.25f);
    }
    for (size_t s = 0; s < tile_program.scalars.size(); ++s) segment.scalars.push_back(static_cast<int32_t>(s));
    LaunchSpec launch;
    launch.segments = {segment};
    program = device->compile({static_cast<int32_t>(views.size()), bytes, {launch}});
  }

  void run() {
    Submission submission;
    submission.program = program;
    submission.slots = slots;
    submission.scalars = {word_of(0.5)};
    const uint64_t number = device->default_stream().submit(submission);
    device->default_stream().wait(number + 1, 60'000);
  }
};

void run_pointwise(benchmark::State& state, const TileProgram& program, size_t operands,
                   NativeTier::Mode native = NativeTier::Mode::off) {
  const int64_t n = state.range(0);
  Space space;
  space.rank = 1;
  space.sizes[0] = n;
  OperandView dense;
  dense.strides[0] = 1;
  Bench bench(native);
  bench.prepare(program, space, std::vector<OperandView>(operands, dense), std::vector<int64_t>(operands, n));
  for (auto _ : state) bench.run();
  state.SetBytesProcessed(state.iterations() * n * 4 * static_cast<int64_t>(operands));
}

void chain_tiles(benchmark::State& state) { run_pointwise(state, chain_program(), 3); }
void chain_native(benchmark::State& state) { run_pointwise(state, chain_program(), 3, NativeTier::Mode::immediately); }
void exp_tiles(benchmark::State& state) { run_pointwise(state, unary_program(Primitive::exp), 2); }
void copy_tiles(benchmark::State& state) { run_pointwise(state, unary_program(Primitive::abs), 2); }

void chain_hand_written(benchmark::State& state) {
  const int64_t n = state.range(0);
  std::vector<float> x(n, 0.25f), y(n, 0.25f), z(n);
  for (auto _ : state) {
    for (int64_t i = 0; i < n; ++i) {
      float value = x[i];
      for (int k = 0; k < 4; ++k) value = (value * y[i] + x[i]) * 0.5f - std::fabs(y[i]);
      z[i] = value;
    }
    benchmark::DoNotOptimize(z.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * n * 12);
}

void copy_stream(benchmark::State& state) {
  const int64_t n = state.range(0);
  std::vector<float> x(n, 0.25f), y(n);
  for (auto _ : state) {
    std::memcpy(y.data(), x.data(), n * 4);
    benchmark::DoNotOptimize(y.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * n * 8);
}

/// rows x columns, reduced over the columns (0) or the rows (1).
void sum_tiles(benchmark::State& state) {
  const int64_t rows = state.range(0), columns = state.range(1), over_rows = state.range(2);
  Space space;
  space.rank = 2;
  space.sizes[0] = rows;
  space.sizes[1] = columns;
  space.reduced = over_rows ? 1 : 2;
  OperandView dense, out;
  dense.strides[0] = columns;
  dense.strides[1] = 1;
  out.strides[over_rows ? 1 : 0] = 1;
  Bench bench;
  bench.prepare(sum_program(), space, {dense, out}, {rows * columns, over_rows ? columns : rows});
  for (auto _ : state) bench.run();
  state.SetBytesProcessed(state.iterations() * rows * columns * 4);
}

BENCHMARK(chain_tiles)->Arg(16)->Arg(1 << 16)->Arg(1 << 20)->Arg(1 << 24)->UseRealTime();
BENCHMARK(chain_native)->Arg(16)->Arg(1 << 16)->Arg(1 << 20)->Arg(1 << 24)->UseRealTime();
BENCHMARK(chain_hand_written)->Arg(1 << 16)->Arg(1 << 20)->Arg(1 << 24)->UseRealTime();
BENCHMARK(exp_tiles)->Arg(1 << 20)->UseRealTime();
BENCHMARK(copy_tiles)->Arg(16)->Arg(1 << 20)->Arg(1 << 24)->UseRealTime();
BENCHMARK(copy_stream)->Arg(1 << 20)->Arg(1 << 24)->UseRealTime();
BENCHMARK(sum_tiles)
    ->Args({1024, 128, 0})
    ->Args({1024, 128, 1})
    ->Args({1, 1 << 20, 0})
    ->Args({8192, 1024, 0})
    ->Args({8192, 1024, 1})
    ->UseRealTime();

}  // namespace
}  // namespace ae::device::host
