// The number types: conversions, masks, halves, shifts and selection do in every lane what C++ does for one number.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "device/math/vec.h"

namespace {

using ae::math::convert;
using ae::math::Vec;

template <class T>
Vec<T, 16> sixteen(const std::vector<T>& numbers) {
  Vec<T, 16> v(T(0));
  for (int lane = 0; lane < 16; ++lane) v.set(lane, numbers[size_t(lane) % numbers.size()]);
  return v;
}

/// Each lane converts like the number alone.
template <class To, class From>
void expect_converts_alike(const std::vector<From>& numbers) {
  for (size_t start = 0; start < numbers.size(); ++start) {
    std::vector<From> block(numbers.begin() + int64_t(start), numbers.end());
    const auto converted = convert<To>(sixteen(block));
    for (int lane = 0; lane < 16; ++lane) {
      const To alone = convert<To>(block[size_t(lane) % block.size()]);
      EXPECT_EQ(converted[lane], alone) << +block[size_t(lane) % block.size()];
    }
  }
}

template <class From>
void expect_converts_to_all(const std::vector<From>& numbers) {
  expect_converts_alike<int8_t>(numbers);
  expect_converts_alike<uint8_t>(numbers);
  expect_converts_alike<int16_t>(numbers);
  expect_converts_alike<uint16_t>(numbers);
  expect_converts_alike<int32_t>(numbers);
  expect_converts_alike<uint32_t>(numbers);
  expect_converts_alike<int64_t>(numbers);
  expect_converts_alike<uint64_t>(numbers);
  expect_converts_alike<float>(numbers);
  expect_converts_alike<double>(numbers);
}

template <class T>
std::vector<T> integers() {
  std::vector<T> r = {0, 1, 2, 77, T(-1), T(-2), std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
  std::mt19937_64 random(5);
  for (int i = 0; i < 24; ++i) r.push_back(T(random()));
  return r;
}

TEST(MathVec, integers_convert_like_one_number) {
  expect_converts_to_all(integers<int8_t>());
  expect_converts_to_all(integers<uint8_t>());
  expect_converts_to_all(integers<int16_t>());
  expect_converts_to_all(integers<uint16_t>());
  expect_converts_to_all(integers<int32_t>());
  expect_converts_to_all(integers<uint32_t>());
  expect_converts_to_all(integers<int64_t>());
  expect_converts_to_all(integers<uint64_t>());
}

TEST(MathVec, floats_convert_like_one_number_also_out_of_range) {
  const std::vector<double> numbers = {
      0.0,    -0.0,   0.9,     -0.9,         1.5,          -1.5,          127.9,        128,          255.5,
      300,    -300,   65536.5, 2147483647.5, 2147483648.0, -2147483649.0, 4294967295.5, 4294967296.0, 9.2e18,
      9.3e18, 1.8e19, 1.9e19,  -9.3e18,      1e30,         -1e30,         INFINITY,     -INFINITY};
  expect_converts_to_all(numbers);
  std::vector<float> floats;
  for (const double x : numbers) floats.push_back(float(x));
  expect_converts_to_all(floats);
}

TEST(MathVec, out_of_range_floats_convert_as_x86_does) {
  // cvttsd2si gives the lowest integer; narrower results are low bits of a wider conversion.
  EXPECT_EQ(convert<int32_t>(3e9), INT32_MIN);
  EXPECT_EQ(convert<int32_t>(double(NAN)), INT32_MIN);
  EXPECT_EQ(convert<int64_t>(1e19f), INT64_MIN);
  EXPECT_EQ(convert<uint8_t>(300.0f), 300 - 256);
  EXPECT_EQ(convert<int8_t>(200.0f), 200 - 256);
  EXPECT_EQ(convert<uint32_t>(-1.0f), 0xffffffffu);
  EXPECT_EQ(convert<uint64_t>(-1.0), 0xffffffffffffffffu);
  EXPECT_EQ(convert<uint64_t>(1e19), 10000000000000000000u);
}

TEST(MathVec, masks_select_lanes) {
  const auto x = sixteen<float>({-2, -1, 0, 1, 2, NAN});
  const auto negative = x < Vec<float, 16>(0.0f);
  const auto chosen = ae::math::select(negative, Vec<float, 16>(7.0f), x);
  EXPECT_EQ(chosen[0], 7);
  EXPECT_EQ(chosen[2], 0);
  EXPECT_TRUE(std::isnan(chosen[5]));
  EXPECT_TRUE(ae::math::any(negative));
  EXPECT_FALSE(ae::math::all(negative));
  EXPECT_FALSE(ae::math::any(negative & ae::math::mask_not(negative)));
  EXPECT_TRUE(ae::math::all(negative | ae::math::mask_not(negative)));
  EXPECT_TRUE(ae::math::is_nan(x)[5]);
  EXPECT_FALSE(ae::math::is_nan(x)[4]);
}

TEST(MathVec, any_sees_a_single_lane_wherever_it_is) {
  for (int lane = 0; lane < 16; ++lane) {
    Vec<int32_t, 16> words(0);
    words.set(lane, -1);
    EXPECT_TRUE(ae::math::any(words));
    Vec<int64_t, 16> longs(0);
    longs.set(lane, -1);
    EXPECT_TRUE(ae::math::any(longs));
    Vec<int8_t, 16> bytes(int8_t(0));
    bytes.set(lane, -1);
    EXPECT_TRUE(ae::math::any(bytes));
  }
}

TEST(MathVec, halves_and_joins_keep_the_lanes_order) {
  Vec<int32_t, 16> v(0);
  for (int lane = 0; lane < 16; ++lane) v.set(lane, lane);
  EXPECT_EQ(ae::math::low_half(v)[7], 7);
  EXPECT_EQ(ae::math::high_half(v)[0], 8);
  const auto back = ae::math::join(ae::math::high_half(v), ae::math::low_half(v));
  for (int lane = 0; lane < 16; ++lane) EXPECT_EQ(back[lane], (lane + 8) % 16);
}

TEST(MathVec, integer_arithmetic_wraps_and_shifts) {
  const auto x = sixteen(integers<int32_t>());
  const auto y = sixteen<int32_t>({0, 1, 5, 31});
  const auto left = x << y, right = x >> y, fixed = x >> 3;
  for (int lane = 0; lane < 16; ++lane) {
    EXPECT_EQ(left[lane], int32_t(uint32_t(x[lane]) << y[lane]));
    EXPECT_EQ(right[lane], x[lane] >> y[lane]);
    EXPECT_EQ(fixed[lane], x[lane] >> 3);
  }
  EXPECT_EQ(ae::math::abs(Vec<int32_t, 16>(INT32_MIN))[3], INT32_MIN);
  EXPECT_EQ(ae::math::abs(INT32_MIN), INT32_MIN);
  EXPECT_EQ(ae::math::abs(-5), 5);
}

TEST(MathVec, constants_keep_the_sign_of_zero) {
  EXPECT_TRUE(std::signbit(Vec<float, 16>(-0.0f)[9]));
  EXPECT_TRUE(std::signbit(Vec<double, 16>(-0.0)[9]));
}

TEST(MathVec, powers_of_two_scale_with_one_rounding) {
  // 1.5 * 2^-149 is halfway between 2^-149 and 2^-148: ties to even; a detour through 2^-149 * 1.4 must not round
  // twice.
  EXPECT_EQ(ae::math::scale_by_power_of_two(1.5f, -149.0f), 0x1p-148f);
  EXPECT_EQ(ae::math::scale_by_power_of_two(1.25f, -149.0f), 0x1p-149f);
  EXPECT_EQ(ae::math::scale_by_power_of_two(1.0f, -150.0f), 0.0f);
  EXPECT_EQ(ae::math::scale_by_power_of_two(1.5f, 127.0f), 0x1.8p127f);
  EXPECT_EQ(ae::math::scale_by_power_of_two(1.5, -1074.0), 0x1p-1073);
  EXPECT_EQ((ae::math::scale_by_power_of_two(Vec<float, 16>(1.5f), Vec<float, 16>(-149.0f))[7]), 0x1p-148f);
}

}  // namespace
