#include "fusion/flush/policy.h"

#include <gtest/gtest.h>

namespace ae::fusion {
namespace {

TEST(Policy, IsThisTable) {
  constexpr PolicySettings kUnfused{}, kAdaptive{.adaptive = true, .window = 100, .bytes_budget = 1000},
      kPeriodic{.adaptive = true, .window = 100, .bytes_budget = 1000, .period = 3};
  const struct {
    const char* what;
    PolicySettings settings;
    PolicyState state;
    std::optional<FlushReason> decision;
  } kTable[] = {
      {"unfused: each operator is a flush", kUnfused, {1, 0, false}, FlushReason::unfused},
      {"unfused wins over all else", kUnfused, {5000, int64_t{1} << 40, true}, FlushReason::unfused},
      {"a trace grows", kAdaptive, {1, 0, false}, std::nullopt},
      {"the end of a known plan alone is no reason", kAdaptive, {99, 1000, true}, std::nullopt},
      {"one below the window", kAdaptive, {99, 0, false}, std::nullopt},
      {"the window is full", kAdaptive, {100, 0, false}, FlushReason::window_full},
      {"the window was passed", kAdaptive, {101, 0, false}, FlushReason::window_full},
      {"exactly the bytes budget is within it", kAdaptive, {2, 1000, true}, std::nullopt},
      {"over the budget at a known end", kAdaptive, {2, 1001, true}, FlushReason::bytes_budget},
      {"over the budget elsewhere: on to the next known end", kAdaptive, {2, 1001, false}, std::nullopt},
      {"twice the budget is the last that is waited for", kAdaptive, {2, 2000, false}, std::nullopt},
      {"over twice the budget anywhere", kAdaptive, {2, 2001, false}, FlushReason::bytes_budget},
      {"bytes that were dropped may go below zero", kAdaptive, {2, -5, true}, std::nullopt},
      {"a period that is not over", kPeriodic, {2, 0, false}, std::nullopt},
      {"a period that is over", kPeriodic, {3, 0, false}, FlushReason::forced_period},
      {"the period comes before the window", kPeriodic, {100, 0, false}, FlushReason::forced_period},
      {"a learned cut", kAdaptive, {50, 0, true, true}, FlushReason::device_idle},
      {"a full window comes before a learned cut", kAdaptive, {100, 0, true, true}, FlushReason::window_full},
      {"the budget holds within a period too", kPeriodic, {2, 2001, false}, FlushReason::bytes_budget},
  };
  for (const auto& row : kTable) EXPECT_EQ(decide(row.settings, row.state), row.decision) << row.what;
}

TEST(FlushReasons, HaveNamesAndTexts) {
  EXPECT_STREQ(name_of(FlushReason::value_read), "value_read");
  EXPECT_STREQ(text_of(FlushReason::window_full), "the window was full");
  EXPECT_STREQ(name_of(static_cast<FlushReason>(kFlushReasonCount - 1)), "shutdown");
}

}  // namespace
}  // namespace ae::fusion
