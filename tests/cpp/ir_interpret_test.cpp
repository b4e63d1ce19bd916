#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fusion/ir/element.h"
#include "fusion/ir/kernel.h"

namespace ae::fusion {
namespace {

using P = Primitive;
constexpr int32_t kLowest = std::numeric_limits<int32_t>::min();

float sum_of(const std::vector<float>& x) {
  std::vector<Element> elements;
  for (float value : x) elements.push_back(Element::of(value));
  return reduce(P::reduce_sum, DType::kF32, elements).get<float>();
}

int32_t apply(P op, int32_t a, int32_t b) {
  return evaluate(op, DType::kI32, Element::of(a), Element::of(b), {}).get<int32_t>();
}

float apply(P op, float a, float b) {
  return evaluate(op, DType::kF32, Element::of(a), Element::of(b), {}).get<float>();
}

template <class To, class From>
To convert_to(From x, DType from, DType to) {
  return convert(Element::of(x), from, to).template get<To>();
}

TEST(IrInterpret, sums_follow_the_canonical_order) {
  // 1e8 + 1 is 1e8 in fp32, so the order shows. x[16] is added to x[0]'s lane before x[8]'s lane takes 1e8 away.
  std::vector<float> lanes(20);
  lanes[0] = 1e8f, lanes[8] = -1e8f, lanes[16] = 1;
  EXPECT_EQ(sum_of(lanes), 0);
  // In the next chunk the 1 is alone in its lane, and is added when the first chunk's sum is 0.
  std::vector<float> chunks(1025);
  chunks[0] = 1e8f, chunks[8] = -1e8f, chunks[1024] = 1;
  EXPECT_EQ(sum_of(chunks), 1);
}

TEST(IrInterpret, a_reduction_of_nothing_is_its_identity) {
  EXPECT_EQ(reduce(P::reduce_sum, DType::kF64, {}).get<double>(), 0);
  EXPECT_EQ(reduce(P::reduce_prod, DType::kI32, {}).get<int32_t>(), 1);
  EXPECT_EQ(reduce(P::reduce_max, DType::kF32, {}).get<float>(), -INFINITY);
  EXPECT_EQ(reduce(P::reduce_min, DType::kI16, {}).get<int16_t>(), 32767);
  EXPECT_FALSE(reduce(P::reduce_any, DType::kBool, {}).get<bool>());
  EXPECT_TRUE(reduce(P::reduce_all, DType::kBool, {}).get<bool>());
}

TEST(IrInterpret, nan_wins_in_maxima_of_all_orders) {
  for (int at : {0, 7, 8, 19}) {
    std::vector<Element> x(20, Element::of(1.0f));
    x[at] = Element::of(NAN);
    EXPECT_TRUE(std::isnan(reduce(P::reduce_max, DType::kF32, x).get<float>()));
    EXPECT_TRUE(std::isnan(reduce(P::reduce_min, DType::kF32, x).get<float>()));
  }
  EXPECT_TRUE(std::isnan(apply(P::maximum, 1.0f, NAN)));
  EXPECT_EQ(apply(P::fmax, NAN, 1.0f), 1);
  EXPECT_EQ(apply(P::fmin, 1.0f, NAN), 1);
}

TEST(IrInterpret, integer_division_knows_zero_and_the_lowest_number) {
  for (P op : {P::floor_div, P::trunc_div, P::remainder, P::fmod}) EXPECT_EQ(apply(op, 5, 0), 0) << name_of(op);
  EXPECT_EQ(apply(P::trunc_div, kLowest, -1), kLowest);
  EXPECT_EQ(apply(P::remainder, kLowest, -1), 0);
  EXPECT_EQ(apply(P::floor_div, -7, 2), -4);
  EXPECT_EQ(apply(P::trunc_div, -7, 2), -3);
  EXPECT_EQ(apply(P::remainder, -7, 2), 1);
  EXPECT_EQ(apply(P::fmod, -7, 2), -1);
}

TEST(IrInterpret, integers_wrap_and_shifts_out_of_range_leave_nothing) {
  EXPECT_EQ(apply(P::add, std::numeric_limits<int32_t>::max(), 1), kLowest);
  EXPECT_EQ(apply(P::pow, 3, 21), static_cast<int32_t>(10460353203u));  // 3^21 modulo 2^32
  EXPECT_EQ(apply(P::pow, -1, -3), -1);
  EXPECT_EQ(apply(P::pow, 2, -1), 0);
  EXPECT_EQ(apply(P::shift_left, 1, 32), 0);
  EXPECT_EQ(apply(P::shift_right, -8, 40), -1);
  EXPECT_EQ(apply(P::shift_right, -8, -1), -1);
  EXPECT_EQ(apply(P::shift_right, -8, 1), -4);
}

TEST(IrInterpret, half_types_round_to_nearest_even_and_keep_subnormals) {
  const auto half = [](float x) { return convert_to<uint16_t>(x, DType::kF32, DType::kF16); };
  EXPECT_EQ(half(1.0f), 0x3c00);
  EXPECT_EQ(half(2049.0f), 0x6800);  // between 2048 and 2050: the even one
  EXPECT_EQ(half(2051.0f), 0x6802);  // between 2050 and 2052
  EXPECT_EQ(half(65519.0f), 0x7bff);
  EXPECT_EQ(half(65520.0f), 0x7c00);  // infinity
  EXPECT_EQ(half(0x1p-24f), 0x0001);
  EXPECT_EQ(half(0x1p-25f), 0x0000);  // half of the smallest: even
  EXPECT_EQ(half(0x1.8p-25f), 0x0001);
  EXPECT_EQ(half(0x1.ffcp-15f), 0x0400);  // rounds up to the smallest normal number
  EXPECT_EQ(half(-0.0f), 0x8000);
  EXPECT_EQ(convert_to<float>(uint16_t{0x03ff}, DType::kF16, DType::kF32), 0x1.ff8p-15f);
  const auto bfloat = [](float x) { return convert_to<uint16_t>(x, DType::kF32, DType::kBF16); };
  EXPECT_EQ(bfloat(1.00390625f), 0x3f80);  // 1 + 2^-8, between 1 and 1 + 2^-7
  EXPECT_EQ(bfloat(1.01171875f), 0x3f82);  // 1 + 3 * 2^-8
  EXPECT_EQ(bfloat(3.4e38f), 0x7f80);
}

TEST(IrInterpret, all_half_numbers_survive_fp32) {
  for (DType type : {DType::kF16, DType::kBF16}) {
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      const auto value = convert_to<float>(static_cast<uint16_t>(bits), type, DType::kF32);
      if (std::isnan(value)) continue;
      ASSERT_EQ(convert_to<uint16_t>(value, DType::kF32, type), bits);
    }
  }
}

TEST(IrInterpret, floats_that_do_not_fit_convert_as_the_processor_does_it) {
  EXPECT_EQ(convert_to<int32_t>(3e9f, DType::kF32, DType::kI32), kLowest);
  EXPECT_EQ(convert_to<int64_t>(static_cast<double>(NAN), DType::kF64, DType::kI64),
            std::numeric_limits<int64_t>::min());
  EXPECT_EQ(convert_to<uint8_t>(300.5f, DType::kF32, DType::kU8), 44);  // through int32: 300 - 256
  EXPECT_EQ(convert_to<uint64_t>(1.5e19, DType::kF64, DType::kU64), 15000000000000000000u);
  EXPECT_TRUE(convert_to<bool>(NAN, DType::kF32, DType::kBool));
}

TEST(IrInterpret, kernels_see_operands_through_their_views) {
  // rows of a transposed 2 x 3 matrix, minus the rows' sums: x^T = [[1, 4], [2, 5], [3, 6]].
  const Kernel kernel = parse(R"(kernel (f32, f32, f32, i64) scalars () {
    %0 = load.f32 full @0
    %1 = reduce_sum.f32 kept %0
    store.f32 kept @1, %1
    %3 = broadcast.f32 full %1
    %4 = sub.f32 full %0, %3
    %5 = iota.i64 full @3
    %6 = cast.i64->f32 full %5
    %7 = add.f32 full %4, %6
    store.f32 full @2, %7
  })");
  ASSERT_EQ(verify(kernel), "");
  float x[] = {0, 1, 2, 3, 4, 5, 6}, sums[3] = {}, out[6] = {};
  device::Space space{2, 0b10, {3, 2}};
  interpret(kernel, space, {{x, {1, {1, 3}}}, {sums, {0, {1, 0}}}, {out, {0, {2, 1}}}, {nullptr, {100, {10, 1}}}}, {});
  EXPECT_EQ(std::vector<float>(sums, sums + 3), (std::vector<float>{5, 7, 9}));
  EXPECT_EQ(std::vector<float>(out, out + 6), (std::vector<float>{96, 100, 105, 109, 114, 118}));
}

}  // namespace
}  // namespace ae::fusion
