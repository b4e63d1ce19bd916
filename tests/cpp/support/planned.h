// Programs and what becomes of them: plans, launches, values.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "fusion/partition/partition.h"
#include "tests/cpp/support/program.h"

namespace ae::fusion::testing {

inline std::vector<float> ramp(int64_t n, float first = 0.5f, float step = 0.25f) {
  std::vector<float> values(n);
  for (int64_t i = 0; i < n; ++i) values[i] = first + step * static_cast<float>(i % 37);
  return values;
}

struct Planned {
  explicit Planned(const Program& program) : traced(program), kernels(host_device()) {
    plan = make_plan(traced.trace, traced.needs, kernels, host_device(), test_library());
  }
  const Plan::BufferUse& use(int buffer) { return plan->uses[traced.index_of(buffer)]; }
  std::vector<std::vector<uint32_t>> nodes() const {
    std::vector<std::vector<uint32_t>> out;
    for (const Plan::LaunchInfo& launch : plan->launches) out.push_back(launch.nodes);
    return out;
  }
  TracedProgram traced;
  KernelCache kernels;
  std::shared_ptr<Plan> plan;
};

/// Runs a program as one trace; also checks that a device with immutable buffers gives the same.
inline Contents run_fused(const Program& program) {
  Recorder recorder(host_device(), {.adaptive = true}, {test_library(), {}, {}});
  Contents contents = run(program, recorder, host_device());
  Recorder functional(functional_device(), {.adaptive = true}, {test_library(), {}, {}});
  EXPECT_EQ(difference(program, contents, run(program, functional, functional_device())), "") << print(program);
  return contents;
}

/// The operators of each launch; also checks the values against operators evaluated one by one.
inline std::vector<std::vector<uint32_t>> launches_of(const Program& program) {
  EXPECT_EQ(difference(program, interpret_program(program), run_fused(program)), "") << print(program);
  return Planned(program).nodes();
}

template <class T>
std::vector<T> values_of(const Contents& contents, int buffer) {
  const auto* data = reinterpret_cast<const T*>(contents[buffer].data());
  return {data, data + contents[buffer].size() / sizeof(T)};
}

/// Adds an operator whose scalar, 2, is of no importance.
inline void scale(Program& p, const std::vector<int64_t>& sizes, View from, View to) {
  p.add(Opcode::mul, sizes, {std::move(from), 2.0}, {std::move(to)});
}

}  // namespace ae::fusion::testing
