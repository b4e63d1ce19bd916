// One number and sixteen: each function's scalar and vector instantiations give the same bits.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "tests/cpp/math_functions.h"

namespace {

using ae::math::int_like;
using ae::math::Vec;

/// Numbers of each sign and exponent, NaNs and infinities among them: the ends of the mantissa's range, its neighbours,
/// and `per_exponent` random ones in between.
template <class T>
std::vector<T> stratified(int per_exponent) {
  using U = std::make_unsigned_t<int_like<T>>;
  constexpr int kMantissa = std::numeric_limits<T>::digits - 1;
  constexpr U kMask = (U(1) << kMantissa) - 1;
  constexpr int kUpper = 1 << (sizeof(T) * 8 - kMantissa);
  std::mt19937_64 random(1);
  std::vector<T> numbers;
  for (int upper = 0; upper < kUpper; ++upper) {
    const U base = U(upper) << kMantissa;
    for (const U mantissa : {U(0), U(1), U(2), kMask >> 1, (kMask >> 1) + 1, kMask - 1, kMask}) {
      numbers.push_back(std::bit_cast<T>(U(base | mantissa)));
    }
    for (int i = 0; i < per_exponent; ++i) numbers.push_back(std::bit_cast<T>(U(base | (U(random()) & kMask))));
  }
  while (numbers.size() % 16 != 0) numbers.push_back(T(1));
  return numbers;
}

template <class T>
const std::vector<T>& inputs() {
  static const std::vector<T> numbers = stratified<T>(sizeof(T) == 4 ? 4096 : 256);
  return numbers;
}

template <class T>
bool same(T a, T b) {
  using U = int_like<T>;
  return std::bit_cast<U>(a) == std::bit_cast<U>(b) || (std::isnan(a) && std::isnan(b));
}

template <class T, class F>
void expect_same_bits(F f) {
  using V = Vec<T, 16>;
  const std::vector<T>& x = inputs<T>();
  ASSERT_GE(x.size(), sizeof(T) == 4 ? 2000000u : 1000000u);
  int64_t differing = 0;
  for (size_t i = 0; i < x.size(); i += 16) {
    T block[16];
    f(V::load(&x[i])).store(block);
    for (size_t lane = 0; lane < 16; ++lane) {
      const T alone = f(x[i + lane]);
      if (!same(alone, block[lane]) && differing++ == 0) {
        ADD_FAILURE() << std::hexfloat << "at " << x[i + lane] << ": " << alone << " alone, " << block[lane]
                      << " in a block";
      }
    }
  }
  EXPECT_EQ(differing, 0);
}

/// The second argument: the same numbers in another order, so that all exponents meet, and blocks of equal pairs.
template <class T, class F>
void expect_same_bits_of_two(F f) {
  using V = Vec<T, 16>;
  const std::vector<T>& x = inputs<T>();
  std::mt19937_64 random(2);
  int64_t differing = 0;
  for (size_t i = 0; i < x.size(); i += 16) {
    T y[16], block[16];
    for (T& number : y) number = x[random() % x.size()];
    if (i % 64 == 0) std::copy(&x[i], &x[i] + 16, y);
    f(V::load(&x[i]), V::load(y)).store(block);
    for (size_t lane = 0; lane < 16; ++lane) {
      const T alone = f(x[i + lane], y[lane]);
      if (!same(alone, block[lane]) && differing++ == 0) {
        ADD_FAILURE() << std::hexfloat << "at " << x[i + lane] << ", " << y[lane] << ": " << alone << " alone, "
                      << block[lane] << " in a block";
      }
    }
  }
  EXPECT_EQ(differing, 0);
}

#define AE_X(f)                                                      \
  TEST(MathBits, f##_of_one_float_and_of_sixteen) {                  \
    expect_same_bits<float>([](auto x) { return ae::math::f(x); });  \
  }                                                                  \
  TEST(MathBits, f##_of_one_double_and_of_sixteen) {                 \
    expect_same_bits<double>([](auto x) { return ae::math::f(x); }); \
  }
AE_UNARY_MATH(AE_X)
AE_SPECIAL_MATH(AE_X)
AE_X(floor)
AE_X(ceil)
AE_X(trunc)
AE_X(rint)
#undef AE_X

#define AE_X(f)                                                                        \
  TEST(MathBits, f##_of_one_pair_of_floats_and_of_sixteen) {                           \
    expect_same_bits_of_two<float>([](auto x, auto y) { return ae::math::f(x, y); });  \
  }                                                                                    \
  TEST(MathBits, f##_of_one_pair_of_doubles_and_of_sixteen) {                          \
    expect_same_bits_of_two<double>([](auto x, auto y) { return ae::math::f(x, y); }); \
  }
AE_BINARY_MATH(AE_X)
AE_X(copysign)
#undef AE_X

TEST(MathBits, fma_of_one_pair_and_of_sixteen) {
  const auto fused = [](auto x, auto y) { return ae::math::fma(x, y, x); };
  expect_same_bits_of_two<float>(fused);
  expect_same_bits_of_two<double>(fused);
}

TEST(MathBits, a_product_and_a_sum_stay_apart) {
  const auto product_and_sum = [](auto x, auto y) { return x * y + x; };
  expect_same_bits_of_two<float>(product_and_sum);
  // (1 + 2^-12)^2 - 1 loses the last 2^-24 when the product is rounded.
  volatile float x = 1 + 0x1p-12f;
  EXPECT_EQ(x * x - 1.0f, 0x1p-11f);
  const Vec<float, 16> v(x);
  EXPECT_EQ((v * v - Vec<float, 16>(1.0f))[5], 0x1p-11f);
}

}  // namespace
