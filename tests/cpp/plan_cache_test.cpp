#include "fusion/plan/plan_cache.h"

#include <gtest/gtest.h>

namespace ae::fusion {
namespace {

using Needs = std::vector<BufferNeed>;
using Words = std::vector<uint64_t>;

constexpr BufferNeed kSeen{true, false, 16}, kUnseen{false, false, 16}, kHasBlock{true, true, 16},
    kLarger{true, false, 32};

std::shared_ptr<Plan> insert(PlanCache& cache, Words words, Needs needs) {
  auto plan = std::make_shared<Plan>();
  plan->words = std::move(words);
  plan->needs = std::move(needs);
  cache.insert(plan);
  return plan;
}

TEST(PlanCache, FindsByWordsAndNeeds) {
  PlanCache cache;
  const auto plan = insert(cache, {1, 2, 3}, {kSeen});
  EXPECT_EQ(cache.find({1, 2, 3}, {kSeen}), plan);
  EXPECT_EQ(cache.find({1, 2, 4}, {kSeen}), nullptr);
  EXPECT_EQ(cache.find({1, 2}, {kSeen}), nullptr);
  EXPECT_EQ(cache.find({1, 2, 3}, {kHasBlock}), nullptr);
  EXPECT_EQ(cache.find({1, 2, 3}, {kLarger}), nullptr);
  EXPECT_EQ(cache.find({1, 2, 3}, {kSeen, kSeen}), nullptr);
}

TEST(PlanCache, UsesAPlanThatKeepsMoreUntilTheSameNeedComesBack) {
  PlanCache cache;
  const auto large = insert(cache, {7}, {kSeen, kSeen});
  EXPECT_EQ(cache.find({7}, {kSeen, kUnseen}), large);
  EXPECT_EQ(cache.find({7}, {kSeen, kUnseen}), nullptr);  // the second time: an exact one is worth making
  const auto exact = insert(cache, {7}, {kSeen, kUnseen});
  EXPECT_EQ(cache.find({7}, {kSeen, kUnseen}), exact);
  EXPECT_EQ(cache.find({7}, {kSeen, kSeen}), large);
}

TEST(PlanCache, MakesExactPlansForNeedsThatTakeTurns) {
  PlanCache cache;
  const auto large = insert(cache, {7}, {kSeen, kSeen});
  EXPECT_EQ(cache.find({7}, {kSeen, kUnseen}), large);
  EXPECT_EQ(cache.find({7}, {kUnseen, kSeen}), large);
  EXPECT_EQ(cache.find({7}, {kSeen, kUnseen}), nullptr);
  EXPECT_EQ(cache.find({7}, {kUnseen, kSeen}), nullptr);
}

TEST(PlanCache, NeverUsesAPlanThatKeepsLess) {
  PlanCache cache;
  insert(cache, {7}, {kSeen, kUnseen});
  EXPECT_EQ(cache.find({7}, {kSeen, kSeen}), nullptr);
  EXPECT_EQ(cache.find({7}, {kUnseen, kSeen}), nullptr);
}

TEST(PlanCache, IsBoundedAndForgetsTheLeastRecentlyUsed) {
  PlanCache cache;
  const size_t length = PlanCache::kMaxWords / 4;
  const auto words = [&](uint64_t i) { return Words(length, i); };
  for (uint64_t i = 0; i < 4; ++i) insert(cache, words(i), {});
  EXPECT_EQ(cache.size(), 4u);
  EXPECT_NE(cache.find(words(0), {}), nullptr);  // 1 is the oldest now
  insert(cache, words(4), {});
  EXPECT_EQ(cache.size(), 4u);
  EXPECT_EQ(cache.find(words(1), {}), nullptr);
  EXPECT_NE(cache.find(words(0), {}), nullptr);
  EXPECT_NE(cache.find(words(4), {}), nullptr);
}

TEST(PlanCache, KeepsAPlanThatIsLargerThanItsBound) {
  PlanCache cache;
  insert(cache, {1}, {});
  const Words huge(PlanCache::kMaxWords + 1, 2);
  const auto plan = insert(cache, huge, {});
  EXPECT_EQ(cache.size(), 1u);
  EXPECT_EQ(cache.find(huge, {}), plan);
}

}  // namespace
}  // namespace ae::fusion
