#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/cpp/ops_node.h"

namespace ae::fusion {
namespace {

using testing::Node;
using testing::NodeContext;
using testing::NodeOperand;

constexpr int64_t kCount = 20000;

NodeOperand scalar(DType type, double value) { return {type, true, {}, {value}}; }
NodeOperand output(DType type) { return {type, false, {1}, std::vector<double>(kCount)}; }
NodeOperand seed_of(double seed) { return scalar(DType::kI64, seed); }

std::vector<std::vector<double>> draw(Opcode opcode, DType common, std::vector<NodeOperand> inputs,
                                      std::vector<DType> outputs, std::vector<int64_t> attributes = {},
                                      double seed = 42, double offset = 7) {
  inputs.push_back(seed_of(seed));
  inputs.push_back(seed_of(offset));
  Node node{opcode, common, std::move(attributes), {kCount}, 0, std::move(inputs), {}};
  for (DType type : outputs) node.outputs.push_back(output(type));
  return NodeContext(node).run();
}

double mean(const std::vector<double>& x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}
double deviation(const std::vector<double>& x) {
  const double m = mean(x);
  double sum = 0;
  for (double value : x) sum += (value - m) * (value - m);
  return std::sqrt(sum / static_cast<double>(x.size()));
}

/// Largest distance between the empirical distribution function and the given one (Kolmogorov and Smirnov).
template <class Cdf>
double distance(std::vector<double> x, Cdf cdf) {
  std::sort(x.begin(), x.end());
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    worst = std::max(worst, std::fabs(cdf(x[i]) - (static_cast<double>(i) + 0.5) / static_cast<double>(x.size())));
  }
  return worst;
}
// A right sampler exceeds this with a probability below 1e-6: sqrt(ln(2e6) / 2 / 20,000).
constexpr double kMaxDistance = 0.0195;

TEST(OpsRandom, bits_are_those_of_philox_4x32_10) {
  // The published known answers for a counter and key of zeros, and of ones.
  const uint32_t zeros[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  const uint32_t ones[] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
  for (int word = 0; word < 4; ++word) {
    EXPECT_EQ(random_bits(16 * word, 0, 0), zeros[word]);
    EXPECT_EQ(random_bits(-64 + 15 + 16 * word, -1, -1), ones[word]);
  }
}

TEST(OpsRandom, uniform_fills_its_range) {
  for (DType type : {DType::kF32, DType::kF64}) {
    const auto x = draw(Opcode::uniform, type, {scalar(DType::kF64, -1), scalar(DType::kF64, 3)}, {type})[0];
    EXPECT_GE(*std::min_element(x.begin(), x.end()), -1);
    EXPECT_LT(*std::max_element(x.begin(), x.end()), 3);
    EXPECT_LT(distance(x, [](double v) { return (v + 1) / 4; }), kMaxDistance);
  }
  for (DType type : {DType::kF16, DType::kBF16}) {
    const auto x = draw(Opcode::uniform, type, {scalar(DType::kF64, 0), scalar(DType::kF64, 1)}, {type})[0];
    EXPECT_GE(*std::min_element(x.begin(), x.end()), 0);
    EXPECT_LT(*std::max_element(x.begin(), x.end()), 1);
    EXPECT_NEAR(mean(x), 0.5, 0.02);
  }
}

TEST(OpsRandom, normal_has_the_normal_distribution) {
  for (DType type : {DType::kF32, DType::kF64}) {
    const auto x = draw(Opcode::normal, type, {scalar(DType::kF64, 2), scalar(DType::kF64, 0.5)}, {type})[0];
    EXPECT_NEAR(mean(x), 2, 0.02);
    EXPECT_NEAR(deviation(x), 0.5, 0.02);
    EXPECT_LT(distance(x, [](double v) { return 0.5 * std::erfc(-(v - 2) / 0.5 * M_SQRT1_2); }), kMaxDistance);
  }
}

TEST(OpsRandom, exponential_has_its_distribution_and_no_zeros) {
  const auto x = draw(Opcode::exponential, DType::kF32, {scalar(DType::kF64, 2)}, {DType::kF32})[0];
  EXPECT_GT(*std::min_element(x.begin(), x.end()), 0);
  EXPECT_LT(distance(x, [](double v) { return 1 - std::exp(-2 * v); }), kMaxDistance);
}

TEST(OpsRandom, bernoulli_gives_ones_with_its_probability) {
  for (double p : {0.0, 0.25, 1.0}) {
    const auto x = draw(Opcode::bernoulli, DType::kF32, {scalar(DType::kF64, p)}, {DType::kF32})[0];
    EXPECT_NEAR(mean(x), p, p == 0 || p == 1 ? 0 : 0.02);
    EXPECT_TRUE(std::all_of(x.begin(), x.end(), [](double v) { return v == 0 || v == 1; }));
  }
}

TEST(OpsRandom, random_int_covers_its_range_evenly) {
  for (int64_t wide : {0, 1}) {
    const auto x = draw(Opcode::random_int, DType::kI64, {scalar(DType::kI64, -3), scalar(DType::kI64, 8)},
                        {DType::kI64}, {wide})[0];
    for (int value = -3; value < 5; ++value) {
      EXPECT_NEAR(static_cast<double>(std::count(x.begin(), x.end(), value)) / kCount, 0.125, 0.015) << value;
    }
  }
}

TEST(OpsRandom, dropout_scales_what_it_keeps_and_tells_what_it_kept) {
  NodeOperand ones{DType::kF32, false, {1}, std::vector<double>(kCount, 3.0)};
  const auto results = draw(Opcode::dropout, DType::kF32, {ones, scalar(DType::kF64, 0.75), scalar(DType::kF64, 4)},
                            {DType::kF32, DType::kBool});
  EXPECT_NEAR(mean(results[1]), 0.75, 0.02);
  for (int64_t i = 0; i < kCount; ++i) ASSERT_EQ(results[0][i], results[1][i] * 12);
}

TEST(OpsRandom, seeds_and_offsets_give_other_numbers_and_the_same_ones_the_same) {
  const auto uniform = [](double seed, double offset) {
    return draw(Opcode::uniform, DType::kF32, {scalar(DType::kF64, 0), scalar(DType::kF64, 1)}, {DType::kF32}, {}, seed,
                offset)[0];
  };
  EXPECT_EQ(uniform(1, 2), uniform(1, 2));
  EXPECT_NE(uniform(1, 2), uniform(1, 3));
  EXPECT_NE(uniform(1, 2), uniform(2, 2));
}

}  // namespace
}  // namespace ae::fusion
