#include "fusion/partition/dims.h"

#include <gtest/gtest.h>

#include <random>

namespace ae::fusion {
namespace {

constexpr bool kept = false, reduced = true;

Strides strides(std::initializer_list<int64_t> values) {
  Strides out{};
  std::copy(values.begin(), values.end(), out.begin());
  return out;
}

NodeSpace space_of(std::vector<int64_t> sizes, uint32_t mask, Opcode opcode = Opcode::sum) {
  NodeView node;
  node.opcode = opcode;
  node.rank = static_cast<int>(sizes.size());
  node.sizes = sizes.data();
  node.reduced = mask;
  return node_space(node);
}

TEST(NodeSpace, LeavesOutDimensionsOfSizeOne) {
  const NodeSpace space = space_of({1, 4, 1, 5}, 0b1000);
  EXPECT_EQ(space.dims, (Dims{{4, kept}, {5, reduced}}));
  EXPECT_EQ(space.from, (std::vector<int>{1, 3}));
  EXPECT_TRUE(space.reduces);
}

TEST(NodeSpace, MarksAReductionOverOneElement) {
  const NodeSpace space = space_of({4, 1}, 0b10);
  EXPECT_EQ(space.dims, (Dims{{4, kept}, {1, reduced}}));
  EXPECT_EQ(space.from, (std::vector<int>{0, -1}));
}

TEST(NodeSpace, HasOneDimensionOfSizeZeroForAReductionOverNothing) {
  const NodeSpace space = space_of({3, 0, 4, 2}, 0b0110);
  EXPECT_EQ(space.dims, (Dims{{3, kept}, {2, kept}, {0, reduced}}));
  EXPECT_EQ(kept_points(space.dims), 6);
  EXPECT_EQ(points(space.dims), 0);
}

TEST(NodeSpace, KeepsAnEmptyKeptDimension) {
  EXPECT_EQ(kept_points(space_of({0, 4}, 0b10).dims), 0);
  EXPECT_EQ(kept_points(space_of({0, 4}, 0, Opcode::add).dims), 0);
}

TEST(NodeSpace, OfAPointwiseScalarHasNoDimensions) {
  EXPECT_TRUE(space_of({}, 0, Opcode::add).dims.empty());
  EXPECT_TRUE(space_of({1, 1}, 0, Opcode::add).dims.empty());
}

TEST(Refine, FindsTheCoarsestCommonDimensions) {
  const auto check = [](const Dims& a, const Dims& b, const std::optional<Dims>& expected) {
    EXPECT_EQ(refine(a, b, false), expected);
    EXPECT_EQ(refine(b, a, false), expected);
  };
  check({{4}, {6}}, {{4}, {6}}, Dims{{4}, {6}});
  check({{24}}, {{4}, {6}}, Dims{{4}, {6}});
  check({{4}, {6}}, {{2}, {12}}, Dims{{2}, {2}, {6}});
  check({{2}, {3}, {4}}, {{6}, {4}}, Dims{{2}, {3}, {4}});
  check({{4}, {6}}, {{6}, {4}}, std::nullopt);  // 6 and 4 share no grouping
  check({{4}, {6}}, {{8}, {3}}, Dims{{4}, {2}, {3}});
  check({}, {}, Dims{});
}

TEST(Refine, TakesReducedFlagsFromWhicheverListHasThem) {
  EXPECT_EQ(refine({{4, kept}, {6, reduced}}, {{24}}, false), (Dims{{4, kept}, {6, reduced}}));
  EXPECT_EQ(refine({{24}}, {{4, kept}, {6, reduced}}, true), (Dims{{4, kept}, {6, reduced}}));
  EXPECT_EQ(refine({{2}, {2}, {6}}, {{4, reduced}, {6, kept}}, true), (Dims{{2, reduced}, {2, reduced}, {6, kept}}));
}

TEST(Refine, WantsFlagsToAgreeWhereBothListsHaveThem) {
  const Dims rows{{4, kept}, {6, reduced}}, columns{{4, reduced}, {6, kept}}, all{{24, reduced}};
  EXPECT_EQ(refine(rows, rows, true), rows);
  EXPECT_EQ(refine(rows, columns, true), std::nullopt);
  EXPECT_EQ(refine(rows, all, true), std::nullopt);
  EXPECT_EQ(refine(all, rows, true), std::nullopt);
}

TEST(Refine, KeepsTheMarkOfAReductionOverOneElement) {
  const Dims marked{{6, kept}, {1, reduced}};
  EXPECT_EQ(refine({{6}}, marked, true), marked);
  EXPECT_EQ(refine(marked, {{6}}, false), marked);
  EXPECT_EQ(refine(marked, {{2}, {3}}, false), (Dims{{2, kept}, {3, kept}, {1, reduced}}));
  EXPECT_EQ(refine(marked, marked, true), marked);
  EXPECT_EQ(refine({}, {{1, reduced}}, true), (Dims{{1, reduced}}));
  EXPECT_EQ(refine(marked, {{2, kept}, {3, reduced}}, true), std::nullopt);
  EXPECT_EQ(refine({{6, reduced}}, marked, true), std::nullopt);
}

TEST(Refine, GivesUpBeyondTheLargestRank) {
  Dims twos(12, {2}), threes(12, {3}), many(13, {2});
  EXPECT_TRUE(refine(twos, twos, false));
  EXPECT_FALSE(refine(many, many, false));
  EXPECT_FALSE(refine(twos, threes, false));
}

TEST(RefineKept, SplitsKeptDimensionsOnly) {
  EXPECT_EQ(refine_kept({{6, kept}, {4, reduced}}, {{6}}), (Dims{{6, kept}, {4, reduced}}));
  EXPECT_EQ(refine_kept({{6, kept}, {4, reduced}}, {{2}, {3}}), (Dims{{2, kept}, {3, kept}, {4, reduced}}));
  EXPECT_EQ(refine_kept({{2, kept}, {4, reduced}, {3, kept}}, {{6}}), (Dims{{2, kept}, {4, reduced}, {3, kept}}));
  EXPECT_EQ(refine_kept({{4, kept}, {5, reduced}, {9, kept}}, {{2}, {6}, {3}}),
            (Dims{{2, kept}, {2, kept}, {5, reduced}, {3, kept}, {3, kept}}));
  EXPECT_EQ(refine_kept({{4, kept}, {5, reduced}}, {{3}}), std::nullopt);
}

TEST(MapStrides, SplitsDimensions) {
  EXPECT_EQ(map_strides({{24}}, strides({2}), {{4}, {6}}, false), strides({12, 2}));
  EXPECT_EQ(map_strides({{4}, {6}}, strides({1, 4}), {{2}, {2}, {6}}, false), strides({2, 1, 4}));
  EXPECT_EQ(map_strides({{6, kept}, {1, reduced}}, strides({5, 0}), {{2}, {3}, {1, reduced}}, false),
            strides({15, 5, 0}));
}

TEST(MapStrides, LeavesReducedDimensionsAtZeroWhenOnlyKeptOnesAreMeant) {
  EXPECT_EQ(map_strides({{6}}, strides({1}), {{2, kept}, {4, reduced}, {3, kept}}, true), strides({3, 0, 1}));
  EXPECT_EQ(map_strides({{2}, {3}}, strides({1, 2}), {{2, kept}, {3, kept}, {4, reduced}}, true), strides({1, 2, 0}));
}

/// Offset of a row-major position.
int64_t offset_at(const Dims& dims, const Strides& steps, int64_t position) {
  int64_t offset = 0;
  for (size_t d = dims.size(); d-- > 0;) {
    offset += position % dims[d].size * steps[d];
    position /= dims[d].size;
  }
  return offset;
}

TEST(MapStrides, KeepsTheOffsetOfEveryPoint) {
  std::mt19937 engine(1);
  const auto grouped = [&](const std::vector<int64_t>& factors) {
    Dims dims;
    for (size_t i = 0; i < factors.size(); ++i)
      if (i == 0 || engine() % 2)
        dims.push_back({factors[i]});
      else
        dims.back().size *= factors[i];
    return dims;
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<int64_t> factors(1 + engine() % 6);
    for (int64_t& factor : factors) factor = 2 + engine() % 3;
    const Dims a = grouped(factors), b = grouped(factors);
    const std::optional<Dims> fine = refine(a, b, false);
    ASSERT_TRUE(fine);
    Strides of_a{};
    for (size_t d = 0; d < a.size(); ++d) of_a[d] = static_cast<int64_t>(engine() % 50);
    const Strides of_fine = map_strides(a, of_a, *fine, false);
    for (int64_t p = 0; p < points(a); ++p) ASSERT_EQ(offset_at(a, of_a, p), offset_at(*fine, of_fine, p));
  }
}

TEST(RowMajor, CountsAllOrTheKeptDimensions) {
  const Dims dims{{2, kept}, {3, reduced}, {4, kept}};
  EXPECT_EQ(row_major(dims, false), strides({12, 4, 1}));
  EXPECT_EQ(row_major(dims, true), strides({4, 0, 1}));
}

TEST(KeptLevel, MeansStrideZeroInAllReducedDimensions) {
  const Dims dims{{4, kept}, {6, reduced}, {1, reduced}};
  EXPECT_TRUE(is_kept_level(dims, strides({1, 0, 0})));
  EXPECT_TRUE(is_kept_level(dims, strides({0, 0, 5})));  // a size of 1 is never stepped over
  EXPECT_FALSE(is_kept_level(dims, strides({0, 1, 0})));
  EXPECT_FALSE(is_kept_level({{4, kept}}, strides({0})));  // nothing is reduced: there is one level
}

}  // namespace
}  // namespace ae::fusion
