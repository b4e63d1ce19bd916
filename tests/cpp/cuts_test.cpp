#include "fusion/flush/cuts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/support/planned.h"

namespace ae::fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Planned;
using testing::Program;

constexpr uint32_t kMin = kMinPiece;

/// Costs of cutting after 0 to `operators` operators: `cost`, but nothing after those in `free`.
std::vector<int64_t> costs(uint32_t operators, int64_t cost, const std::vector<uint32_t>& free = {}) {
  std::vector<int64_t> all(operators + 1, cost);
  for (uint32_t at : free) all[at] = 0;
  return all;
}

TEST(Cuts, AShortTraceIsNotCut) {
  EXPECT_THAT(choose_pieces(costs(0, 0)), IsEmpty());
  EXPECT_THAT(choose_pieces(costs(2 * kMin - 1, 0)), IsEmpty());
}

TEST(Cuts, WhereAllPlacesAreEqualPiecesAreAsShortAsTheyMayBe) {
  EXPECT_THAT(choose_pieces(costs(2 * kMin, 0)), ElementsAre(kMin));
  EXPECT_THAT(choose_pieces(costs(4 * kMin, 5)), ElementsAre(kMin, kMin, kMin));
}

TEST(Cuts, StandWhereTheyAreCheapest) {
  EXPECT_THAT(choose_pieces(costs(3 * kMin + 1, 7, {kMin - 1, kMin + 5, 2 * kMin + 2})), ElementsAre(kMin + 5));
  EXPECT_THAT(choose_pieces(costs(4 * kMin, 7, {kMin + 5, 3 * kMin - 1})), ElementsAre(kMin + 5, 2 * kMin - 6));
}

TEST(Cuts, AreLeftOutWhereTheyCostMoreThanTheyGain) {
  EXPECT_THAT(choose_pieces(costs(9 * kMin, kMaxCutCost + 1)), IsEmpty());
  EXPECT_THAT(choose_pieces(costs(9 * kMin, kMaxCutCost + 1, {5 * kMin})), ElementsAre(5 * kMin));
  EXPECT_THAT(choose_pieces(costs(9 * kMin, kMaxCutCost + 1, {5 * kMin, 9 * kMin - 1})), ElementsAre(5 * kMin));
}

/// A program of two launches: a chain of three operators on `size` floats, and then its sum's square root.
struct TwoLaunches {
  explicit TwoLaunches(int64_t size) {
    const int x = p.fresh(size), sum = p.fresh(1);
    for (int i = 0; i < 3; ++i) testing::scale(p, {size}, p.dense(x, {size}), p.dense(x, {size}));
    p.library(testing::kAddInPlace, {p.dense(x, {size})}, {p.dense(x, {size})}, {1});
    p.reduce(Opcode::sum, {size}, 1, {p.dense(x, {size})}, {p.view(sum, {0})});
    p.add(Opcode::sqrt, {1}, {p.dense(sum, {1})}, {p.dense(sum, {1})});
  }
  std::vector<int64_t> costs() const {
    Planned planned(p);
    return cut_costs(planned.traced.trace, planned.plan->launches);
  }
  Program p;
};

TEST(Cuts, CostWhatTheTwoPartsOfALaunchBothUse) {
  EXPECT_THAT(TwoLaunches(1000).costs(),
              ElementsAre(0, kLaunchCost + 4000, kLaunchCost + 4000, 0, 0, kLaunchCost + 4, 0));
}

}  // namespace
}  // namespace ae::fusion
