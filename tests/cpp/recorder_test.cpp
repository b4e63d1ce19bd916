#include "fusion/flush/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <atomic>
#include <thread>

#include "fusion/flush/cuts.h"
#include "tests/cpp/support/program.h"
#include "tests/cpp/support/recording.h"

namespace ae::fusion::testing {
namespace {

using ::testing::ElementsAre;

BufferRef make(int64_t elements) { return BufferRef::adopt(new Buffer(elements * 4)); }

/// A recorder with its device, and operators over f32 vectors.
class RecorderTest : public ::testing::Test {
 protected:
  void start(PolicySettings settings = {.adaptive = true}) {
    recorder = std::make_unique<Recorder>(*device, settings,
                                          Recorder::Hooks{test_library(),
                                                          [this] {
                                                            ++lines_asked;
                                                            return "train.py:" + std::to_string(line);
                                                          },
                                                          [this] {
                                                            if (interrupted) throw std::runtime_error("interrupted");
                                                          }});
  }
  void fill(const BufferRef& out, double value) {
    const int64_t count = out->nbytes / 4, stride = 1;
    Recorder::Node node(*recorder, Opcode::fill, DType::kF32, 1, &count);
    node.writer().scalar(DType::kF32, scalar_word(value));
    node.makes(*out.get());
    node.writer().output(out.get(), DType::kF32, 0, &stride);
    node.commit();
  }
  /// out = a + value
  void add(const BufferRef& a, double value, const BufferRef& out) { testing::record_add(*recorder, a, value, out); }
  /// out = a, failing on negative elements.
  void checked_copy(const BufferRef& a, const BufferRef& out) { library(kCheckedCopy, a, out, true); }
  void library(int id, const BufferRef& a, const BufferRef& out, bool fence = false) {
    const int64_t count = out->nbytes / 4, stride = 1;
    Recorder::Node node(*recorder, Opcode::library, DType::kF32);
    node.writer().attribute(id);
    node.writer().attribute(0);
    if (fence) node.writer().fence();
    node.writer().input(a.get(), DType::kF32, 1, 0, &count, &stride);
    node.makes(*out.get());
    node.writer().output(out.get(), DType::kF32, 1, 0, &count, &stride);
    node.commit();
  }
  std::vector<float> values(const BufferRef& buffer) { return read<float>(*recorder, *buffer.get()); }
  bool fails(const BufferRef& buffer) {
    try {
      recorder->wait_for(*buffer.get(), false, FlushReason::value_read);
    } catch (const DeferredError&) {
      return true;
    }
    return false;
  }

  device::Device* device = &host_device();
  int lines_asked = 0, line = 1;
  bool interrupted = false;
  std::unique_ptr<Recorder> recorder;
};

// ------------------------------------------------------------------------------------------------- Recording, reading

TEST_F(RecorderTest, MemoryComesAtTheFlush) {
  start();
  const BufferRef a = make(3);
  fill(a, 2);
  EXPECT_FALSE(a->block);
  EXPECT_EQ(recorder->pending(), 1u);
  EXPECT_FALSE(recorder->is_idle(*a.get()));
  recorder->flush(FlushReason::synchronize);
  EXPECT_TRUE(a->block);
  EXPECT_EQ(recorder->pending(), 0u);
  EXPECT_THAT(values(a), ElementsAre(2, 2, 2));
  EXPECT_TRUE(recorder->is_idle(*a.get()));
}

TEST_F(RecorderTest, ReadingFlushesOnlyWhatWritesTheBuffer) {
  start();
  const BufferRef a = make(2), b = make(2), c = make(2);
  fill(a, 1);
  EXPECT_THAT(values(a), ElementsAre(1, 1));
  add(a, 1, b);
  EXPECT_THAT(values(a), ElementsAre(1, 1));  // only read by what is recorded
  EXPECT_EQ(recorder->pending(), 1u);
  recorder->wait_for(*a.get(), true, FlushReason::address);  // about to be written: its reader runs first
  EXPECT_EQ(recorder->pending(), 0u);
  EXPECT_THAT(values(b), ElementsAre(2, 2));
  recorder->wait_for(*c.get(), false, FlushReason::value_read);  // never written: memory without a content
  EXPECT_TRUE(c->block);
}

TEST_F(RecorderTest, WhatNobodySeesIsNotMade) {
  start();
  const BufferRef a = make(4), b = make(4);
  fill(a, 1);
  add(a, 1, b);
  a->visible = false;
  recorder->flush(FlushReason::synchronize);
  EXPECT_FALSE(a->block);
  EXPECT_THAT(values(b), ElementsAre(2, 2, 2, 2));
  EXPECT_EQ(recorder->statistics().launches, 1);
  EXPECT_EQ(recorder->statistics().bytes_not_written, 16);
}

TEST_F(RecorderTest, UnfusedEveryOperatorIsALaunch) {
  start({.adaptive = false});
  const BufferRef a = make(2), b = make(2);
  fill(a, 1);
  add(a, 1, b);
  EXPECT_EQ(recorder->pending(), 0u);
  EXPECT_EQ(recorder->statistics().launches, 2);
  EXPECT_EQ(recorder->statistics().flushes_by_reason[static_cast<int>(FlushReason::unfused)], 2);
  EXPECT_THAT(values(b), ElementsAre(2, 2));
}

TEST_F(RecorderTest, FlushesAfterEachPeriod) {
  start({.adaptive = true, .period = 3});
  const BufferRef a = make(1);
  fill(a, 0);
  for (int i = 0; i < 7; ++i) add(a, 1, a);
  EXPECT_EQ(recorder->pending(), 2u);
  EXPECT_EQ(recorder->statistics().flushes_by_reason[static_cast<int>(FlushReason::forced_period)], 2);
  EXPECT_THAT(values(a), ElementsAre(7));
}

constexpr int64_t kElements = 10'000;  // of 40,000 bytes; the budget does not count very small values

TEST_F(RecorderTest, HoldsNoMoreBytesThanTwiceTheBudget) {
  start({.adaptive = true, .bytes_budget = 100'000});
  std::vector<BufferRef> kept;
  for (int i = 0; i < 12; ++i) {
    kept.push_back(make(kElements));
    fill(kept.back(), i);
  }
  // The sixth makes it 240,000.
  EXPECT_EQ(recorder->statistics().flushes_by_reason[static_cast<int>(FlushReason::bytes_budget)], 2);
  EXPECT_EQ(recorder->pending(), 0u);
}

TEST_F(RecorderTest, CountsOnlyBytesThatItHoldsAsDropped) {
  start({.adaptive = true, .bytes_budget = 100'000});
  const BufferRef old = make(100 * kElements);
  fill(old, 1);
  recorder->flush(FlushReason::synchronize);
  add(old, 1, old);
  recorder->drop(*old.get());  // has memory already: its end frees nothing of the budget
  std::vector<BufferRef> kept;
  const auto make_one = [&] {
    kept.push_back(make(kElements));
    fill(kept.back(), 1);
  };
  for (int i = 0; i < 5; ++i) make_one();
  EXPECT_EQ(recorder->pending(), 6u);
  recorder->drop(*kept[0].get());
  make_one();
  EXPECT_EQ(recorder->pending(), 7u);  // 200,000 bytes
  make_one();
  EXPECT_EQ(recorder->pending(), 0u);
}

TEST_F(RecorderTest, ChangingTheModeFlushes) {
  start();
  const BufferRef a = make(1);
  fill(a, 1);
  recorder->set_settings({.adaptive = false});
  EXPECT_EQ(recorder->pending(), 0u);
  EXPECT_FALSE(recorder->settings().adaptive);
  EXPECT_EQ(recorder->statistics().flushes_by_reason[static_cast<int>(FlushReason::mode_change)], 1);
}

TEST_F(RecorderTest, DenormalsAreFlushedInWhatIsRecordedAfterTheSetting) {
  start();
  const BufferRef a = make(1), before = make(1), after = make(1);
  fill(a, 1e-40);
  add(a, 0, before);
  const unsigned mode = _mm_getcsr();
  _mm_setcsr(mode | device::kFlushBits);
  add(a, 0, after);
  _mm_setcsr(mode);
  EXPECT_THAT(values(before), ElementsAre(1e-40f));
  EXPECT_THAT(values(after), ElementsAre(0));
}

TEST_F(RecorderTest, ThreadsThatWaitForTheLockGetIt) {
  start();
  std::atomic<int64_t> recorded{0};
  const auto record = [&] {
    for (int i = 0; i < 20'000; ++i, ++recorded) fill(make(1), i);
  };
  std::thread one(record), two(record), three(record);
  one.join();
  two.join();
  three.join();
  EXPECT_EQ(recorded, 60'000);
  EXPECT_EQ(recorder->statistics().operators_recorded, 60'000);
}

TEST_F(RecorderTest, AWaitCanBeInterrupted) {
  start();
  const BufferRef a = make(2), b = make(2);
  fill(a, 3);
  library(kSlowCopy, a, b);
  interrupted = true;
  EXPECT_THROW(recorder->synchronize(), std::runtime_error);
  interrupted = false;
  EXPECT_THAT(values(b), ElementsAre(3, 3));
}

// -------------------------------------------------------------------------------------------------- Plans, statistics

TEST_F(RecorderTest, FollowingAKnownPlanAsksForNoLines) {
  start();
  const auto step = [&] {
    const BufferRef a = make(2), b = make(2);
    fill(a, 1);
    add(a, 2, b);
    return values(b);
  };
  step();
  const int first = lines_asked;
  EXPECT_GE(first, 2);
  step();  // nothing came after this plan before, so it is not followed from its beginning
  const int second = lines_asked;
  step();
  step();
  EXPECT_THAT(step(), ElementsAre(3, 3));
  // Each read asks for the reader's line, once.
  EXPECT_EQ(lines_asked - second, 3);
  EXPECT_EQ(recorder->statistics().plans_made, 1);
  EXPECT_EQ(recorder->statistics().operators_plan_hit, 8);
  EXPECT_EQ(recorder->statistics().operators_flushed, 10);
  EXPECT_EQ(recorder->recent_plans().size(), 1u);
  EXPECT_THAT(recorder->recent_plans()[0]->lines, ElementsAre("train.py:1", "train.py:1"));
}

TEST_F(RecorderTest, LeavingAPlanKeepsTheLinesOfWhatWasFollowed) {
  start();
  const BufferRef a = make(2), b = make(2);
  const auto step = [&](int operators) {
    fill(a, 1);
    for (int i = 0; i < operators; ++i) add(a, 2, b);
    recorder->flush(FlushReason::synchronize);
  };
  for (int i = 0; i < 3; ++i) step(1);
  line = 2;
  step(2);
  ASSERT_EQ(recorder->recent_plans().size(), 3u);
  EXPECT_THAT(recorder->recent_plans()[0]->lines, ElementsAre("train.py:1", "train.py:1", "train.py:2"));
}

TEST_F(RecorderTest, PlansThatTakeTurnsAreFollowed) {
  start();
  const BufferRef a = make(2), b = make(2);
  const auto step = [&](int i) {
    fill(a, i);
    if (i % 2)
      add(a, 2, b);
    else
      add(b, 2, a);
    recorder->flush(FlushReason::synchronize);
  };
  for (int i = 0; i < 8; ++i) step(i);
  const int before = lines_asked;
  for (int i = 0; i < 4; ++i) step(i);
  EXPECT_EQ(lines_asked - before, 4);  // the flushes' own
}

TEST_F(RecorderTest, StatisticsCountFromTheLastReset) {
  start();
  const BufferRef a = make(2);
  fill(a, 1);
  values(a);
  Statistics statistics = recorder->statistics();
  EXPECT_EQ(statistics.operators_recorded, 1);
  EXPECT_EQ(statistics.operators_flushed, 1);
  EXPECT_EQ(statistics.operators_plan_hit, 0);
  EXPECT_EQ(statistics.flushes, 1);
  EXPECT_EQ(statistics.launches, 1);
  EXPECT_EQ(statistics.plans_made, 1);
  EXPECT_EQ(statistics.kernels_made, 1);
  EXPECT_EQ(statistics.flushes_by_reason[static_cast<int>(FlushReason::value_read)], 1);
  EXPECT_EQ((statistics.flushes_by_line[{FlushReason::value_read, "train.py:1"}]), 1);
  EXPECT_GT(statistics.ns_planning, 0);
  EXPECT_GT(statistics.ns_executing, 0);
  recorder->reset_statistics();
  statistics = recorder->statistics();
  EXPECT_EQ(statistics.operators_recorded + statistics.flushes + statistics.launches + statistics.kernels_made, 0);
  EXPECT_EQ(statistics.ns_executing, 0);
  EXPECT_TRUE(statistics.flushes_by_line.empty());
}

// ------------------------------------------------------------------------------------------------------- Learned cuts

/// A step of `operators` operators, that a program repeats.
class LearnedCuts : public RecorderTest {
 protected:
  void record(int operators, double value = 1) {
    fill(sum, 0);
    for (int i = 1; i < operators; ++i) add(sum, value, sum);
  }
  int64_t cuts() const { return recorder->statistics().flushes_by_reason[static_cast<int>(FlushReason::device_idle)]; }
  const BufferRef sum = make(3);
};

TEST_F(LearnedCuts, FallWhereADeviceHadToWait) {
  start();
  constexpr int kOperators = 3 * kMinPiece - 5;  // the last piece is another than the second
  const auto step = [&](double value) {
    record(kOperators, value);
    return values(sum)[0];
  };
  for (int i = 0; i <= kIdleFlushes; ++i) EXPECT_EQ(step(1), kOperators - 1);  // the first made memory: another plan
  EXPECT_EQ(cuts(), 0);
  EXPECT_EQ(step(1), kOperators - 1);
  EXPECT_EQ(cuts(), 1);
  const int lines = lines_asked;
  recorder->reset_statistics();
  for (int i = 1; i <= 5; ++i) EXPECT_EQ(step(i), i * (kOperators - 1));
  EXPECT_EQ(cuts(), 5);
  EXPECT_EQ(recorder->statistics().flushes, 10);
  EXPECT_EQ(recorder->statistics().plans_made, 0);
  EXPECT_EQ(lines_asked - lines, 5);  // the reads' own
}

TEST_F(LearnedCuts, LeaveAProgramThatGoesAnotherWayExact) {
  start();
  constexpr int kOperators = 3 * kMinPiece;
  for (int i = 0; i < 2 * kIdleFlushes; ++i) {
    record(kOperators);
    EXPECT_EQ(values(sum)[0], kOperators - 1);
  }
  EXPECT_GT(cuts(), 0);
  for (const int operators : {5, kOperators - 7, kOperators, kOperators + 40, kOperators, 7}) {
    record(operators);
    EXPECT_EQ(values(sum)[0], operators - 1);
  }
}

TEST_F(LearnedCuts, DoNotFallWhileTheDeviceIsBusy) {
  start();
  const BufferRef a = make(2), b = make(2);
  fill(a, 1);
  for (int i = 0; i < 3 * kIdleFlushes; ++i) {
    record(3 * kMinPiece);
    library(kSlowCopy, a, b);
    recorder->flush(FlushReason::synchronize);  // without waiting
  }
  EXPECT_EQ(cuts(), 0);
  EXPECT_EQ(values(sum)[0], 3 * kMinPiece - 1);
}

TEST_F(LearnedCuts, CanBeSwitchedOff) {
  start({.adaptive = true, .cuts_when_idle = false});
  for (int i = 0; i < 3 * kIdleFlushes; ++i) {
    record(3 * kMinPiece);
    EXPECT_EQ(values(sum)[0], 3 * kMinPiece - 1);
  }
  EXPECT_EQ(cuts(), 0);
}

// ----------------------------------------------------------------------------------------------------------- Failures

/// Both where a program runs as one and where each operator is one; with memory that is written in place, or not.
class Failures : public RecorderTest, public ::testing::WithParamInterface<std::tuple<bool, bool>> {
 protected:
  void SetUp() override {
    if (std::get<1>(GetParam())) device = &functional_device();
    start({.adaptive = std::get<0>(GetParam())});
  }
};
INSTANTIATE_TEST_SUITE_P(Modes, Failures, ::testing::Combine(::testing::Bool(), ::testing::Bool()),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param) ? "adaptive" : "unfused") +
                                  (std::get<1>(info.param) ? "_functional" : "_host");
                         });

TEST_P(Failures, LoseWhatWasMadeAfterAndNothingElse) {
  const BufferRef bad = make(2), weights = make(2), untouched = make(2), checked = make(2), after = make(2),
                  before = make(2);
  fill(weights, 1);
  fill(untouched, 5);
  EXPECT_THAT(values(weights), ElementsAre(1, 1));
  fill(bad, -1);
  add(weights, 1, weights);
  add(weights, 0, before);
  line = 7;
  checked_copy(bad, checked);
  line = 8;
  add(weights, 100, weights);
  add(untouched, 1, after);
  try {
    values(after);
    FAIL() << "no error";
  } catch (const DeferredError& error) {
    EXPECT_EQ(error.failure->origin, "train.py:7");
    EXPECT_THROW(std::rethrow_exception(error.failure->error), std::runtime_error);
  }
  EXPECT_THAT(values(weights), ElementsAre(2, 2));  // as before the failing operator
  EXPECT_THAT(values(before), ElementsAre(2, 2));
  EXPECT_THAT(values(untouched), ElementsAre(5, 5));
  EXPECT_THAT(values(bad), ElementsAre(-1, -1));
  EXPECT_TRUE(fails(checked));
  EXPECT_TRUE(fails(after));
  EXPECT_TRUE(fails(after));  // until it is written again
  fill(after, 3);
  EXPECT_THAT(values(after), ElementsAre(3, 3));
  recorder->synchronize();  // the error has been seen
}

TEST_P(Failures, AreRaisedOnceAtASynchronization) {
  const BufferRef bad = make(2), checked = make(2), next = make(2);
  fill(bad, -1);
  checked_copy(bad, checked);
  EXPECT_THROW(recorder->synchronize(), DeferredError);
  recorder->synchronize();
  add(bad, 3, next);
  EXPECT_THAT(values(next), ElementsAre(2, 2));  // later work runs
  fill(bad, -2);
  checked_copy(bad, checked);
  EXPECT_THROW(recorder->synchronize(), DeferredError);  // and can fail again
}

TEST_P(Failures, CancelWhatWasFlushedAfterTheProgramHadFailed) {
  const BufferRef bad = make(2), checked = make(2), later = make(2);
  fill(bad, -1);
  checked_copy(bad, checked);
  recorder->flush(FlushReason::synchronize);
  device::Stream& stream = device->default_stream();
  while (!stream.wait(stream.submitted(), 50)) {
  }
  fill(later, 1);  // nobody has seen the error yet
  recorder->flush(FlushReason::synchronize);
  EXPECT_TRUE(fails(later));
  EXPECT_TRUE(fails(later));
}

TEST_P(Failures, ALossPassesOnToWhatIsComputedFromIt) {
  const BufferRef bad = make(2), lost = make(2), sum = make(2), fine = make(2);
  fill(bad, -1);
  checked_copy(bad, lost);
  EXPECT_TRUE(fails(lost));
  add(lost, 1, sum);
  fill(lost, 4);
  add(lost, 1, fine);
  EXPECT_TRUE(fails(sum));
  EXPECT_THAT(values(lost), ElementsAre(4, 4));
  EXPECT_THAT(values(fine), ElementsAre(5, 5));
}

TEST_P(Failures, AWriteThatIsCancelledDoesNotMakeALossGood) {
  const BufferRef bad = make(2), lost = make(2), other = make(2);
  fill(bad, -1);
  checked_copy(bad, lost);
  recorder->flush(FlushReason::synchronize);
  fill(lost, 1);  // cancelled: the error has not been seen
  EXPECT_THROW(recorder->synchronize(), DeferredError);
  EXPECT_TRUE(fails(lost));
}

// ------------------------------------------------------------------------------------------------------------ Threads

TEST_F(RecorderTest, TwoThreadsRecordAtOnce) {
  for (const bool adaptive : {true, false}) {
    start({.adaptive = adaptive, .window = 50});
    const auto work = [&](const BufferRef& buffer) {
      fill(buffer, 0);
      for (int i = 0; i < 300; ++i) {
        add(buffer, 1, buffer);
        if (i % 97 == 0) values(buffer);
      }
    };
    const BufferRef a = make(5), b = make(1000);
    std::thread other([&] { work(b); });
    work(a);
    other.join();
    EXPECT_THAT(values(a), ::testing::Each(300));
    EXPECT_THAT(values(b), ::testing::Each(300));
    EXPECT_EQ(recorder->statistics().operators_recorded, 602);
    recorder.reset();
  }
}

TEST_F(RecorderTest, WaitsForItsWorkBeforeItEnds) {
  start();
  const BufferRef a = make(1 << 20);
  fill(a, 1);
  for (int i = 0; i < 20; ++i) {
    add(a, 1, a);
    recorder->flush(FlushReason::synchronize);
  }
  recorder.reset();
  EXPECT_EQ(static_cast<const float*>(a->block->address())[(1 << 20) - 1], 21);
}

}  // namespace
}  // namespace ae::fusion::testing
