// What fuses into how many launches, and that order and values are right.
#include "fusion/partition/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/cpp/support/program.h"

namespace ae::fusion::testing {
namespace {

using ::testing::ElementsAre;

std::vector<float> ramp(int64_t n, float first = 0.5f, float step = 0.25f) {
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

Contents run_fused(const Program& program) {
  Recorder recorder(host_device(), {.adaptive = true}, {test_library(), {}, {}});
  return run(program, recorder, host_device());
}

/// The operators of each launch; also checks the values against operators evaluated one by one.
std::vector<std::vector<uint32_t>> launches_of(const Program& program) {
  EXPECT_EQ(difference(program, interpret_program(program), run_fused(program)), "") << print(program);
  return Planned(program).nodes();
}

template <class T>
std::vector<T> values_of(const Contents& contents, int buffer) {
  const auto* data = reinterpret_cast<const T*>(contents[buffer].data());
  return {data, data + contents[buffer].size() / sizeof(T)};
}

// ----------------------------------------------------------------------------------------------------- What is fused

TEST(Partition, AChainOfElementwiseOperatorsIsOneLaunch) {
  Program p;
  const int x = p.buffer(ramp(60)), y = p.buffer(ramp(5)), a = p.fresh(60), b = p.fresh(60), c = p.fresh(60);
  p.hide(a);
  p.hide(b);
  p.add(Opcode::mul, {12, 5}, {p.dense(x, {12, 5}), p.view(y, {0, 1})}, {p.dense(a, {12, 5})});
  p.add(Opcode::exp, {12, 5}, {p.dense(a, {12, 5})}, {p.dense(b, {12, 5})});
  p.add(Opcode::add, {60}, {p.dense(b, {60}), 1.0}, {p.dense(c, {60})});
  EXPECT_THAT(launches_of(p), ElementsAre(ElementsAre(0, 1, 2)));
  Planned planned(p);
  EXPECT_FALSE(planned.use(a).made);  // dead values get no memory
  EXPECT_FALSE(planned.use(b).made);
  EXPECT_TRUE(planned.use(c).kept);
  EXPECT_EQ(planned.plan->bytes_not_written, 2 * 60 * 4);
}

TEST(Partition, SoftmaxTakesPrologueAndEpilogue) {
  Program p;
  const int x = p.buffer(ramp(40)), a = p.fresh(40), b = p.fresh(40), c = p.fresh(40);
  p.hide(a);
  p.hide(b);
  p.add(Opcode::mul, {4, 10}, {p.dense(x, {4, 10}), 0.125}, {p.dense(a, {4, 10})});
  p.reduce(Opcode::softmax, {4, 10}, 0b10, {p.dense(a, {4, 10})}, {p.dense(b, {4, 10})});
  p.add(Opcode::add, {40}, {p.dense(b, {40}), p.dense(x, {40})}, {p.dense(c, {40})});
  EXPECT_THAT(launches_of(p), ElementsAre(ElementsAre(0, 1, 2)));
}

TEST(Partition, ABiasGradientJoinsItsProducer) {
  Program p;
  const int grad = p.buffer(ramp(48)), out = p.buffer(ramp(48)), grad_in = p.fresh(48), bias = p.fresh(6);
  p.add(Opcode::threshold_backward, {8, 6}, {p.dense(grad, {8, 6}), p.dense(out, {8, 6}), 3.0}, {p.dense(grad_in, {8, 6})});
  p.reduce(Opcode::sum, {8, 6}, 0b01, {p.dense(grad_in, {8, 6})}, {p.view(bias, {0, 1})});
  EXPECT_THAT(launches_of(p), ElementsAre(ElementsAre(0, 1)));
}

TEST(Partition, KeptOperatorsAfterAReductionStayInItsLaunch) {
  Program p;
  const int x = p.buffer(ramp(40)), s = p.fresh(4), r = p.fresh(4), y = p.fresh(40);
  p.hide(s);
  p.reduce(Opcode::sum, {4, 10}, 0b10, {p.dense(x, {4, 10})}, {p.view(s, {1, 0})});
  p.add(Opcode::sqrt, {2, 2}, {p.dense(s, {2, 2})}, {p.dense(r, {2, 2})});
  p.add(Opcode::div, {4, 10}, {p.dense(x, {4, 10}), p.view(r, {1, 0})}, {p.dense(y, {4, 10})});
  EXPECT_THAT(launches_of(p), ElementsAre(ElementsAre(0, 1, 2)));
}

TEST(Partition, LayerNormBackwardIsOneLaunchForEachSetOfReducedDimensions) {
  Program p;
  const std::vector<int64_t> sizes{16, 8};
  const int grad = p.buffer(ramp(128)), x = p.buffer(ramp(128)), mean = p.buffer(ramp(16)), rstd = p.buffer(ramp(16)),
            weight = p.buffer(ramp(8)), grad_x = p.fresh(128), grad_weight = p.fresh(8), grad_bias = p.fresh(8);
  p.reduce(Opcode::layer_norm_backward, sizes, 0b10,
           {p.dense(grad, sizes), p.dense(x, sizes), p.view(mean, {1, 0}), p.view(rstd, {1, 0}), Input(8.0, DType::kF64),
            p.view(weight, {0, 1})},
           {p.dense(grad_x, sizes)});
  p.reduce(Opcode::layer_norm_backward_affine, sizes, 0b01,
           {p.dense(grad, sizes), p.dense(x, sizes), p.view(mean, {1, 0}), p.view(rstd, {1, 0})},
           {p.view(grad_weight, {0, 1}), p.view(grad_bias, {0, 1})}, {3});
  // The two reduce other dimensions, but neither needs the other: they share a launch.
  EXPECT_THAT(launches_of(p), ElementsAre(ElementsAre(0, 1)));
}

TEST(Partition, ASingleTensorOptimizerLoopIsAFewLaunches) {
  Program p;
  for (int i = 0; i < 54; ++i) {
    const int64_t n = 3 + 5 * i;
    const int w = p.buffer(ramp(n)), g = p.buffer(ramp(n)), m = p.buffer(ramp(n)), v = p.buffer(ramp(n)), d = p.fresh(n);
    p.hide(d);
    p.add(Opcode::mul, {n}, {p.dense(w, {n}), 0.99}, {p.dense(w, {n})});
    p.add(Opcode::lerp, {n}, {p.dense(m, {n}), p.dense(g, {n}), 0.1}, {p.dense(m, {n})}, {1});
    p.add(Opcode::mul, {n}, {p.dense(v, {n}), 0.999}, {p.dense(v, {n})});
    p.add(Opcode::addcmul, {n}, {p.dense(v, {n}), p.dense(g, {n}), p.dense(g, {n}), 0.001}, {p.dense(v, {n})});
    p.add(Opcode::sqrt, {n}, {p.dense(v, {n})}, {p.dense(d, {n})});
    p.add(Opcode::add, {n}, {p.dense(d, {n}), 1e-8}, {p.dense(d, {n})});
    p.add(Opcode::addcdiv, {n}, {p.dense(w, {n}), p.dense(m, {n}), p.dense(d, {n}), -0.01}, {p.dense(w, {n})});
  }
  EXPECT_LE(launches_of(p).size(), 3u);
}

TEST(Partition, DifferentReducedDimensionsThatDependNeedTwoLaunches) {
  Program p;
  const int x = p.buffer(ramp(40)), s = p.fresh(4), t = p.fresh(1);
  p.reduce(Opcode::sum, {4, 10}, 0b10, {p.dense(x, {4, 10})}, {p.view(s, {1, 0})});
  p.reduce(Opcode::sum, {4}, 0b1, {p.dense(s, {4})}, {p.view(t, {0})});
  EXPECT_THAT(launches_of(p), ElementsAre(ElementsAre(0), ElementsAre(1)));
}

TEST(Partition, AWholeReductionThatIsTooLargeIsTwoPasses) {
  Program p;
  const int64_t n = 100'000;
  const int x = p.buffer(ramp(n)), s = p.fresh(1), y = p.fresh(n);
  p.reduce(Opcode::sum, {n}, 0b1, {p.dense(x, {n})}, {p.view(s, {0})});
  p.add(Opcode::div, {n}, {p.dense(x, {n}), p.view(s, {0})}, {p.dense(y, {n})});
  EXPECT_THAT(launches_of(p), ElementsAre(ElementsAre(0), ElementsAre(1)));
  EXPECT_STREQ(Planned(p).plan->launches[1].why_not_more.c_str(), text_of(Mismatch::large_reduction));
}

TEST(Partition, TransposedAndDenseAccessesOfOtherBuffersFuse) {
  Program p;
  const int x = p.buffer(ramp(12)), y = p.buffer(ramp(12, 2)), z = p.fresh(12);
  p.add(Opcode::add, {3, 4}, {p.dense(x, {3, 4}), p.view(y, {1, 3})}, {p.dense(z, {3, 4})});
  p.add(Opcode::relu, {3, 4}, {p.dense(z, {3, 4})}, {p.dense(z, {3, 4})});
  EXPECT_THAT(launches_of(p), ElementsAre(ElementsAre(0, 1)));
}

// ------------------------------------------------------------------------------------------- In-place and view hazards

/// Adds an operator whose scalar, 2, is of no importance.
void scale(Program& p, const std::vector<int64_t>& sizes, View from, View to) {
  p.add(Opcode::mul, sizes, {std::move(from), 2.0}, {std::move(to)});
}

TEST(Hazards, Case1AnEarlierResultKeepsItsValueWhenItsInputChanges) {
  Program p;
  const int x = p.buffer({1, 2, 4}), y = p.fresh(3);
  scale(p, {3}, p.dense(x, {3}), p.dense(y, {3}));
  scale(p, {3}, p.dense(x, {3}), p.dense(x, {3}));
  scale(p, {3}, p.dense(x, {3}), p.dense(x, {3}));
  EXPECT_THAT(launches_of(p), ElementsAre(ElementsAre(0, 1, 2)));
  const Contents contents = run_fused(p);
  EXPECT_THAT(values_of<float>(contents, y), ElementsAre(2, 4, 8));
  EXPECT_THAT(values_of<float>(contents, x), ElementsAre(4, 8, 16));
}

TEST(Hazards, Case2ACopyOfItselfFlippedKeepsItsOrder) {
  // Flips are copies with a view that runs the other way, written out here as two copies through a temporary.
  Program p;
  const int x = p.buffer({1, 2, 3, 4}), t = p.fresh(4);
  p.hide(t);
  for (int i = 0; i < 4; ++i) p.add(Opcode::copy, {1}, {p.dense(x, {1}, 3 - i)}, {p.dense(t, {1}, i)});
  p.add(Opcode::copy, {4}, {p.dense(t, {4})}, {p.dense(x, {4})});
  launches_of(p);
  EXPECT_THAT(values_of<float>(run_fused(p), x), ElementsAre(4, 3, 2, 1));
}

TEST(Hazards, Case3AReductionBesideAnInPlaceWriteOfAnotherBuffer) {
  Program p;
  const int x = p.buffer({1, 2, 3, 4}), y = p.buffer({5, 6, 7, 8}), t = p.fresh(4), s = p.fresh(2);
  p.hide(t);
  p.add(Opcode::copy, {2, 2}, {p.view(x, {1, 2})}, {p.dense(t, {2, 2})});
  p.add(Opcode::copy, {2, 2}, {p.dense(t, {2, 2})}, {p.dense(x, {2, 2})});
  p.reduce(Opcode::sum, {2, 2}, 0b10, {p.dense(y, {2, 2})}, {p.view(s, {1, 0})});
  p.add(Opcode::add, {2, 2}, {p.dense(y, {2, 2}), p.view(s, {1, 0})}, {p.dense(y, {2, 2})});
  p.add(Opcode::add, {2, 2}, {p.dense(x, {2, 2}), p.dense(y, {2, 2})}, {p.dense(x, {2, 2})});
  launches_of(p);
  EXPECT_THAT(values_of<float>(run_fused(p), x), ElementsAre(17, 20, 24, 27));
}

TEST(Hazards, Case8TwoViewsOfOneBufferWhereOneIsWritten) {
  Program p;
  const int x = p.buffer({1, 2, 3, 4, 5}), r = p.fresh(4);
  scale(p, {4}, p.dense(x, {4}, 1), p.dense(x, {4}, 1));
  p.add(Opcode::add, {4}, {p.dense(x, {4}, 1), p.dense(x, {4}, 0)}, {p.dense(r, {4})});
  EXPECT_THAT(launches_of(p), ElementsAre(ElementsAre(0), ElementsAre(1)));
  EXPECT_THAT(values_of<float>(run_fused(p), r), ElementsAre(5, 10, 14, 18));
}

TEST(Hazards, Case10AReaderBeforeAWriteThroughAViewSeesTheOldValue) {
  Program p;
  const int x = p.buffer({1, 2, 3}), r = p.fresh(3);
  p.add(Opcode::add, {3}, {p.dense(x, {3}), 10.0}, {p.dense(r, {3})});
  p.add(Opcode::fill, {1}, {Input(9.0)}, {p.dense(x, {1})});
  launches_of(p);
  const Contents contents = run_fused(p);
  EXPECT_THAT(values_of<float>(contents, r), ElementsAre(11, 12, 13));
  EXPECT_THAT(values_of<float>(contents, x), ElementsAre(9, 2, 3));
}

TEST(Hazards, Case11ACloneStaysAndAViewFollows) {
  Program p;
  const int a = p.buffer({0, 1, 2, 3}), b = p.fresh(1), c = p.fresh(1);
  p.add(Opcode::copy, {}, {p.view(a, {}, 3)}, {p.view(b, {})});
  p.add(Opcode::fill, {}, {Input(300.0)}, {p.view(a, {}, 3)});
  p.add(Opcode::copy, {1}, {p.dense(a, {1}, 3)}, {p.dense(c, {1})});
  launches_of(p);
  const Contents contents = run_fused(p);
  EXPECT_THAT(values_of<float>(contents, b), ElementsAre(3));
  EXPECT_THAT(values_of<float>(contents, c), ElementsAre(300));
}

TEST(Hazards, Case12CopyingOneSliceOverAnotherLeavesTheSource) {
  Program p;
  const int a = p.buffer({1, 2, 3, 4});
  p.add(Opcode::copy, {2}, {p.dense(a, {2}, 2)}, {p.dense(a, {2}, 0)});
  scale(p, {2}, p.dense(a, {2}, 0), p.dense(a, {2}, 0));
  EXPECT_THAT(launches_of(p), ElementsAre(ElementsAre(0, 1)));
  EXPECT_THAT(values_of<float>(run_fused(p), a), ElementsAre(6, 8, 3, 4));
}

TEST(Hazards, Case14OperandOrderIsPartOfAKernel) {
  for (Opcode opcode : {Opcode::sub, Opcode::div, Opcode::pow}) {
    Program p;
    const int c = p.buffer({2, 3}), d = p.buffer({4, 5}), u = p.fresh(2), v = p.fresh(2);
    p.add(opcode, {2}, {p.dense(c, {2}), p.dense(d, {2})}, {p.dense(u, {2})});
    p.add(opcode, {2}, {p.dense(d, {2}), p.dense(c, {2})}, {p.dense(v, {2})});
    launches_of(p);
    const Contents contents = run_fused(p);
    EXPECT_NE(values_of<float>(contents, u), values_of<float>(contents, v)) << name_of(opcode);
  }
}

TEST(Hazards, Case15TwoInputsThatAreBroadcastDifferently) {
  Program p;
  const int x = p.buffer({1, 2}), y = p.buffer({10, 20}), xx = p.fresh(2), yy = p.fresh(2), z = p.fresh(4);
  p.add(Opcode::mul, {2}, {p.dense(x, {2}), p.dense(x, {2})}, {p.dense(xx, {2})});
  p.add(Opcode::mul, {2}, {p.dense(y, {2}), p.dense(y, {2})}, {p.dense(yy, {2})});
  p.add(Opcode::add, {2, 2}, {p.view(xx, {1, 0}), p.view(yy, {0, 1})}, {p.dense(z, {2, 2})});
  launches_of(p);
  EXPECT_THAT(values_of<float>(run_fused(p), z), ElementsAre(101, 401, 104, 404));
}

TEST(Hazards, Case17EachSizeOfAReductionHasItsOwnValue) {
  Recorder recorder(host_device(), {.adaptive = true}, {test_library(), {}, {}});
  for (int64_t n = 1; n <= 4; ++n) {
    Program p;
    const int x = p.buffer({1, 2, 3, 4}), s = p.fresh(1);
    p.reduce(Opcode::sum, {n}, 0b1, {p.dense(x, {n})}, {p.view(s, {0})});
    EXPECT_THAT(values_of<float>(run(p, recorder, host_device()), s), ElementsAre(static_cast<float>(n * (n + 1) / 2)));
  }
}

TEST(Hazards, Case19AnOptionalInputMakesAnotherPlan) {
  Recorder recorder(host_device(), {.adaptive = true}, {test_library(), {}, {}});
  for (int round = 0; round < 6; ++round) {
    const bool weighted = round % 2 == 1;
    Program p;
    const int x = p.buffer({3, 4}), w = p.buffer({0.5f, 2}), y = p.fresh(2);
    std::vector<Input> inputs{p.dense(x, {2}), Input(2.0, DType::kF64), Input(0.0, DType::kF64)};
    if (weighted) inputs.push_back(p.dense(w, {2}));
    p.reduce(Opcode::rms_norm, {2}, 0b1, std::move(inputs), {p.dense(y, {2})});
    EXPECT_EQ(difference(p, interpret_program(p), run(p, recorder, host_device())), "") << round;
  }
  EXPECT_EQ(recorder.statistics().plans_made, 2);
}

TEST(Hazards, Case21PiecesOfASplitSeeWritesToTheWhole) {
  Program p;
  const int x = p.buffer({1, 2, 3, 4}), b = p.fresh(2), c = p.fresh(2);
  p.add(Opcode::fill, {1}, {Input(-1.0)}, {p.dense(x, {1})});
  scale(p, {2}, p.dense(x, {2}, 0), p.dense(b, {2}));
  scale(p, {2}, p.dense(x, {2}, 2), p.dense(c, {2}));
  launches_of(p);
  const Contents contents = run_fused(p);
  EXPECT_THAT(values_of<float>(contents, b), ElementsAre(-2, 4));
  EXPECT_THAT(values_of<float>(contents, c), ElementsAre(6, 8));
}

TEST(Hazards, Case31TheSameOperatorsAtOtherOffsetsAreOrderedAnew) {
  Recorder recorder(host_device(), {.adaptive = true}, {test_library(), {}, {}});
  for (auto [i, j] : {std::pair<int64_t, int64_t>{4, 0}, {2, 0}, {0, 0}, {0, 2}, {4, 0}}) {
    Program p;
    const int a = p.buffer({1, 2, 3, 4, 5, 6, 7, 8}), b = p.fresh(4);
    scale(p, {4}, p.dense(a, {4}, j), p.dense(b, {4}));
    p.add(Opcode::add, {4}, {p.dense(a, {4}, i), 1.0}, {p.dense(a, {4}, i)});
    EXPECT_EQ(difference(p, interpret_program(p), run(p, recorder, host_device())), "") << i << " " << j;
  }
}

TEST(Hazards, AWriteAfterAPendingReadInALaterLaunchComesAfterIt) {
  Program p;
  const int x = p.buffer({1, 2, 3}), y = p.fresh(3), z = p.fresh(3);
  p.library(kReverseAdd, {{x, DType::kF32, 0, {1}, {3}}}, {{y, DType::kF32, 0, {1}, {3}}});
  p.add(Opcode::fill, {3}, {Input(0.0)}, {p.dense(x, {3})});
  p.add(Opcode::add, {3}, {p.dense(y, {3}), p.dense(x, {3})}, {p.dense(z, {3})});
  EXPECT_THAT(launches_of(p), ElementsAre(ElementsAre(0), ElementsAre(1, 2)));
  EXPECT_THAT(values_of<float>(run_fused(p), z), ElementsAre(5, 6, 7));
}

TEST(Hazards, AKeptValueIsWrittenInPlaceAfterAllOfItsRowHasReadIt) {
  for (int64_t columns : {10, 5000, 60'000}) {
    Program p;
    const int x = p.buffer(ramp(4 * columns)), s = p.buffer({1, 2, 3, 4}), y = p.fresh(4 * columns), r = p.fresh(4);
    const std::vector<int64_t> sizes{4, columns};
    p.add(Opcode::add, sizes, {p.dense(x, sizes), p.view(s, {1, 0})}, {p.dense(y, sizes)});
    p.reduce(Opcode::sum, sizes, 0b10, {p.dense(y, sizes)}, {p.view(r, {1, 0})});
    p.add(Opcode::add, {4}, {p.dense(s, {4}), 1.0}, {p.dense(s, {4})});
    EXPECT_THAT(launches_of(p), ElementsAre(ElementsAre(0, 1, 2)));
    EXPECT_THAT(values_of<float>(run_fused(p), s), ElementsAre(2, 3, 4, 5));
  }
}

TEST(Hazards, AnotherDtypeOfTheSameMemoryOrders) {
  Program p;
  const int x = p.buffer(std::vector<int64_t>{0x100000001, 2}), y = p.fresh(4, DType::kI32);
  Op& op = p.add(Opcode::add, {2}, {p.dense(x, {2}), Input(int64_t{1})}, {p.dense(x, {2})});
  op.common = DType::kI64;
  Op& copy = p.add(Opcode::copy, {4}, {View{x, DType::kI32, 0, {1}, {}}}, {p.dense(y, {4})});
  copy.common = DType::kI32;
  EXPECT_EQ(launches_of(p).size(), 2u);
  EXPECT_THAT(values_of<int32_t>(run_fused(p), y), ElementsAre(2, 1, 3, 0));
}

// ------------------------------------------------------------------------------------------------- Liveness, libraries

TEST(Liveness, NothingThatCanBeSeenIsNoLaunch) {
  Program p;
  const int x = p.buffer({1, 2}), y = p.fresh(2);
  p.hide(y);
  scale(p, {2}, p.dense(x, {2}), p.dense(y, {2}));
  Planned planned(p);
  EXPECT_EQ(planned.plan->program, nullptr);
  EXPECT_TRUE(planned.plan->launches.empty());
  EXPECT_EQ(planned.plan->bytes_not_written, 8);
}

TEST(Liveness, AValueBetweenTwoLaunchesGetsMemoryThatIsGivenBack) {
  Program p;
  const int x = p.buffer({1, 2, 3}), t = p.fresh(3), y = p.fresh(3);
  p.hide(t);
  scale(p, {3}, p.dense(x, {3}), p.dense(t, {3}));
  p.library(kReverseAdd, {{t, DType::kF32, 0, {1}, {3}}}, {{y, DType::kF32, 0, {1}, {3}}});
  launches_of(p);
  Planned planned(p);
  EXPECT_TRUE(planned.use(t).made);
  EXPECT_FALSE(planned.use(t).kept);
  EXPECT_EQ(planned.use(t).last_write, 0);
  EXPECT_EQ(planned.use(t).last_use, 1);
  EXPECT_TRUE(planned.use(y).kept);
}

TEST(Liveness, AnOverwrittenValueIsNotWritten) {
  Program p;
  const int x = p.buffer({1, 2}), y = p.fresh(2);
  scale(p, {2}, p.dense(x, {2}), p.dense(y, {2}));
  p.add(Opcode::fill, {2}, {Input(7.0)}, {p.dense(y, {2})});
  launches_of(p);
  EXPECT_EQ(Planned(p).plan->bytes_not_written, 8);
}

TEST(Liveness, APartialWriteKeepsTheRestOfAnEarlierOne) {
  Program p;
  const int x = p.buffer({1, 2, 3}), y = p.fresh(3);
  scale(p, {3}, p.dense(x, {3}), p.dense(y, {3}));
  p.add(Opcode::fill, {2}, {Input(7.0)}, {p.dense(y, {2}, 1)});
  launches_of(p);
  EXPECT_THAT(values_of<float>(run_fused(p), y), ElementsAre(2, 7, 7));
}

TEST(Library, NodesKeepTheirOrderAndDeadOnesAreLeftOut) {
  Program p;
  const auto whole = [](int buffer) { return View{buffer, DType::kF32, 0, {1}, {3}}; };
  const int x = p.buffer({1, 2, 3}), y = p.fresh(3), dead = p.fresh(3);
  p.hide(dead);
  p.library(kAddInPlace, {whole(x)}, {whole(x)}, {1.0});
  p.library(kReverseAdd, {whole(x)}, {whole(y)});
  p.library(kReverseAdd, {whole(y)}, {whole(dead)});
  p.library(kAddInPlace, {whole(x)}, {whole(x)}, {10.0});
  EXPECT_THAT(launches_of(p), ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(3)));
  const Contents contents = run_fused(p);
  EXPECT_THAT(values_of<float>(contents, x), ElementsAre(12, 13, 14));
  EXPECT_THAT(values_of<float>(contents, y), ElementsAre(8, 9, 10));
}

TEST(Fences, NothingMovesAcrossAndWhatIsOverwrittenLaterIsWrittenBefore) {
  Program p;
  const int x = p.buffer({1, 2}), w = p.buffer({5, 6}), y = p.fresh(2), z = p.fresh(2), u = p.fresh(2);
  p.hide(y);
  scale(p, {2}, p.dense(w, {2}), p.dense(w, {2}));
  p.library(kCheckedCopy, {{x, DType::kF32, 0, {1}, {2}}}, {{y, DType::kF32, 0, {1}, {2}}}).fence = true;
  p.add(Opcode::fill, {2}, {Input(0.0)}, {p.dense(w, {2})});
  scale(p, {2}, p.dense(x, {2}), p.dense(z, {2}));
  scale(p, {2}, p.dense(x, {2}), p.dense(u, {2}));
  // The checked copy runs although nobody sees its result, and so does the operator before it.
  EXPECT_THAT(launches_of(p), ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2, 3, 4)));
  Planned planned(p);
  EXPECT_TRUE(planned.plan->can_fail);
  EXPECT_EQ(planned.use(w).first_write, 0);
}

// -------------------------------------------------------------------------------------------------------- Odd shapes

TEST(OddShapes, EmptyTensorsInTheMiddleOfAChainAreNothing) {
  Program p;
  const int x = p.buffer({1, 2}), e = p.fresh(0), f = p.fresh(0), y = p.fresh(2);
  scale(p, {2}, p.dense(x, {2}), p.dense(y, {2}));
  scale(p, {0, 2}, p.dense(e, {0, 2}), p.dense(f, {0, 2}));
  scale(p, {2}, p.dense(y, {2}), p.dense(y, {2}));
  EXPECT_THAT(launches_of(p), ElementsAre(ElementsAre(0, 2)));
}

TEST(OddShapes, ReductionsOverNothingGiveTheirIdentity) {
  Program p;
  const int x = p.fresh(0), s = p.fresh(3), m = p.fresh(3), y = p.fresh(3);
  p.reduce(Opcode::sum, {3, 0}, 0b10, {p.dense(x, {3, 0})}, {p.view(s, {1, 0})});
  p.reduce(Opcode::prod, {3, 0}, 0b10, {p.dense(x, {3, 0})}, {p.view(m, {1, 0})});
  p.add(Opcode::add, {3}, {p.dense(s, {3}), p.dense(m, {3})}, {p.dense(y, {3})});
  launches_of(p);
  const Contents contents = run_fused(p);
  EXPECT_THAT(values_of<float>(contents, s), ElementsAre(0, 0, 0));
  EXPECT_THAT(values_of<float>(contents, m), ElementsAre(1, 1, 1));
  EXPECT_THAT(values_of<float>(contents, y), ElementsAre(1, 1, 1));
}

TEST(OddShapes, RowOperatorsOverNothingWriteNothingButTheirStatistics) {
  Program p;
  const int x = p.fresh(0), y = p.fresh(0), z = p.fresh(0), mean = p.fresh(3), rstd = p.fresh(3);
  p.reduce(Opcode::softmax, {3, 0}, 0b10, {p.dense(x, {3, 0})}, {p.dense(y, {3, 0})});
  p.reduce(Opcode::layer_norm, {3, 0}, 0b10, {p.dense(x, {3, 0}), Input(0.0, DType::kF64), Input(1.0, DType::kF64)},
           {p.dense(z, {3, 0}), p.view(mean, {1, 0}), p.view(rstd, {1, 0})}, {0});
  launches_of(p);
}

TEST(OddShapes, ReductionsOverDimensionsOfSizeOneFuseWithTheirNeighbours) {
  Program p;
  const int x = p.buffer({1, 2, 3}), y = p.fresh(3), s = p.fresh(3), z = p.fresh(3), v = p.fresh(3);
  p.add(Opcode::add, {3, 1}, {p.dense(x, {3, 1}), 1.0}, {p.dense(y, {3, 1})});
  p.reduce(Opcode::sum, {3, 1}, 0b10, {p.dense(y, {3, 1})}, {p.view(s, {1, 0})});
  p.reduce(Opcode::softmax, {3, 1}, 0b10, {p.dense(y, {3, 1})}, {p.dense(z, {3, 1})});
  p.add(Opcode::add, {3}, {p.dense(s, {3}), p.dense(z, {3})}, {p.dense(v, {3})});
  EXPECT_THAT(launches_of(p), ElementsAre(ElementsAre(0, 1, 2, 3)));
  EXPECT_THAT(values_of<float>(run_fused(p), v), ElementsAre(3, 4, 5));
}

TEST(OddShapes, ZeroDimensionalTensorsReduceAndFuse) {
  Program p;
  const int x = p.buffer({4}), s = p.fresh(1), y = p.fresh(1);
  p.reduce(Opcode::sum, {}, 0, {p.view(x, {})}, {p.view(s, {})});
  p.add(Opcode::sqrt, {}, {p.view(s, {})}, {p.view(y, {})});
  EXPECT_THAT(launches_of(p), ElementsAre(ElementsAre(0, 1)));
  EXPECT_THAT(values_of<float>(run_fused(p), y), ElementsAre(2));
}

TEST(OddShapes, PositionsOfKeptAndOfFullOperatorsInOneLaunchStayApart) {
  // tril's row index has the strides of a position in the kept dimensions, but full level.
  Program p;
  const int x = p.buffer(ramp(12)), t = p.fresh(12), s = p.fresh(4), u = p.fresh(4);
  p.add(Opcode::tril, {4, 3}, {p.dense(x, {4, 3})}, {p.dense(t, {4, 3})}, {0});
  p.reduce(Opcode::sum, {4, 3}, 0b10, {p.dense(t, {4, 3})}, {p.view(s, {1, 0})});
  p.add(Opcode::dropout, {4}, {p.dense(s, {4}), Input(0.5, DType::kF64), Input(2.0, DType::kF64), Input(int64_t{1}), Input(int64_t{2})},
        {p.dense(u, {4})});
  EXPECT_THAT(launches_of(p), ElementsAre(ElementsAre(0, 1, 2)));
}

// --------------------------------------------------------------------------------------------------------------- Keys

TEST(Keys, ScalarsSizesAndOffsetsAreNoPartOfAKernelsKey) {
  KernelCache kernels(host_device());
  const auto plan = [&](int64_t n, int64_t offset, double number) {
    Program p;
    const int x = p.buffer(ramp(64)), y = p.fresh(n);
    p.add(Opcode::mul, {n}, {p.dense(x, {n}, offset), number}, {p.dense(y, {n})});
    TracedProgram traced(p);
    make_plan(traced.trace, traced.needs, kernels, host_device(), test_library());
  };
  plan(4, 0, 1.0);
  plan(9, 0, 1.0);
  plan(9, 5, 1.0);
  plan(9, 5, 3.0);
  EXPECT_EQ(kernels.made(), 1);
}

TEST(Keys, APlanServesOtherScalars) {
  Recorder recorder(host_device(), {.adaptive = true}, {test_library(), {}, {}});
  for (float number : {1.0f, 2.0f, -3.0f}) {
    Program p;
    const int x = p.buffer({1, 2}), y = p.fresh(2);
    p.add(Opcode::mul, {2}, {p.dense(x, {2}), number}, {p.dense(y, {2})});
    EXPECT_THAT(values_of<float>(run(p, recorder, host_device()), y), ElementsAre(number, 2 * number));
  }
  EXPECT_EQ(recorder.statistics().plans_made, 1);
  EXPECT_EQ(recorder.statistics().kernels_made, 1);
}

}  // namespace
}  // namespace ae::fusion::testing
