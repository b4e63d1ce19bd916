// What recording one operator costs, dispatcher included and Python not: a library that bench/record.py loads into a
// process where torch has the neuron device.
#include <ATen/ATen.h>
#include <benchmark/benchmark.h>
#include <c10/core/GradMode.h>

#include <vector>

namespace {

constexpr int kBatch = 200;  // operators between two synchronizations, which are not timed

at::Tensor ones(at::IntArrayRef sizes) {
  return at::ones(sizes, at::TensorOptions().dtype(at::kFloat)).to(at::Device(at::kPrivateUse1, 0));
}

void synchronize(const at::Tensor& tensor) { tensor.cpu(); }

/// Runs `record` in batches; what the device does meanwhile is waited for outside the timed part.
template <class Record>
void run(benchmark::State& state, const at::Tensor& any, Record record) {
  int since = 0;
  for (auto _ : state) {
    record();
    if (++since == kBatch) {
      state.PauseTiming();
      synchronize(any);
      since = 0;
      state.ResumeTiming();
    }
  }
  synchronize(any);
}

void pointwise(benchmark::State& state) {
  const at::Tensor a = ones({4, 4}), b = ones({4, 4});
  run(state, a, [&] { benchmark::DoNotOptimize(a + b); });
}
BENCHMARK(pointwise);

void broadcast(benchmark::State& state) {
  const at::Tensor a = ones({4, 4}), b = ones({4});
  run(state, a, [&] { benchmark::DoNotOptimize(a + b); });
}
BENCHMARK(broadcast);

void matmul(benchmark::State& state) {
  const at::Tensor a = ones({4, 4}), b = ones({4, 4});
  run(state, a, [&] { benchmark::DoNotOptimize(at::mm(a, b)); });
}
BENCHMARK(matmul);

void view(benchmark::State& state) {
  const at::Tensor a = ones({4, 4});
  run(state, a, [&] { benchmark::DoNotOptimize(a.view({16})); });
}
BENCHMARK(view);

void in_place(benchmark::State& state) {
  at::Tensor a = ones({4, 4}), b = ones({4, 4});
  run(state, a, [&] { a.add_(b); });
}
BENCHMARK(in_place);

void foreach_of_50(benchmark::State& state) {
  std::vector<at::Tensor> tensors;
  for (int i = 0; i < 50; ++i) tensors.push_back(ones({4, 4}));
  run(state, tensors[0], [&] { at::_foreach_mul_(tensors, 1.0); });
}
BENCHMARK(foreach_of_50);

}  // namespace

extern "C" __attribute__((visibility("default"))) void ae_bench_record(int argc, char** argv) {
  c10::NoGradGuard no_grad;
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
