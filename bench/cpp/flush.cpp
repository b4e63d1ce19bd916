// What a flush with a known plan costs the thread that records, without torch: at 10, 100 and 1,000 operators.
#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>
#include <vector>

#include "device/host/host_device.h"
#include "fusion/flush/recorder.h"

namespace {

using namespace ae;
using namespace ae::fusion;

constexpr int64_t kSizes[] = {16};
constexpr int64_t kStrides[] = {1};

/// Records out = a + b over 16 floats into a new buffer.
BufferRef record_add(Recorder& recorder, const BufferRef& a, const BufferRef& b) {
  BufferRef out = BufferRef::adopt(new Buffer(kSizes[0] * 4));
  Recorder::Node node(recorder, Opcode::add, DType::kF32, 1, kSizes);
  node.writer().input(a.get(), DType::kF32, 0, kStrides);
  node.writer().input(b.get(), DType::kF32, 0, kStrides);
  node.writer().output(out.get(), DType::kF32, 0, kStrides);
  node.commit();
  return out;
}

BufferRef make_input(device::Device& device) {
  BufferRef buffer = BufferRef::adopt(new Buffer(kSizes[0] * 4));
  buffer->block = device.allocate(buffer->nbytes);
  return buffer;
}

/// A chain of operators of which only the last result is seen; only the flush is timed.
void known_plan_flush(benchmark::State& state) {
  const auto device = device::host::make_host_device({.threads = 1, .thread_start = {}});
  PolicySettings settings;
  settings.adaptive = true;
  Recorder recorder(*device, settings, {});
  const BufferRef a = make_input(*device), b = make_input(*device);
  const auto once = [&] {
    BufferRef z = a;
    for (int64_t i = 0; i < state.range(0); ++i) {
      BufferRef next = record_add(recorder, z, b);
      if (i > 0) z->visible = false;
      z = next;
    }
    const auto start = std::chrono::steady_clock::now();
    recorder.flush(FlushReason::synchronize);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    recorder.synchronize();
    return elapsed.count();
  };
  for (int i = 0; i < 5; ++i) once();
  for (auto _ : state) state.SetIterationTime(once());
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(known_plan_flush)->Arg(10)->Arg(100)->Arg(1000)->UseManualTime();

}  // namespace
