#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fusion/ir/kernel.h"
#include "tests/cpp/ir_random_kernel.h"

namespace ae::fusion {
namespace {

using ::testing::HasSubstr;

constexpr const char* kText = R"(kernel (f32, f32, i64) scalars (f32) {
  %0 = load.f32 full @0
  %1 = load.f32 kept @1
  %2 = broadcast.f32 full %1
  %3 = sub.f32 full %0, %2
  %4 = scalar.f32 $0
  %5 = mul.f32 full %3, %4
  %6 = lt.f32->bool full %5, %4
  %7 = cast.bool->i64 full %6
  %8 = iota.i64 full @2
  %9 = random_bits.i64 full %8, %7, %8
  %10 = cast.i64->f32 full %9
  %11 = select.f32 full %6, %10, %4
  %12 = reduce_sum.f32 kept %11
  store.f32 kept @1, %12
}
)";

std::string reason_of(const std::string& text) {
  try {
    parse(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}

TEST(IrText, print_gives_the_text_that_was_parsed) {
  const Kernel kernel = parse(kText);
  EXPECT_EQ(verify(kernel), "");
  EXPECT_EQ(print(kernel), kText);
  EXPECT_EQ(kernel.operands, (std::vector{DType::kF32, DType::kF32, DType::kI64}));
  ASSERT_EQ(kernel.instrs.size(), 14u);
  EXPECT_EQ(kernel.instrs[7], (Instr{Primitive::cast, DType::kBool, DType::kI64, Level::full, -1, 6}));
  EXPECT_EQ(kernel.instrs[13], (Instr{Primitive::store, DType::kF32, DType::kF32, Level::kept, 1, 12}));
}

TEST(IrText, random_kernels_survive_printing_and_parsing) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const Kernel kernel = testing::RandomKernel(seed).make(30).kernel;
    ASSERT_EQ(verify(kernel), "") << print(kernel);
    const Kernel copy = parse(print(kernel));
    ASSERT_EQ(copy, kernel) << print(kernel);
    ASSERT_EQ(hash_of(copy), hash_of(kernel));
  }
}

TEST(IrText, parse_says_line_and_reason) {
  EXPECT_EQ(reason_of("kernel (f33) scalars () {\n}"), "kernel text, line 1: unknown dtype 'f33'");
  EXPECT_EQ(reason_of("kernel (f32) scalars () {\n  %0 = lode.f32 full @0\n}"),
            "kernel text, line 2: unknown primitive 'lode'");
  EXPECT_EQ(reason_of("kernel (f32) scalars () {\n  %1 = load.f32 full @0\n}"),
            "kernel text, line 2: results are numbered by instruction");
  EXPECT_EQ(reason_of("kernel (f32) scalars () {\n  load.f32 full @0\n}"),
            "kernel text, line 2: stores alone have no result");
  EXPECT_EQ(reason_of("kernel (f32) scalars () {\n  %0 = load.f32 half @0\n}"),
            "kernel text, line 2: expected 'full' or 'kept'");
  EXPECT_THAT(reason_of("kernel (f32) scalars () {\n  %0 = load.f32 full @0\n"), HasSubstr("line 3: expected a word"));
  EXPECT_THAT(reason_of("kernel () scalars () {} {}"), HasSubstr("text after the end"));
}

TEST(IrText, hashes_differ_when_any_part_differs) {
  const Kernel kernel = parse(kText);
  std::vector<Kernel> variants(8, kernel);
  variants[0].operands.push_back(DType::kF32);
  variants[1].scalars[0] = DType::kF64;
  variants[2].instrs[3].op = Primitive::add;
  variants[3].instrs[3].b = 0;
  variants[4].instrs[7].out = DType::kI32;
  variants[5].instrs[0].index = 1;
  variants[6].instrs[0].level = Level::kept;
  variants[7].instrs[11].c = 10;
  for (const Kernel& variant : variants) EXPECT_NE(hash_of(variant), hash_of(kernel)) << print(variant);
}

}  // namespace
}  // namespace ae::fusion
