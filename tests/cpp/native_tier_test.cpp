// The native tier's parts: the compiler's process, the loader of object files, and what happens when they fail.
#include "device/host/native_tier.h"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "device/host/native/compiler_process.h"
#include "device/host/native/protocol.h"

namespace ae::device::host {
namespace {

using native::CompilerProcess;
using NativeRun = native::Run;
using native::RunInput;

/// out = (x + x) * s
NativeRun double_and_scale() {
  NativeRun run;
  run.inputs = {{0, DType::kF32, RunInput::block}, {1, DType::kF32, RunInput::scalar}};
  run.ops = {{Primitive::add, DType::kF32, DType::kF32, 0, 0, 0}, {Primitive::mul, DType::kF32, DType::kF32, 2, 1, 0}};
  run.outputs = {{2, 3}};
  return run;
}

class NativeCompiler : public ::testing::Test {
 protected:
  void SetUp() override {
    compiler_ = CompilerProcess::start();
    if (!compiler_) GTEST_SKIP() << "there is no native compiler here";
  }
  std::unique_ptr<CompilerProcess> compiler_;
};

TEST_F(NativeCompiler, CompilesSeveralRunsIntoOneObject) {
  NativeRun other = double_and_scale();
  other.ops[1].op = Primitive::sub;
  const auto code = compiler_->compile({double_and_scale(), other});
  std::vector<float> x(32), out(32);
  for (int i = 0; i < 32; ++i) x[i] = static_cast<float>(i);
  float scale = 3;
  void* cells[] = {x.data(), &scale, out.data()};
  code->functions()[0](cells, 1, 2);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(out[i], 6.0f * static_cast<float>(i));
  code->functions()[1](cells, 2, 1);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(out[i], 2.0f * static_cast<float>(i) - 3);
  code->functions()[0](cells, 0, 1);  // nothing
  EXPECT_EQ(out[1], -1);
}

TEST_F(NativeCompiler, RefusesWhatItDoesNotKnowAndGoesOn) {
  EXPECT_FALSE(compiler_->can_compile(Primitive::random_bits, DType::kI64, DType::kI64));
  EXPECT_TRUE(compiler_->can_compile(Primitive::add, DType::kF32, DType::kF32));
  NativeRun run = double_and_scale();
  run.ops[0].op = Primitive::random_bits;
  EXPECT_THROW(compiler_->compile({run}), std::runtime_error);
  EXPECT_EQ(compiler_->compile({double_and_scale()})->functions().size(), 1u);
}

TEST(ObjectCode, RefusesDamagedFiles) {
  EXPECT_THROW(native::ObjectCode("", 0), std::runtime_error);
  EXPECT_THROW(native::ObjectCode(std::string(5000, 'x'), 1), std::runtime_error);
  EXPECT_THROW(native::ObjectCode(std::string("\x7f") + "ELF" + std::string(60, '\0'), 1), std::runtime_error);
}

TEST(NativeProtocol, RunsSurviveTheWayAndDamagedOnesAreRefused) {
  const std::string bytes = native::pack_runs({double_and_scale(), double_and_scale()});
  const std::vector<NativeRun> runs = native::unpack_runs(bytes);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[1].ops[1].op, Primitive::mul);
  EXPECT_EQ(runs[1].outputs[0].value, 3);
  EXPECT_THROW(native::unpack_runs(bytes.substr(0, bytes.size() - 1)), std::runtime_error);
}

/// out = -|x|
TileProgram two_operations() {
  TileProgram program;
  program.registers.assign(1, {Level::full, 4});
  program.operands.assign(2, DType::kF32);
  const auto add = [&](Primitive op, uint16_t operand) {
    program.instrs.push_back({op, DType::kF32, DType::kF32, Level::full, 0, operand, {TileSource::reg, 0}, {}, {}});
  };
  add(Primitive::load, 0);
  add(Primitive::abs, 0);
  add(Primitive::neg, 0);
  add(Primitive::store, 1);
  return program;
}

TEST_F(NativeCompiler, TheTierMakesCodeInTheBackground) {
  NativeTier tier(NativeTier::Mode::background);
  const auto code = std::make_shared<TileCode>(two_operations());
  EXPECT_EQ(code->native(false), nullptr);
  tier.request(code, false);
  for (int i = 0; i < 10'000 && tier.generation() == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_NE(code->native(false), nullptr);
  EXPECT_EQ(code->native(false)->runs().size(), 1u);
  EXPECT_EQ(code->native(true), nullptr);
}

TEST(NativeTier, ThatIsOffMakesNothingAndAnEndedTierForgetsItsRequests) {
  const auto code = std::make_shared<TileCode>(two_operations());
  NativeTier off(NativeTier::Mode::off);
  off.request(code, false);
  EXPECT_EQ(off.generation(), 0u);
  {
    NativeTier tier(NativeTier::Mode::background);
    for (int i = 0; i < 20; ++i) tier.request(std::make_shared<TileCode>(two_operations()), false);
  }
  EXPECT_FALSE(code->native_ready(false));
}

}  // namespace
}  // namespace ae::device::host
