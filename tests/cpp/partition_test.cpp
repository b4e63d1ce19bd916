// What fuses into how many launches, and that the values are right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fusion/partition/segment.h"
#include "tests/cpp/support/planned.h"

namespace ae::fusion::testing {
namespace {

using ::testing::ElementsAre;

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
  p.add(Opcode::threshold_backward, {8, 6}, {p.dense(out, {8, 6}), p.dense(grad, {8, 6}), 3.0},
        {p.dense(grad_in, {8, 6})});
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
           {p.dense(grad, sizes), p.dense(x, sizes), p.view(mean, {1, 0}), p.view(rstd, {1, 0}),
            Input(8.0, DType::kF64), p.view(weight, {0, 1})},
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
    const int w = p.buffer(ramp(n)), g = p.buffer(ramp(n)), m = p.buffer(ramp(n)), v = p.buffer(ramp(n)),
              d = p.fresh(n);
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
  p.add(Opcode::dropout, {4},
        {p.dense(s, {4}), Input(0.5, DType::kF64), Input(2.0, DType::kF64), Input(int64_t{1}), Input(int64_t{2})},
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
