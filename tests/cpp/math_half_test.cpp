// Conversions to and from the half types.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "device/math/half.h"

namespace {

using Floats = ae::math::Vec<float, 16>;
using Halves = ae::math::Vec<uint16_t, 16>;

/// The value of a half type's bits, from the definition: mantissa bits and exponent bias.
double value_of(uint16_t bits, int mantissa_bits, int bias) {
  const int top = (1 << (15 - mantissa_bits)) - 1;
  const int exponent = (bits & 0x7fff) >> mantissa_bits;
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  double magnitude = std::ldexp(mantissa, 1 - bias - mantissa_bits);
  if (exponent == top)
    magnitude = mantissa != 0 ? std::nan("") : INFINITY;
  else if (exponent != 0)
    magnitude = std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
  return bits & 0x8000 ? -magnitude : magnitude;
}

/// The half type's number nearest to x, ties to the even one: by searching, as the numbers of one sign are in order.
uint16_t nearest(float x, int mantissa_bits, int bias) {
  const int infinity = 0x7fff & ~((1 << mantissa_bits) - 1);
  const double magnitude = std::fabs(double(x));
  int low = 0, high = infinity;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (value_of(uint16_t(middle), mantissa_bits, bias) <= magnitude ? low : high) = middle;
  }
  const double below = value_of(uint16_t(low), mantissa_bits, bias);
  // For rounding, infinity stands where the next number would be.
  const double above = high == infinity ? std::ldexp(1.0, bias + 1) : value_of(uint16_t(high), mantissa_bits, bias);
  const double to_below = magnitude - below, to_above = above - magnitude;
  const int chosen = to_below < to_above || (to_below == to_above && low % 2 == 0) ? low : high;
  return uint16_t(chosen | (std::signbit(x) ? 0x8000 : 0));
}

/// All numbers of the half type, what lies halfway between them, and the neighbours of both; and random floats.
std::vector<float> floats(int mantissa_bits, int bias) {
  std::vector<float> numbers;
  const auto add_with_neighbours = [&](float x) {
    for (const float y : {std::nextafter(x, -INFINITY), x, std::nextafter(x, INFINITY)}) {
      numbers.push_back(y);
      numbers.push_back(-y);
    }
  };
  for (int bits = 0; bits < 0x7fff; ++bits) {
    const double here = value_of(uint16_t(bits), mantissa_bits, bias);
    const double next = value_of(uint16_t(bits + 1), mantissa_bits, bias);
    if (!std::isfinite(here)) break;
    add_with_neighbours(float(here));
    add_with_neighbours(float(std::isfinite(next)
                                  ? (here + next) / 2
                                  : here + (here - value_of(uint16_t(bits - 1), mantissa_bits, bias)) / 2));
  }
  std::mt19937 random(3);
  for (int i = 0; i < 100000; ++i) numbers.push_back(std::bit_cast<float>(uint32_t(random())));
  for (const float x :
       {INFINITY, -INFINITY, NAN, std::bit_cast<float>(0x7f800001u), std::bit_cast<float>(0xffffffffu)}) {
    numbers.push_back(x);
  }
  while (numbers.size() % 16 != 0) numbers.push_back(0);
  return numbers;
}

template <class F>
void check_rounding(int mantissa_bits, int bias, F convert) {
  const int infinity = 0x7fff & ~((1 << mantissa_bits) - 1);
  const std::vector<float> x = floats(mantissa_bits, bias);
  for (size_t i = 0; i < x.size(); i += 16) {
    const Halves block = convert(Floats::load(&x[i]));
    for (size_t lane = 0; lane < 16; ++lane) {
      const uint16_t alone = convert(x[i + lane]);
      if (std::isnan(x[i + lane])) {
        const int quiet = infinity | 1 << (mantissa_bits - 1);
        ASSERT_EQ(alone & quiet, quiet);
        ASSERT_EQ(block[int(lane)] & quiet, quiet);
        continue;
      }
      ASSERT_EQ(alone, nearest(x[i + lane], mantissa_bits, bias)) << std::hexfloat << x[i + lane];
      ASSERT_EQ(block[int(lane)], alone) << std::hexfloat << x[i + lane];
    }
  }
}

template <class F>
void check_widening(int mantissa_bits, int bias, F convert) {
  for (int start = 0; start < 0x10000; start += 16) {
    Halves bits;
    for (int lane = 0; lane < 16; ++lane) bits.set(lane, uint16_t(start + lane));
    const Floats block = convert(bits);
    for (int lane = 0; lane < 16; ++lane) {
      const double wanted = value_of(uint16_t(start + lane), mantissa_bits, bias);
      const float alone = convert(uint16_t(start + lane));
      if (std::isnan(wanted)) {
        ASSERT_TRUE(std::isnan(alone) && std::isnan(block[lane]));
        continue;
      }
      ASSERT_EQ(std::bit_cast<uint32_t>(alone), std::bit_cast<uint32_t>(float(wanted)));
      ASSERT_EQ(std::bit_cast<uint32_t>(block[lane]), std::bit_cast<uint32_t>(alone));
    }
  }
}

constexpr int kF16Mantissa = 10, kF16Bias = 15, kBF16Mantissa = 7, kBF16Bias = 127;

TEST(MathHalf, to_bf16_takes_the_nearest_ties_to_even) {
  check_rounding(kBF16Mantissa, kBF16Bias, [](auto x) { return ae::math::to_bf16(x); });
}
TEST(MathHalf, to_f16_takes_the_nearest_ties_to_even) {
  check_rounding(kF16Mantissa, kF16Bias, [](auto x) { return ae::math::to_f16(x); });
}
TEST(MathHalf, to_f16_without_its_instruction_takes_the_nearest_ties_to_even) {
  check_rounding(kF16Mantissa, kF16Bias, [](auto x) { return ae::math::to_f16_portable(x); });
}
TEST(MathHalf, from_bf16_is_exact) {
  check_widening(kBF16Mantissa, kBF16Bias, [](auto x) { return ae::math::from_bf16(x); });
}
TEST(MathHalf, from_f16_is_exact) {
  check_widening(kF16Mantissa, kF16Bias, [](auto x) { return ae::math::from_f16(x); });
}
TEST(MathHalf, from_f16_without_its_instruction_is_exact) {
  check_widening(kF16Mantissa, kF16Bias, [](auto x) { return ae::math::from_f16_portable(x); });
}

}  // namespace
