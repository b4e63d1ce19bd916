// What only the functional device does: static sizes and donation, seen by its counts.
#include "tests/conformance/functional_device.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/conformance/device_suite.h"

namespace ae::device::conformance {
namespace {

class FunctionalDeviceTest : public ::testing::Test {
 protected:
  /// out = 2 x + 1 over n elements
  LaunchSpec launch(int64_t n, int32_t x, int32_t out) {
    LaunchSpec launch;
    launch.segments = {
        {device->load(multiply_add_program()), line(n), {{x, dense_line()}, {out, dense_line()}}, {0, 1}}};
    return launch;
  }
  BlockRef put(std::vector<float> numbers) {
    return device->copy_from_host(numbers.data(), static_cast<int64_t>(numbers.size() * sizeof(float)));
  }
  /// Runs a program whose first slot is given.
  std::vector<BlockRef> run(ProgramSpec spec, BlockRef given) {
    Submission submission;
    submission.program = device->compile(std::move(spec));
    submission.slots.push_back(std::move(given));
    submission.scalars = {scalar_word(2), scalar_word(1)};
    Stream& stream = device->default_stream();
    stream.submit(submission);
    EXPECT_TRUE(stream.wait(stream.submitted(), 60'000));
    return std::move(submission.slots);
  }
  std::vector<float> get(const BlockRef& block) {
    std::vector<float> numbers(block->size() / sizeof(float));
    device->copy_to_host(block, numbers.data());
    return numbers;
  }

  std::unique_ptr<FunctionalDevice> device = make_functional_device();
};

TEST_F(FunctionalDeviceTest, CompilesOnceForEachGeometry) {
  const auto compile = [&](int64_t n, int32_t x, int32_t out, int64_t bytes) {
    device->compile({2, {bytes, bytes}, {launch(n, x, out)}});
    return device->counts().compiled;
  };
  EXPECT_EQ(compile(4, 0, 1, 16), 1);
  EXPECT_EQ(compile(4, 0, 1, 16), 1);
  EXPECT_EQ(compile(4, 1, 0, 16), 1);  // other slots, the same geometry
  EXPECT_EQ(device->counts().compiled_hits, 2);
  EXPECT_EQ(compile(5, 0, 1, 20), 2);
  EXPECT_EQ(compile(5, 0, 0, 20), 3);  // in place: one argument
  EXPECT_EQ(compile(5, 0, 1, 24), 4);  // of larger buffers
}

TEST_F(FunctionalDeviceTest, RefusesABlockOfAnotherSizeThanTheProgramsOwn) {
  EXPECT_THROW(run({1, {8}, {launch(2, 0, 0)}}, put({1, 2, 3})), std::invalid_argument);
}

TEST_F(FunctionalDeviceTest, DonatesOnlyWhatNobodyElseHolds) {
  const BlockRef held = put({1, 2});
  EXPECT_EQ(get(run({1, {8}, {launch(2, 0, 0)}}, held)[0]), (std::vector<float>{3, 5}));
  EXPECT_EQ(device->counts().donated, 0);
  EXPECT_EQ(get(run({1, {8}, {launch(2, 0, 0)}}, put({1, 2}))[0]), (std::vector<float>{3, 5}));
  EXPECT_EQ(device->counts().donated, 1);
  EXPECT_EQ(get(held), (std::vector<float>{1, 2}));
}

TEST_F(FunctionalDeviceTest, DonatesADroppedInputToAResultOfItsSize) {
  for (const int64_t bytes : {8, 12}) {
    LaunchSpec only = launch(2, 0, 1);
    only.allocate = {1};
    only.free = {0};
    const auto slots = run({2, {8, bytes}, {only}}, put({1, 2}));
    EXPECT_EQ(get(slots[1])[1], 5);
    EXPECT_EQ(device->counts().donated, 1);  // the second is of another size
    EXPECT_EQ(device->memory_stats().allocations, 1);
  }
}

TEST_F(FunctionalDeviceTest, ReadingABlockBeforeItIsMadeIsAnError) {
  Gate gate;
  LaunchSpec wait;
  wait.library = std::make_shared<Call>([&](int, void* const*, const uint64_t*) { gate.pass(); });
  Submission submission;
  submission.program = device->compile({1, {8}, {wait, launch(2, 0, 0)}});
  submission.slots = {put({1, 2})};
  submission.scalars = {scalar_word(2), scalar_word(1)};
  device->default_stream().submit(submission);
  EXPECT_THROW(get(submission.slots[0]), std::logic_error);
  gate.open();
  EXPECT_TRUE(device->default_stream().wait(2, 60'000));
  EXPECT_EQ(get(submission.slots[0]), (std::vector<float>{3, 5}));
}

}  // namespace
}  // namespace ae::device::conformance
