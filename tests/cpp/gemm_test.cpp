// Our own matrix product against a plain one that sums in the order that gemm.h states.
#include "device/host/gemm/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <tuple>
#include <vector>

namespace ae::device::host::gemm {
namespace {

struct Case {
  int64_t m, n, k;
  bool a_turned, b_turned;
  int64_t padding;  // between rows
  int self;         // 0: none, 1: a matrix, 2: a row, 3: a column
  float alpha = 1, beta = 1;
};

/// A matrix with room between its rows (or columns, when it lies turned).
struct Stored {
  std::vector<float> numbers;
  Matrix matrix;
  Stored(int64_t rows, int64_t columns, bool turned, int64_t padding, std::mt19937& random) {
    const int64_t stride = (turned ? rows : columns) + padding;
    numbers.resize(static_cast<size_t>((turned ? columns : rows) * stride));
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (float& x : numbers) x = uniform(random);
    matrix = {numbers.data(), turned ? 1 : stride, turned ? stride : 1};
  }
};

float at(const Matrix& x, int64_t i, int64_t j) { return x.data[i * x.row_stride + j * x.column_stride]; }

float expected(const Product& p, int64_t i, int64_t j) {
  float sum = 0;
  for (int64_t first = 0; first < p.k; first += 1024) {
    float part = 0;
    for (int64_t q = first; q < std::min(p.k, first + 1024); ++q) part = std::fma(at(p.a, i, q), at(p.b, q, j), part);
    sum = first == 0 ? part : sum + part;
  }
  sum = p.alpha * sum;
  return p.self.data ? sum + p.beta * at(p.self, i, j) : sum;
}

void check(const Case& c) {
  std::mt19937 random(7);
  const Stored a(c.m, c.k, c.a_turned, c.padding, random), b(c.k, c.n, c.b_turned, c.padding, random),
      self(c.m, c.n, false, c.padding, random);
  std::vector<float> out(static_cast<size_t>(c.m * (c.n + 3)), 9.0f);
  Product product{c.m, c.n, c.k, a.matrix, b.matrix, out.data(), c.n + 3, {}, c.alpha, c.beta};
  if (c.self) product.self = self.matrix;
  if (c.self == 2) product.self.row_stride = 0;
  if (c.self == 3) product.self.column_stride = 0;
  multiply(product);
  for (int64_t i = 0; i < c.m; ++i) {
    for (int64_t j = 0; j < c.n + 3; ++j) {
      const float want = j < c.n ? expected(product, i, j) : 9.0f;
      ASSERT_EQ(out[static_cast<size_t>(i * (c.n + 3) + j)], want)
          << c.m << "x" << c.n << "x" << c.k << " at " << i << ", " << j;
    }
  }
}

TEST(Gemm, AllKindsOfSizesAndLayoutsGiveTheDocumentedSums) {
  const std::tuple<int64_t, int64_t, int64_t> sizes[] = {{1, 1, 1},    {4, 16, 4},    {13, 31, 5},
                                                         {14, 32, 16}, {15, 33, 17},  {29, 70, 40},
                                                         {64, 64, 64}, {3, 40, 1030}, {20, 65, 2100}};
  for (const auto& [m, n, k] : sizes)
    for (const bool a_turned : {false, true})
      for (const bool b_turned : {false, true})
        for (const int self : {0, 1, 2, 3})
          ASSERT_NO_FATAL_FAILURE(check(
              {m, n, k, a_turned, b_turned, (m + n) % 3, self, self == 1 ? 0.5f : 1.0f, self == 3 ? -2.0f : 1.0f}));
}

TEST(Gemm, RowsThatCollideInTheCacheArePackedWithoutAChange) {
  check({30, 70, 1024, false, false, 0, 2});
  check({30, 70, 2048, false, true, 0, 1});
}

TEST(Gemm, PiecesHaveTheBitsOfTheWhole) {
  std::mt19937 random(3);
  const Stored a(50, 200, false, 0, random), b(200, 90, true, 0, random);
  std::vector<float> whole(50 * 90), cut(50 * 90);
  multiply({50, 90, 200, a.matrix, b.matrix, whole.data(), 90, {}});
  for (const auto& [row, rows] : {std::pair<int64_t, int64_t>{0, 17}, {17, 33}}) {
    for (const auto& [column, columns] : {std::pair<int64_t, int64_t>{0, 40}, {40, 50}}) {
      Matrix a_part = a.matrix, b_part = b.matrix;
      a_part.data += row * a_part.row_stride;
      b_part.data += column * b_part.column_stride;
      multiply({rows, columns, 200, a_part, b_part, cut.data() + row * 90 + column, 90, {}});
    }
  }
  EXPECT_EQ(std::memcmp(whole.data(), cut.data(), whole.size() * sizeof(float)), 0);
}

TEST(Gemm, SelfMayBeTheOutputItself) {
  std::mt19937 random(5);
  const Stored a(20, 2000, false, 0, random), b(2000, 48, false, 0, random), self(20, 48, false, 0, random);
  std::vector<float> apart(20 * 48), in_place = self.numbers;
  multiply({20, 48, 2000, a.matrix, b.matrix, apart.data(), 48, self.matrix, 1, 0.5f});
  multiply({20, 48, 2000, a.matrix, b.matrix, in_place.data(), 48, {in_place.data(), 48, 1}, 1, 0.5f});
  EXPECT_EQ(apart, in_place);
}

}  // namespace
}  // namespace ae::device::host::gemm
