#include "fusion/flush/cuts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace ae::fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint32_t kMin = kMinPiece;

Plan::LaunchInfo launch(std::vector<uint32_t> nodes) { return {.nodes = std::move(nodes)}; }

/// A launch of all operators from `first` to `last`.
Plan::LaunchInfo launch_of(uint32_t first, uint32_t last) {
  std::vector<uint32_t> nodes(last - first + 1);
  std::iota(nodes.begin(), nodes.end(), first);
  return launch(std::move(nodes));
}

TEST(Cuts, AShortTraceIsNotCut) {
  EXPECT_THAT(choose_pieces({}, 0), IsEmpty());
  EXPECT_THAT(choose_pieces({}, 2 * kMin - 1), IsEmpty());
}

TEST(Cuts, WithoutLaunchesPiecesAreAsShortAsTheyMayBe) {
  EXPECT_THAT(choose_pieces({}, 2 * kMin), ElementsAre(kMin));
  EXPECT_THAT(choose_pieces({}, 3 * kMin), ElementsAre(kMin, kMin));
}

TEST(Cuts, StandBetweenLaunches) {
  const std::vector<Plan::LaunchInfo> launches{launch_of(0, kMin + 4), launch_of(kMin + 5, 3 * kMin)};
  EXPECT_THAT(choose_pieces(launches, 3 * kMin + 1), ElementsAre(kMin + 5));
}

TEST(Cuts, SplitTheFewestLaunches) {
  // One launch of first and last operator is split by any cut, the others only by those inside of them.
  const std::vector<Plan::LaunchInfo> launches{launch({3 * kMin - 2, 0}), launch_of(1, kMin + 9),
                                               launch_of(kMin + 10, kMin + 12), launch_of(kMin + 5, 2 * kMin)};
  EXPECT_THAT(choose_pieces(launches, 3 * kMin - 1), ElementsAre(kMin));
  const std::vector<Plan::LaunchInfo> others{launch({3 * kMin - 2, 0}), launch_of(1, kMin + 9),
                                             launch_of(kMin + 10, 2 * kMin)};
  EXPECT_THAT(choose_pieces(others, 3 * kMin - 1), ElementsAre(kMin + 10));
}

TEST(Cuts, InsideOfALongLaunchPiecesAreOfTheLeastLength) {
  EXPECT_THAT(choose_pieces(std::vector{launch_of(0, 4 * kMin - 1)}, 4 * kMin), ElementsAre(kMin, kMin, kMin));
}

}  // namespace
}  // namespace ae::fusion
