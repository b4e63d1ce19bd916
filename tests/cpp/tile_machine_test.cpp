#include <gtest/gtest.h>

#include "device/host/native_tier.h"
#include "tests/cpp/tile_reference.h"

namespace ae::device::host::testing {
namespace {

/// Runs random programs with each of the options and compares all of the memory with the slow evaluation.
void check_random_programs(uint64_t seed, int count, int64_t points, bool with_reduction,
                           const std::vector<TileOptions>& options, int operations = 12, bool native = false) {
  for (int i = 0; i < count; ++i) {
    Random random(seed * 100'000 + i);
    const Space space = random_space(random, 1 + static_cast<int64_t>(random() % points), with_reduction);
    const TileCase tile_case = random_case(random, space, operations);
    const auto expected = run_slowly(tile_case);
    for (const TileOptions& option : options) {
      const auto actual = run_on_machine(tile_case, option, native);
      ASSERT_EQ(difference(tile_case, expected, actual), "")
          << "seed " << seed << " program " << i << " tile " << option.tile_elements << " layout " << option.layout
          << " splits " << option.splits;
    }
  }
}

TEST(TileMachine, PointwiseProgramsOfUpToSeventyPointsEqualTheSlowEvaluation) {
  check_random_programs(1, 1500, 70, false, {{}, {.tile_elements = 16}, {.tile_elements = 48}});
}

TEST(TileMachine, LargePointwiseProgramsEqualTheSlowEvaluation) {
  check_random_programs(2, 40, 20'000, false, {{}, {.tile_elements = 256}});
}

TEST(TileMachine, ReducingProgramsEqualTheSlowEvaluationInBothLayouts) {
  check_random_programs(
      3, 1500, 300, true,
      {{}, {.layout = 0}, {.layout = 1}, {.tile_elements = 64, .layout = 0}, {.tile_elements = 64, .layout = 1}});
}

TEST(TileMachine, LargeReducingProgramsEqualTheSlowEvaluationInBothLayoutsAndAllSplits) {
  check_random_programs(
      4, 60, 30'000, true,
      {{.layout = 0}, {.layout = 1}, {.layout = 0, .splits = 3}, {.layout = 1, .splits = 3}, {.splits = 64}});
}

TEST(TileMachine, ReductionsOfOperandsAsTheyAreEqualTheSlowEvaluation) {
  check_random_programs(5, 300, 40'000, true, {{.layout = 0}, {.layout = 1}, {.layout = 1, .splits = 2}}, 0);
}

/// Skipped in builds without LLVM.
class NativeCode : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!native::CompilerProcess::start()) GTEST_SKIP() << "there is no native compiler here";
  }
};

TEST_F(NativeCode, OfPointwiseProgramsEqualsTheSlowEvaluation) {
  check_random_programs(6, 300, 70, false, {{}, {.tile_elements = 16}}, 12, true);
  check_random_programs(7, 20, 20'000, false, {{}, {.tile_elements = 256}}, 30, true);
}

TEST_F(NativeCode, OfReducingProgramsEqualsTheSlowEvaluationInBothLayouts) {
  check_random_programs(8, 300, 300, true, {{.layout = 0}, {.layout = 1}, {.tile_elements = 64, .layout = 0}}, 12,
                        true);
  check_random_programs(9, 20, 30'000, true, {{.layout = 0}, {.layout = 1}, {.layout = 1, .splits = 3}}, 20, true);
}

}  // namespace
}  // namespace ae::device::host::testing
