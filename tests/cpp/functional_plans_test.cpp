// Plans on a device with immutable buffers, static sizes and donation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/support/planned.h"
#include "tests/cpp/support/recording.h"

namespace ae::fusion::testing {
namespace {

using device::conformance::FunctionalCounts;
using ::testing::Each;
using ::testing::ElementsAre;

class FunctionalPlans : public ::testing::Test {
 protected:
  BufferRef put(const std::vector<float>& values) {
    BufferRef buffer = make(static_cast<int64_t>(values.size()));
    buffer->block = device->copy_from_host(values.data(), buffer->nbytes);
    return buffer;
  }
  BufferRef make(int64_t elements) { return BufferRef::adopt(new Buffer(elements * 4)); }
  /// out = a + value
  void add(const BufferRef& a, double value, const BufferRef& out) { testing::record_add(*recorder, a, value, out); }
  /// out = a, as a library operator
  void library_copy(const BufferRef& a, const BufferRef& out) {
    const int64_t count = out->nbytes / 4, stride = 1;
    Recorder::Node node(*recorder, Opcode::library, DType::kF32);
    node.writer().attribute(kCheckedCopy);
    node.writer().attribute(0);
    node.writer().input(a.get(), DType::kF32, 1, 0, &count, &stride);
    node.makes(*out.get());
    node.writer().output(out.get(), DType::kF32, 1, 0, &count, &stride);
    node.commit();
  }
  void flush() { recorder->flush(FlushReason::synchronize); }
  std::vector<float> values(const BufferRef& buffer) { return read<float>(*recorder, *buffer.get()); }
  std::vector<float> values(const device::BlockRef& block) {
    std::vector<float> numbers(block->size() / 4);
    device->copy_to_host(block, numbers.data());
    return numbers;
  }

  const std::unique_ptr<device::conformance::FunctionalDevice> device = device::conformance::make_functional_device();
  const std::unique_ptr<Recorder> recorder =
      std::make_unique<Recorder>(*device, PolicySettings{.adaptive = true}, Recorder::Hooks{test_library(), {}, {}});
};

TEST_F(FunctionalPlans, EachSizeIsCompiledOnceAndTheKernelIsMadeOnce) {
  for (int round = 0; round < 3; ++round)
    for (int64_t size : {3, 5, 8}) {
      const BufferRef x = put(ramp(size)), y = make(size);
      add(x, 1, y);
      EXPECT_EQ(values(y), ramp(size, 1.5f));
    }
  EXPECT_EQ(recorder->statistics().kernels_made, 1);
  EXPECT_EQ(device->counts().compiled, 3);
  EXPECT_EQ(device->counts().compiled_hits, 0);  // known plans are not compiled again
  const BufferRef x = put(ramp(5)), y = make(5), z = make(5);
  add(x, 1, y);
  library_copy(y, z);  // another plan with the same kernel and size
  EXPECT_EQ(values(z), ramp(5, 1.5f));
  EXPECT_EQ(device->counts().compiled, 3);
  EXPECT_EQ(device->counts().compiled_hits, 1);
}

TEST_F(FunctionalPlans, ABufferWrittenInPlaceIsDonatedToItsNextContent) {
  const BufferRef x = put({1, 2, 3});
  const int64_t made = device->memory_stats().allocations_total;
  for (int i = 0; i < 10; ++i) {
    add(x, 1, x);
    flush();
  }
  EXPECT_THAT(values(x), ElementsAre(11, 12, 13));
  EXPECT_EQ(device->counts().donated, 10);
  EXPECT_EQ(device->memory_stats().allocations_total, made);
}

TEST_F(FunctionalPlans, ABlockThatSomebodyHoldsKeepsItsContent) {
  const BufferRef x = put({1, 2, 3});
  const device::BlockRef held = x->block;
  add(x, 1, x);
  EXPECT_THAT(values(x), ElementsAre(2, 3, 4));
  EXPECT_NE(x->block.get(), held.get());
  EXPECT_THAT(values(held), ElementsAre(1, 2, 3));
  EXPECT_EQ(device->counts().donated, 0);
}

TEST_F(FunctionalPlans, AnInputThatNobodySeesAgainBecomesTheResult) {
  BufferRef x = put(std::vector<float>(100, 1));
  const int64_t made = device->memory_stats().allocations_total;
  for (int i = 0; i < 10; ++i) {
    BufferRef y = make(100);
    add(x, 1, y);
    x->visible = false;
    flush();
    x = std::move(y);
  }
  EXPECT_THAT(values(x), Each(11));
  EXPECT_EQ(device->counts().donated, 10);
  EXPECT_EQ(device->memory_stats().allocations_total, made);
  EXPECT_EQ(device->memory_stats().allocations, 1);
}

TEST_F(FunctionalPlans, AnInputThatIsSeenAgainIsNotDonated) {
  const BufferRef x = put({1, 2}), y = make(2);
  add(x, 1, y);
  EXPECT_THAT(values(y), ElementsAre(2, 3));
  EXPECT_THAT(values(x), ElementsAre(1, 2));
  EXPECT_EQ(device->counts().donated, 0);
}

TEST_F(FunctionalPlans, WhatALibraryOperatorOnlyReadsKeepsItsBlock) {
  const BufferRef x = put({1, 2}), y = put({0, 0});
  const device::Block* before = x->block.get();
  const device::BlockRef old = y->block;
  const int64_t made = device->memory_stats().allocations_total;
  library_copy(x, y);
  EXPECT_THAT(values(y), ElementsAre(1, 2));
  EXPECT_EQ(x->block.get(), before);
  EXPECT_EQ(device->memory_stats().allocations_total, made + 1);  // y's
  EXPECT_THAT(values(old), ElementsAre(0, 0));
}

TEST_F(FunctionalPlans, WithoutMemoryForNewContentsTheBuffersAreAsBefore) {
  const BufferRef x = put({1, 2}), y = put({5, 6}), big = make(1000);
  const device::BlockRef held = y->block;
  add(x, 1, x);
  add(y, 1, y);
  add(big, 0, big);
  device->set_memory_limit(device->memory_stats().allocated + 100);
  EXPECT_THROW(flush(), device::OutOfMemory);
  EXPECT_TRUE(x->block);
  EXPECT_EQ(y->block.get(), held.get());
  EXPECT_EQ(recorder->pending(), 3u);
  EXPECT_EQ(device->counts().donated, 0);
  device->set_memory_limit(-1);
  EXPECT_THAT(values(x), ElementsAre(2, 3));
  EXPECT_THAT(values(y), ElementsAre(6, 7));
}

TEST_F(FunctionalPlans, HiddenValuesBetweenLaunchesTakeNoMemoryAfterTheTrace) {
  const BufferRef x = put({1, 2}), hidden = make(2), y = make(2);
  add(x, 1, hidden);
  library_copy(hidden, y);
  hidden->visible = false;
  flush();
  EXPECT_FALSE(hidden->block);
  EXPECT_THAT(values(y), ElementsAre(2, 3));
  EXPECT_EQ(device->memory_stats().allocations, 2);
}

}  // namespace
}  // namespace ae::fusion::testing
