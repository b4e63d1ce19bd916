#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fusion/ir/kernel.h"

namespace ae::fusion {
namespace {

using ::testing::HasSubstr;

/// What verify says about instructions over operands (f32, f16, i64, c64) and scalars (f32).
std::string verdict(const std::string& body) {
  return verify(parse("kernel (f32, f16, i64, c64) scalars (f32) {\n" + body + "\n}"));
}

struct Case {
  const char* name;
  const char* body;
  const char* reason;
};

constexpr Case kRejected[] = {
    {"input_later", "%0 = neg.f32 full %0", "instruction 0: an input is not an earlier value"},
    {"input_negative_number", "%0 = load.f32 full @0 %1 = add.f32 full %0, %7", "not an earlier value"},
    {"input_is_store", "%0 = load.f32 full @0 store.f32 full @0, %0 %2 = neg.f32 full %1", "an input is a store"},
    {"no_operand", "%0 = load.f32 full @4", "no such operand"},
    {"operand_dtype", "%0 = load.f64 full @0", "dtype differs from the operand's"},
    {"no_scalar", "%0 = scalar.f32 $1", "no such scalar"},
    {"scalar_dtype", "%0 = scalar.f64 $0", "dtype differs from the scalar's"},
    {"iota_also_loaded", "%0 = iota.i64 full @2 %1 = load.i64 full @2", "iota operand"},
    {"loaded_also_iota", "%0 = load.i64 full @2 %1 = iota.i64 full @2", "iota operand"},
    {"input_dtype", "%0 = load.f32 full @0 %1 = load.i64 full @2 %2 = add.f32 full %0, %1",
     "an input has another dtype"},
    {"result_dtype", "%0 = load.f32 full @0 %1 = neg.f32->f64 full %0", "wrong result dtype"},
    {"comparison_result", "%0 = load.f32 full @0 %1 = lt.f32 full %0, %0", "wrong result dtype"},
    {"condition_dtype", "%0 = load.f32 full @0 %1 = select.f32 full %0, %0, %0", "an input has another dtype"},
    {"half_arithmetic", "%0 = load.f16 full @1 %1 = add.f16 full %0, %0", "not defined on this dtype"},
    {"complex_arithmetic", "%0 = load.c64 full @3 %1 = mul.c64 full %0, %0", "not defined on this dtype"},
    {"complex_cast", "%0 = load.f32 full @0 %1 = cast.f32->c64 full %0", "no conversion"},
    {"float_bits", "%0 = load.f32 full @0 %1 = bitwise_and.f32 full %0, %0", "not defined on this dtype"},
    {"int_sqrt", "%0 = load.i64 full @2 %1 = sqrt.i64 full %0", "not defined on this dtype"},
    {"float_any", "%0 = load.f32 full @0 %1 = reduce_any.f32 kept %0", "not defined on this dtype"},
    {"iota_dtype", "%0 = iota.f32 full @0", "not defined on this dtype"},
    {"mixed_levels", "%0 = load.f32 kept @0 %1 = neg.f32 full %0", "wrong level"},
    {"full_to_kept", "%0 = load.f32 full @0 store.f32 kept @0, %0", "wrong level"},
    {"broadcast_full", "%0 = load.f32 full @0 %1 = broadcast.f32 full %0", "wrong level"},
    {"broadcast_kept", "%0 = load.f32 kept @0 %1 = broadcast.f32 kept %0", "broadcast gives full level"},
    {"reduce_kept", "%0 = load.f32 kept @0 %1 = reduce_sum.f32 kept %0", "wrong level"},
    {"reduce_to_full", "%0 = load.f32 full @0 %1 = reduce_sum.f32 full %0", "reductions give kept level"},
};

TEST(IrVerify, malformed_kernels_are_rejected_with_the_reason) {
  for (const Case& each : kRejected) EXPECT_THAT(verdict(each.body), HasSubstr(each.reason)) << each.name;
}

TEST(IrVerify, inputs_must_be_as_many_as_the_primitive_takes) {
  Kernel kernel = parse("kernel (f32) scalars () { %0 = load.f32 full @0 %1 = neg.f32 full %0 }");
  kernel.instrs[1].a = kNoValue;
  EXPECT_EQ(verify(kernel), "instruction 1: fewer inputs than the primitive takes");
  kernel.instrs[1].a = kernel.instrs[1].b = 0;
  EXPECT_EQ(verify(kernel), "instruction 1: more inputs than the primitive takes");
  kernel.instrs[1] = {Primitive::neg, DType::kF32, DType::kF32, Level::full, 0, 0};
  EXPECT_EQ(verify(kernel), "instruction 1: an index where the primitive takes none");
}

TEST(IrVerify, scalars_fit_both_levels) {
  EXPECT_EQ(verdict("%0 = scalar.f32 $0 %1 = load.f32 kept @0 %2 = add.f32 kept %0, %1 %3 = broadcast.f32 full %2 "
                    "%4 = mul.f32 full %3, %0 %5 = reduce_sum.f32 kept %4 store.f32 kept @0, %0"),
            "");
}

}  // namespace
}  // namespace ae::fusion
