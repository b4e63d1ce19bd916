#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "device/host/host_device.h"
#include "fusion/codegen/tile.h"
#include "tests/cpp/ir_random_kernel.h"

namespace ae::fusion {
namespace {

using testing::RandomKernel;
using testing::TestLaunch;
using testing::TestOperand;
using P = Primitive;

std::vector<P> ops_of(const device::TileProgram& program) {
  std::vector<P> ops;
  for (const auto& instr : program.instrs) ops.push_back(instr.op);
  return ops;
}

/// Runs on the host device, in place on the launch's memory.
void run(device::Device& device, TestLaunch& launch) {
  device::ProgramSpec spec;
  device::Segment segment;
  segment.executable = device.load(to_tile_program(launch.kernel));
  segment.space = launch.space;
  device::Submission submission;
  for (TestOperand& operand : launch.operands) {
    if (operand.memory.empty()) {
      segment.operands.push_back({-1, operand.view});
      continue;
    }
    const auto bytes = static_cast<int64_t>(operand.memory.size());
    segment.operands.push_back({spec.slots++, operand.view});
    spec.slot_bytes.push_back(bytes);
    submission.slots.push_back(device.allocate(bytes));
    std::memcpy(submission.slots.back()->address(), operand.memory.data(), operand.memory.size());
  }
  for (size_t i = 0; i < launch.scalars.size(); ++i) segment.scalars.push_back(static_cast<int32_t>(i));
  spec.launches.emplace_back();
  spec.launches.back().segments.push_back(std::move(segment));
  submission.program = device.compile(std::move(spec));
  submission.scalars = launch.scalars;
  std::string failure;
  submission.on_end = [&](const device::LaunchError* error) { failure = error ? "a launch failed" : ""; };
  const std::vector<device::BlockRef> blocks = submission.slots;
  const uint64_t number = device.default_stream().submit(submission);
  ASSERT_TRUE(device.default_stream().wait(number + 1, 60'000));
  ASSERT_EQ(failure, "");
  size_t slot = 0;
  for (TestOperand& operand : launch.operands) {
    if (!operand.memory.empty()) std::memcpy(operand.memory.data(), blocks[slot++]->address(), operand.memory.size());
  }
}

void run_interpreter(TestLaunch& launch) {
  std::vector<InterpreterOperand> operands;
  for (TestOperand& operand : launch.operands) operands.push_back({operand.memory.data(), operand.view});
  interpret(launch.kernel, launch.space, operands, launch.scalars);
}

bool is_nan(const char* at, DType type) {
  uint16_t half;
  float single;
  double wide;
  std::memcpy(&half, at, 2);
  switch (type) {
    case DType::kF16: return (half & 0x7fff) > 0x7c00;
    case DType::kBF16: return (half & 0x7fff) > 0x7f80;
    case DType::kF32: return std::memcpy(&single, at, 4), std::isnan(single);
    case DType::kF64: return std::memcpy(&wide, at, 8), std::isnan(wide);
    default: return false;
  }
}

/// Where two runs differ; all NaNs are equal.
std::string difference(const TestLaunch& a, const TestLaunch& b) {
  for (size_t i = 0; i < a.operands.size(); ++i) {
    const DType type = a.kernel.operands[i];
    const int64_t size = size_of(type), n = static_cast<int64_t>(a.operands[i].memory.size()) / size;
    for (int64_t k = 0; k < n; ++k) {
      const char *x = a.operands[i].memory.data() + k * size, *y = b.operands[i].memory.data() + k * size;
      if (std::memcmp(x, y, size) == 0 || (size > 1 && is_nan(x, type) && is_nan(y, type))) continue;
      return "operand " + std::to_string(i) + ", element " + std::to_string(k) + "\n" + print(a.kernel);
    }
  }
  return "";
}

std::string describe(const device::Space& space) {
  std::string text = "space";
  for (int d = 0; d < space.rank; ++d) {
    text += ' ';
    text += std::to_string(space.sizes[d]);
    if (space.reduced >> d & 1) text += 'r';
  }
  return text;
}

class CodegenTile : public ::testing::Test {
 protected:
  std::unique_ptr<device::Device> device_ = make_device();

  static std::unique_ptr<device::Device> make_device() {
    device::host::HostOptions options;
    options.threads = 2;
    return device::host::make_host_device(options);
  }

  void expect_same_bits(TestLaunch launch) {
    TestLaunch expected = launch;
    run_interpreter(expected);
    ASSERT_NO_FATAL_FAILURE(run(*device_, launch));
    ASSERT_EQ(difference(expected, launch), "") << describe(launch.space);
  }
};

TEST_F(CodegenTile, random_kernels_give_the_interpreter_s_bits) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ASSERT_NO_FATAL_FAILURE(expect_same_bits(RandomKernel(seed).make(8 + static_cast<int>(seed % 40))));
  }
}

/// A launch over contiguous operands: full-level ones row-major over the space, kept-level ones over its kept part.
TestLaunch contiguous(const char* text, std::vector<int64_t> sizes, uint32_t reduced,
                      std::vector<uint64_t> scalars = {}) {
  TestLaunch launch;
  launch.kernel = parse(text);
  launch.scalars = std::move(scalars);
  launch.space.rank = static_cast<int>(sizes.size());
  launch.space.reduced = reduced;
  std::copy(sizes.begin(), sizes.end(), launch.space.sizes);
  std::mt19937 engine(1);
  launch.operands.resize(launch.kernel.operands.size());
  for (const Instr& instr : launch.kernel.instrs) {
    if (instr.index < 0 || instr.op == P::scalar) continue;
    TestOperand& operand = launch.operands[instr.index];
    int64_t stride = 1;
    for (int d = launch.space.rank - 1; d >= 0; --d) {
      const bool varies = instr.level == Level::full || !(reduced >> d & 1);
      operand.view.strides[d] = varies ? stride : 0;
      if (varies) stride *= sizes[d];
    }
    if (instr.op == P::iota) continue;
    operand.memory.assign(stride * size_of(instr.type), 0);
    if (instr.type != DType::kF32) continue;
    for (int64_t i = 0; i < stride; ++i) {
      const float value = std::normal_distribution<float>(0.0f, 1.0f)(engine);
      std::memcpy(operand.memory.data() + i * 4, &value, 4);
    }
  }
  return launch;
}

constexpr const char* kSoftmax = R"(kernel (f32, f32) scalars () {
  %0 = load.f32 full @0
  %1 = reduce_max.f32 kept %0
  %2 = broadcast.f32 full %1
  %3 = sub.f32 full %0, %2
  %4 = exp.f32 full %3
  %5 = reduce_sum.f32 kept %4
  %6 = broadcast.f32 full %5
  %7 = div.f32 full %4, %6
  store.f32 full @1, %7
})";

constexpr const char* kSum = R"(kernel (f32, f32) scalars () {
  %0 = load.f32 full @0
  %1 = reduce_sum.f32 kept %0
  store.f32 kept @1, %1
})";

TEST_F(CodegenTile, rows_and_columns_of_all_lengths_give_the_interpreter_s_bits) {
  for (const char* text : {kSoftmax, kSum}) {
    for (int64_t n : {1, 15, 16, 17, 100, 1023, 1024, 1025, 5000}) {
      ASSERT_NO_FATAL_FAILURE(expect_same_bits(contiguous(text, {3, n}, 0b10)));
      ASSERT_NO_FATAL_FAILURE(expect_same_bits(contiguous(text, {n, 3}, 0b01)));
      ASSERT_NO_FATAL_FAILURE(expect_same_bits(contiguous(text, {2, n, 2}, 0b101)));
    }
  }
}

TEST_F(CodegenTile, a_sum_of_more_than_a_million_numbers_is_reduced_in_three_rounds) {
  ASSERT_NO_FATAL_FAILURE(expect_same_bits(contiguous(kSum, {1024 * 1024 + 1000}, 0b1)));
}

TEST_F(CodegenTile, separable_says_whether_full_level_code_depends_on_a_reduction) {
  EXPECT_TRUE(to_tile_program(parse(kSum)).separable);
  EXPECT_FALSE(to_tile_program(parse(kSoftmax)).separable);
  // Kept-level code after a reduction, and a broadcast of what no reduction made, do not count.
  EXPECT_TRUE(to_tile_program(parse(R"(kernel (f32, f32, f32) scalars () {
    %0 = load.f32 full @0
    %1 = load.f32 kept @1
    %2 = broadcast.f32 full %1
    %3 = mul.f32 full %0, %2
    %4 = reduce_sum.f32 kept %3
    %5 = sqrt.f32 kept %4
    store.f32 kept @2, %5
  })"))
                  .separable);
}

TEST_F(CodegenTile, scalars_are_sources_and_dead_code_is_dropped) {
  const auto program = to_tile_program(parse(R"(kernel (f32, f32) scalars (f32, f32) {
    %0 = scalar.f32 $1
    %1 = broadcast.f32 full %0
    %2 = load.f32 full @0
    %3 = exp.f32 full %2
    %4 = add.f32 full %2, %1
    store.f32 full @1, %4
  })"));
  EXPECT_EQ(ops_of(program), (std::vector{P::load, P::add, P::store}));
  EXPECT_EQ(program.instrs[1].b, (device::TileSource{device::TileSource::scalar, 1}));
  EXPECT_EQ(program.name, "add");
  EXPECT_EQ(program.scalars.size(), 2u);
}

TEST_F(CodegenTile, a_chain_takes_one_register_for_each_value_that_is_alive) {
  // x stays alive, the chain overwrites itself: two registers of four bytes, and one of two bytes for the result.
  const auto program = to_tile_program(parse(R"(kernel (f32, f16) scalars () {
    %0 = load.f32 full @0
    %1 = exp.f32 full %0
    %2 = mul.f32 full %1, %0
    %3 = neg.f32 full %2
    %4 = add.f32 full %3, %0
    %5 = cast.f32->f16 full %4
    store.f16 full @1, %5
  })"));
  EXPECT_EQ(program.registers,
            (std::vector<device::TileRegister>{{Level::full, 4}, {Level::full, 4}, {Level::full, 2}}));
  EXPECT_EQ(program.name, "exp mul neg add");
}

TEST_F(CodegenTile, values_are_stored_as_soon_as_they_exist) {
  // All loads precede the stores in the text; only loads that must come before a store do so in the program.
  const auto program = to_tile_program(parse(R"(kernel (f32, f32, f32) scalars () {
    %0 = load.f32 full @0
    %1 = neg.f32 full %0
    %2 = exp.f32 full %0
    store.f32 full @1, %1
    store.f32 full @2, %2
  })"));
  EXPECT_EQ(ops_of(program), (std::vector{P::load, P::neg, P::store, P::exp, P::store}));
}

TEST_F(CodegenTile, a_load_that_precedes_a_store_stays_before_it) {
  const auto program = to_tile_program(parse(R"(kernel (f32, f32) scalars () {
    %0 = load.f32 full @0
    %1 = load.f32 full @1
    store.f32 full @1, %0
    store.f32 full @0, %1
  })"));
  EXPECT_EQ(ops_of(program), (std::vector{P::load, P::load, P::store, P::store}));
}

TEST_F(CodegenTile, full_level_code_is_sorted_by_the_reductions_it_needs) {
  // Two row sums written one behind the other: both are taken in the first pass over the rows.
  const auto program = to_tile_program(parse(R"(kernel (f32, f32, f32) scalars () {
    %0 = load.f32 full @0
    %1 = reduce_sum.f32 kept %0
    %2 = broadcast.f32 full %1
    %3 = div.f32 full %0, %2
    store.f32 full @2, %3
    %5 = load.f32 full @1
    %6 = reduce_max.f32 kept %5
    %7 = broadcast.f32 full %6
    %8 = mul.f32 full %3, %7
    store.f32 full @1, %8
  })"));
  EXPECT_EQ(ops_of(program), (std::vector{P::load, P::reduce_sum, P::load, P::reduce_max, P::broadcast, P::div,
                                          P::store, P::broadcast, P::mul, P::store}));
}

}  // namespace
}  // namespace ae::fusion
