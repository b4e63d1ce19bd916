// In-place writes and views of one memory: the order is kept, and so are the values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/support/planned.h"

namespace ae::fusion::testing {
namespace {

using ::testing::ElementsAre;

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

TEST(Hazards, AStoreOfAValueThatWasLoadedEarlyComesAfterLaterReads) {
  Program p;
  const int a = p.buffer({1, 2}), x = p.buffer({10, 20}), t = p.fresh(2), r = p.fresh(2);
  scale(p, {2}, p.dense(a, {2}), p.dense(t, {2}));
  p.add(Opcode::add, {2}, {p.dense(x, {2}), p.dense(t, {2})}, {p.dense(r, {2})});
  p.add(Opcode::copy, {2}, {p.dense(a, {2})}, {p.dense(x, {2})});
  EXPECT_THAT(launches_of(p), ElementsAre(ElementsAre(0, 1, 2)));
  const Contents contents = run_fused(p);
  EXPECT_THAT(values_of<float>(contents, r), ElementsAre(12, 24));
  EXPECT_THAT(values_of<float>(contents, x), ElementsAre(1, 2));
}

TEST(Hazards, AMergedSegmentStillKnowsWhatItReads) {
  Program p;
  const int a = p.buffer({1, 2, 3, 4}), b = p.buffer({10, 20, 30, 40, 50}), u = p.fresh(4), v = p.fresh(4),
            w = p.fresh(4);
  scale(p, {4}, p.dense(a, {4}), p.dense(u, {4}));
  scale(p, {4}, p.dense(b, {4}), p.dense(v, {4}));
  p.add(Opcode::add, {4}, {p.dense(u, {4}), p.dense(v, {4})}, {p.dense(w, {4})});
  scale(p, {4}, p.dense(u, {4}), p.dense(b, {4}, 1));
  EXPECT_THAT(launches_of(p), ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3)));
  const Contents contents = run_fused(p);
  EXPECT_THAT(values_of<float>(contents, w), ElementsAre(22, 44, 66, 88));
  EXPECT_THAT(values_of<float>(contents, b), ElementsAre(10, 4, 8, 12, 16));
}

TEST(Hazards, AnotherDtypeOfTheSameMemoryOrders) {
  Program p;
  const int x = p.integers({0x100000001, 2}), y = p.fresh(4, DType::kI32);
  Op& op = p.add(Opcode::add, {2}, {p.dense(x, {2}), Input(int64_t{1})}, {p.dense(x, {2})});
  op.common = DType::kI64;
  Op& copy = p.add(Opcode::copy, {4}, {View{x, DType::kI32, 0, {1}, {}}}, {p.dense(y, {4})});
  copy.common = DType::kI32;
  EXPECT_EQ(launches_of(p).size(), 2u);
  EXPECT_THAT(values_of<int32_t>(run_fused(p), y), ElementsAre(2, 1, 3, 0));
}

}  // namespace
}  // namespace ae::fusion::testing
