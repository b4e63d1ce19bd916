// Special values: zeros, infinities, NaN, subnormal numbers, poles and thresholds, as C's functions have them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/cpp/math_functions.h"

namespace {

template <class T>
T sigmoid_reference(T x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}

template <class T>
const std::vector<T>& special_numbers() {
  using Limits = std::numeric_limits<T>;
  static const std::vector<T> numbers = [] {
    std::vector<T> r;
    for (const T x : {T(0),
                      Limits::denorm_min(),
                      Limits::min() / 2,
                      Limits::min(),
                      Limits::epsilon(),
                      T(0.5),
                      T(1),
                      std::nextafter(T(1), T(0)),
                      std::nextafter(T(1), T(2)),
                      T(1.5),
                      T(2),
                      T(3),
                      T(4),
                      T(5),
                      T(1) / Limits::epsilon(),
                      T(2) / Limits::epsilon() - 1,
                      T(2) / Limits::epsilon() + 2,
                      Limits::max() / 2,
                      Limits::max(),
                      Limits::infinity(),
                      Limits::quiet_NaN()}) {
      r.push_back(x);
      r.push_back(-x);
    }
    return r;
  }();
  return numbers;
}

/// The same class of value: NaN, infinity or zero of the same sign, or a number of the same sign close by.
template <class T>
testing::AssertionResult alike(T got, T wanted) {
  const auto fail = [&] {
    return testing::AssertionFailure() << std::hexfloat << "got " << got << ", C gives " << wanted;
  };
  if (std::isnan(wanted)) return std::isnan(got) ? testing::AssertionSuccess() : fail();
  if (std::signbit(got) != std::signbit(wanted)) return fail();
  if (std::isinf(wanted) || wanted == 0) return got == wanted ? testing::AssertionSuccess() : fail();
  const T unit = std::fmax(std::fabs(wanted) * std::numeric_limits<T>::epsilon(), std::numeric_limits<T>::denorm_min());
  return std::fabs(got - wanted) <= 3 * unit ? testing::AssertionSuccess() : fail();
}

template <class T>
void check_unary(const char* name, T (*ours)(T), T (*c)(T)) {
  for (const T x : special_numbers<T>()) EXPECT_TRUE(alike(ours(x), c(x))) << name << "(" << std::hexfloat << x << ")";
}
template <class T>
void check_binary(const char* name, T (*ours)(T, T), T (*c)(T, T)) {
  for (const T x : special_numbers<T>()) {
    for (const T y : special_numbers<T>()) {
      EXPECT_TRUE(alike(ours(x, y), c(x, y))) << name << "(" << std::hexfloat << x << ", " << y << ")";
    }
  }
}

template <class T>
void check_all() {
#define AE_CHECK(f) check_unary<T>(#f, [](T x) { return ae::math::f(x); }, [](T x) { return T(std::f(x)); })
  AE_CHECK(exp);
  AE_CHECK(exp2);
  AE_CHECK(expm1);
  AE_CHECK(log);
  AE_CHECK(log2);
  AE_CHECK(log10);
  AE_CHECK(log1p);
  AE_CHECK(sin);
  AE_CHECK(cos);
  AE_CHECK(tan);
  AE_CHECK(asin);
  AE_CHECK(acos);
  AE_CHECK(atan);
  AE_CHECK(sinh);
  AE_CHECK(cosh);
  AE_CHECK(tanh);
  AE_CHECK(erf);
  AE_CHECK(erfc);
  AE_CHECK(sqrt);
  AE_CHECK(floor);
  AE_CHECK(ceil);
  AE_CHECK(trunc);
  AE_CHECK(rint);
#undef AE_CHECK
  check_unary<T>("sigmoid", [](T x) { return ae::math::sigmoid(x); }, sigmoid_reference<T>);
#define AE_CHECK(f) \
  check_binary<T>(#f, [](T x, T y) { return ae::math::f(x, y); }, [](T x, T y) { return T(std::f(x, y)); })
  AE_CHECK(pow);
  AE_CHECK(atan2);
  AE_CHECK(hypot);
  AE_CHECK(copysign);
#undef AE_CHECK
}

TEST(MathSpecial, floats_are_as_in_C) { check_all<float>(); }
TEST(MathSpecial, doubles_are_as_in_C) { check_all<double>(); }

TEST(MathSpecial, exp_underflows_gradually) {
  // By mpmath in units of 2^-149: e^-90 is 584744.28, e^-103.9 is 0.537, e^-104 is 0.486; in units of 2^104,
  // e^88.72283 is 16777092.09 and e^88.72284 is 16777220.09, above the largest float.
  EXPECT_EQ(ae::math::exp(-90.0f), 584744 * 0x1p-149f);
  EXPECT_EQ(ae::math::exp(-103.9f), 0x1p-149f);
  EXPECT_EQ(ae::math::exp(-104.0f), 0.0f);
  EXPECT_EQ(ae::math::exp(88.72283f), 16777092 * 0x1p104f);
  EXPECT_EQ(ae::math::exp(88.72284f), std::numeric_limits<float>::infinity());
}

TEST(MathSpecial, sine_of_huge_angles_is_exact) {
  // The argument nearest to an odd multiple of pi/2 in double, and the largest float; values by mpmath.
  EXPECT_NEAR(ae::math::cos(6381956970095103.0 * 0x1p797), -4.687165924254627611e-19, 1e-34);
  EXPECT_NEAR(ae::math::sin(std::numeric_limits<float>::max()), -0.5218765233336585, 1e-7);
  EXPECT_NEAR(ae::math::sin(std::numeric_limits<double>::max()), 0.004961954789184062, 1e-18);
}

}  // namespace
