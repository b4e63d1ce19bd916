// Attention of the demo's shape (batch 8, 4 heads, length 128, width 32, causal), read from one matrix of queries, keys
// and values. GFLOPS count what a causal head needs: half of each product of the whole lengths.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "device/host/attention/attention.h"

namespace {

using namespace ae::device::host::attention;

struct Demo {
  static constexpr Shape kShape{8, 4, 4, 128, 128, 32, true};
  static constexpr int64_t kRow = kShape.heads * kShape.width;
  static constexpr double kProduct = 1.0 * kShape.batch * kShape.heads * kShape.queries * kShape.keys * kShape.width;

  std::vector<float> inputs = filled(3 * size()), grad = filled(size());
  std::vector<float> out = filled(size()), logsumexp = filled(size() / kShape.width);
  std::vector<float> grad_query = filled(size()), grad_key = filled(size()), grad_value = filled(size());

  static int64_t size() { return kShape.batch * kShape.queries * kRow; }
  static std::vector<float> filled(int64_t count) {
    std::vector<float> numbers(static_cast<size_t>(count));
    uint32_t state = 1;
    for (float& x : numbers) x = static_cast<float>((state = state * 1664525 + 1013904223) >> 8) * 0x1p-23f - 1.0f;
    return numbers;
  }
  template <class T>
  static Rows<T> rows(T* data) {
    return {data, kShape.queries * kRow, kShape.width, kRow};
  }
  Rows<const float> input(int part) const {
    return {inputs.data() + part * kRow, kShape.queries * 3 * kRow, kShape.width, 3 * kRow};
  }
  static float scale() { return 1 / std::sqrt(static_cast<float>(kShape.width)); }

  void run_forward() {
    const Rows<float> sums{logsumexp.data(), kShape.queries * kShape.heads, 1, kShape.heads};
    const Forward call{kShape, scale(), input(0), input(1), input(2), {}, rows(out.data()), sums};
    for (int64_t b = 0; b < kShape.batch; ++b)
      for (int64_t h = 0; h < kShape.heads; ++h) forward(call, b, h, 0, kShape.queries);
  }
  void run_backward() {
    const Rows<const float> sums{logsumexp.data(), kShape.queries * kShape.heads, 1, kShape.heads};
    const Backward call{kShape,
                        scale(),
                        rows<const float>(grad.data()),
                        input(0),
                        input(1),
                        input(2),
                        rows<const float>(out.data()),
                        sums,
                        {},
                        rows(grad_query.data()),
                        rows(grad_key.data()),
                        rows(grad_value.data())};
    for (int64_t b = 0; b < kShape.batch; ++b)
      for (int64_t h = 0; h < kShape.key_heads; ++h) backward(call, b, h);
  }
};

void count(benchmark::State& state, double operations) {
  state.counters["GFLOPS"] =
      benchmark::Counter(operations * 1e-9 * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

void attention_forward(benchmark::State& state) {
  Demo demo;
  for (auto _ : state) demo.run_forward();
  count(state, 2 * Demo::kProduct);
}
BENCHMARK(attention_forward)->Unit(benchmark::kMicrosecond);

void attention_backward(benchmark::State& state) {
  Demo demo;
  demo.run_forward();
  for (auto _ : state) demo.run_backward();
  count(state, 5 * Demo::kProduct);
}
BENCHMARK(attention_backward)->Unit(benchmark::kMicrosecond);

}  // namespace
