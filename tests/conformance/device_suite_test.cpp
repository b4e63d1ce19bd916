#include "tests/conformance/device_suite.h"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "device/host/host_device.h"
#include "tests/conformance/functional_device.h"

namespace ae::device::conformance {

namespace {

// ------------------------------------------------------------------------------------------------------- Launches

TEST_P(DeviceSuite, ALaunchStoresWhatItsProgramComputes) {
  LaunchSpec launch;
  launch.segments = {multiply_add(5, 0, 1)};
  launch.allocate = {1};
  const auto slots = run({2, {20, 20}, {launch}}, {put({1, 2, 3, 4, 5})}, {scalar_word(2), scalar_word(1)});
  EXPECT_EQ(get(slots[1]), (std::vector<float>{3, 5, 7, 9, 11}));
}

TEST_P(DeviceSuite, OneExecutableServesSeveralSizes) {
  for (int64_t n : {1, 15, 16, 17, 1000, 5000}) {
    LaunchSpec launch;
    launch.segments = {multiply_add(n, 0, 1)};
    launch.allocate = {1};
    const auto slots =
        run({2, {4 * n, 4 * n}, {launch}}, {put(std::vector<float>(n, 3))}, {scalar_word(2), scalar_word(1)});
    EXPECT_EQ(get(slots[1]), std::vector<float>(n, 7)) << n;
  }
}

TEST_P(DeviceSuite, AnEmptySpaceWritesNothingAndAReductionOfNothingIsItsIdentity) {
  LaunchSpec launch;
  launch.segments = {multiply_add(0, 0, 1), sum(0, 0, 2)};
  const auto slots = run({3, {4, 4, 4}, {launch}}, {put({1}), put({5}), put({6})}, {scalar_word(2), scalar_word(1)});
  EXPECT_EQ(get(slots[1]), std::vector<float>{5});
  EXPECT_EQ(get(slots[2]), std::vector<float>{0});
}

TEST_P(DeviceSuite, SegmentsOfALaunchAllRun) {
  LaunchSpec launch;
  ProgramSpec spec;
  std::vector<BlockRef> slots;
  for (int32_t i = 0; i < 20; ++i) {
    launch.segments.push_back(multiply_add(1 + 100 * i, i, i));  // in place
    spec.slot_bytes.push_back(4 * (1 + 100 * i));
    slots.push_back(put(std::vector<float>(1 + 100 * i, static_cast<float>(i))));
  }
  spec.slots = 20;
  spec.launches = {launch};
  slots = run(spec, slots, {scalar_word(10), scalar_word(1)});
  for (int32_t i = 0; i < 20; ++i) {
    EXPECT_EQ(get(slots[i]), std::vector<float>(1 + 100 * i, static_cast<float>(10 * i + 1)));
  }
}

TEST_P(DeviceSuite, ALongSumAddsUp) {
  const int64_t n = 1 << 20;
  LaunchSpec launch;
  launch.segments = {sum(n, 0, 1)};
  launch.allocate = {1};
  const auto slots = run({2, {4 * n, 4}, {launch}}, {put(std::vector<float>(n, 1))});
  EXPECT_EQ(get(slots[1]), std::vector<float>{1 << 20});
}

TEST_P(DeviceSuite, ScalarsBelongToTheSubmission) {
  LaunchSpec launch;
  launch.segments = {multiply_add(1, 0, 0, 1)};
  const auto program = device_->compile({1, {4}, {launch}});
  BlockRef x = put({1});
  for (int i = 2; i <= 6; ++i) {
    Submission submission;
    submission.program = program;
    submission.slots = {x};
    submission.scalars = {0, scalar_word(i), scalar_word(0)};
    stream().submit(submission);
    x = submission.slots[0];
  }
  EXPECT_EQ(get(x), std::vector<float>{720});  // 6!
}

TEST_P(DeviceSuite, AllPiecesOfALibraryCallRunAndSeeItsScalars) {
  LaunchSpec launch = call(
      [](int piece, void* const* addresses, const uint64_t* scalars) {
        static_cast<float*>(addresses[0])[piece] += static_cast<float>(scalars[0] + scalars[1] * piece);
      },
      {0}, 100);
  launch.library_scalars = 1;
  const auto slots = run({1, {400}, {launch}}, {put(std::vector<float>(100, 1))}, {99, 5, 2});
  const std::vector<float> result = get(slots[0]);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(result[i], 1 + 5 + 2 * i);
}

TEST_P(DeviceSuite, DenormalsAreFlushedInSubmissionsThatSaySo) {
  const float tiny = 1e-40f;
  LaunchSpec launch;
  launch.segments = {multiply_add(1, 0, 1)};
  launch.allocate = {1};
  const auto program = device_->compile({2, {4, 4}, {launch}});
  for (bool flush : {false, true, false}) {
    Submission submission;
    submission.program = program;
    submission.slots = {put({tiny})};
    submission.scalars = {scalar_word(1), scalar_word(0)};
    submission.flush_denormal = flush;
    stream().submit(submission);
    EXPECT_EQ(get(submission.slots[1])[0], flush ? 0.0f : tiny);
  }
}

// ----------------------------------------------------------------------------------------------- Order and progress

TEST_P(DeviceSuite, LaunchesTakeEffectInTheOrderOfSubmission) {
  BlockRef x = put({1});
  LaunchSpec launch;
  launch.segments = {multiply_add(1, 0, 0)};
  const auto program = device_->compile({1, {4}, {launch, launch}});
  float expected = 1;
  for (int i = 0; i < 500; ++i) {
    const double factor = i % 3 == 0 ? -1 : 1;
    Submission submission;
    submission.program = program;
    submission.slots = {x};
    submission.scalars = {scalar_word(factor), scalar_word(i)};
    stream().submit(submission);
    x = submission.slots[0];
    for (int twice = 0; twice < 2; ++twice) expected = expected * static_cast<float>(factor) + static_cast<float>(i);
  }
  EXPECT_EQ(get(x)[0], expected);
}

TEST_P(DeviceSuite, NumbersCountLaunchesAndCompletionFollows) {
  Gate gate;
  const uint64_t start = stream().submitted();
  const auto nothing = [](int, void* const*, const uint64_t*) {};
  const auto program = device_->compile(
      {0,
       {},
       {call(nothing, {}), call([&](int, void* const*, const uint64_t*) { gate.pass(); }, {}), call(nothing, {})}});
  Submission submission;
  submission.program = program;
  EXPECT_EQ(stream().submit(submission), start);
  EXPECT_EQ(stream().submitted(), start + 3);
  EXPECT_TRUE(stream().wait(start + 1, 60'000));
  EXPECT_FALSE(stream().wait(start + 2, 20));
  EXPECT_EQ(stream().completed(), start + 1);
  gate.open();
  EXPECT_TRUE(stream().wait(start + 3, 60'000));
  EXPECT_EQ(stream().completed(), start + 3);
}

TEST_P(DeviceSuite, TheEndIsToldOnceAndBeforeItIsSeen) {
  std::atomic<int> told{0};
  for (int i = 0; i < 200; ++i) {
    Submission submission;
    submission.program = device_->compile({0, {}, {call([](int, void* const*, const uint64_t*) {}, {})}});
    submission.on_end = [&](const LaunchError* error) {
      EXPECT_EQ(error, nullptr);
      ++told;
    };
    const uint64_t number = stream().submit(submission);
    ASSERT_TRUE(stream().wait(number + 1, 60'000));
    ASSERT_EQ(told, i + 1);
  }
}

TEST_P(DeviceSuite, SubmissionsOfTwoThreadsKeepEachThreadsOrder) {
  BlockRef x[2] = {put({0}), put({0})};
  LaunchSpec launch;
  launch.segments = {multiply_add(1, 0, 0)};
  const auto program = device_->compile({1, {4}, {launch}});
  const auto work = [&](int thread) {
    for (int i = 1; i <= 300; ++i) {
      Submission submission;
      submission.program = program;
      submission.slots = {x[thread]};
      submission.scalars = {scalar_word(-1), scalar_word(i)};
      stream().submit(submission);
      x[thread] = submission.slots[0];
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  // x becomes i - x each time: 300 - 299 + 298 - ... = 150.
  EXPECT_EQ(get(x[0]), std::vector<float>{150});
  EXPECT_EQ(get(x[1]), std::vector<float>{150});
}

TEST_P(DeviceSuite, ADeviceRunsWhatIsQueuedBeforeItEnds) {
  std::atomic<int> ran{0};
  for (int i = 0; i < 50; ++i) {
    Submission submission;
    submission.program = device_->compile({0, {}, {call([&](int, void* const*, const uint64_t*) { ++ran; }, {})}});
    stream().submit(submission);
  }
  device_.reset();
  EXPECT_EQ(ran, 50);
}

// ---------------------------------------------------------------------------------------------------------- Errors

TEST_P(DeviceSuite, AnErrorCancelsTheRestOfItsProgramAndLaterProgramsRun) {
  std::atomic<int> ran{0};
  const auto count = [&](int, void* const*, const uint64_t*) { ++ran; };
  const auto fail = [](int, void* const*, const uint64_t*) { throw std::out_of_range("index 7"); };
  Submission failing;
  failing.program = device_->compile({0, {}, {call(count, {}), call(fail, {}), call(count, {})}});
  int failed_launch = -1, told = 0;
  std::string what;
  failing.on_end = [&](const LaunchError* error) {
    ++told;
    ASSERT_NE(error, nullptr);
    failed_launch = error->launch;
    try {
      std::rethrow_exception(error->error);
    } catch (const std::out_of_range& e) {
      what = e.what();
    }
  };
  const uint64_t number = stream().submit(failing);
  Submission later;
  later.program = device_->compile({0, {}, {call(count, {})}});
  stream().submit(later);
  wait_all();
  EXPECT_EQ(stream().completed(), number + 4);
  EXPECT_EQ(ran, 2);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(failed_launch, 1);
  EXPECT_EQ(what, "index 7");
}

TEST_P(DeviceSuite, TheFirstFailingPieceGivesTheError) {
  Submission submission;
  submission.program = device_->compile({0,
                                         {},
                                         {call(
                                             [](int piece, void* const*, const uint64_t*) {
                                               if (piece % 7 == 3)
                                                 throw std::runtime_error("piece " + std::to_string(piece));
                                             },
                                             {}, 60)}});
  std::string what;
  submission.on_end = [&](const LaunchError* error) {
    try {
      std::rethrow_exception(error->error);
    } catch (const std::runtime_error& e) {
      what = e.what();
    }
  };
  stream().submit(submission);
  wait_all();
  EXPECT_EQ(what, "piece 3");
}

TEST_P(DeviceSuite, AFailureCancelsLaterProgramsWithItsTokenOnly) {
  Gate gate;
  std::atomic<int> ran{0};
  const auto token = std::make_shared<CancelToken>();
  std::vector<int> errors(3, -1);
  const auto submit = [&](int index, Call::Body body, std::shared_ptr<CancelToken> own_token) {
    Submission submission;
    submission.program = device_->compile({0, {}, {call(std::move(body), {})}});
    submission.token = std::move(own_token);
    submission.on_end = [&errors, index](const LaunchError* error) { errors[index] = error != nullptr; };
    stream().submit(submission);
  };
  submit(
      0,
      [&](int, void* const*, const uint64_t*) {
        gate.pass();
        throw std::runtime_error("bad");
      },
      token);
  submit(1, [&](int, void* const*, const uint64_t*) { ran += 10; }, token);
  submit(2, [&](int, void* const*, const uint64_t*) { ran += 1; }, nullptr);
  gate.open();
  wait_all();
  EXPECT_EQ(errors, (std::vector<int>{1, 1, 0}));
  EXPECT_EQ(ran, 1);
  EXPECT_TRUE(token->failed);
  EXPECT_THROW(std::rethrow_exception(token->error), std::runtime_error);
}

// ---------------------------------------------------------------------------------------------------------- Memory

TEST_P(DeviceSuite, TemporariesCarryValuesBetweenLaunchesAndAreNotSeen) {
  // slot 0: x, 1: temporary 2x+1, 2: temporary 2(2x+1)+1, 3: result, 4: temporary that lives throughout.
  LaunchSpec launches[3];
  launches[0].segments = {multiply_add(64, 0, 1), multiply_add(64, 0, 4)};
  launches[0].allocate = {1, 4};
  launches[1].segments = {multiply_add(64, 1, 2)};
  launches[1].allocate = {2};
  launches[1].free = {1};
  launches[2].segments = {multiply_add(64, 2, 3), multiply_add(64, 4, 5)};
  launches[2].allocate = {3, 5};
  launches[2].free = {2, 4};
  const std::vector<int64_t> bytes(6, 256);
  const auto slots = run({6, bytes, {launches[0], launches[1], launches[2]}}, {put(std::vector<float>(64, 1))},
                         {scalar_word(2), scalar_word(1)});
  EXPECT_EQ(get(slots[3]), std::vector<float>(64, 15));
  EXPECT_EQ(get(slots[5]), std::vector<float>(64, 7));
  EXPECT_FALSE(slots[1]);
  EXPECT_FALSE(slots[2]);
  EXPECT_FALSE(slots[4]);
}

TEST_P(DeviceSuite, ABlockDroppedByAProgramIsStillTheOtherHoldersOwn) {
  const BlockRef x = put({4});
  LaunchSpec launches[2];
  launches[0].segments = {multiply_add(1, 0, 1)};
  launches[0].allocate = {1};
  launches[0].free = {0};
  launches[1].segments = {multiply_add(1, 1, 2)};
  launches[1].allocate = {2};
  const auto slots = run({3, {4, 4, 4}, {launches[0], launches[1]}}, {x}, {scalar_word(2), scalar_word(1)});
  EXPECT_FALSE(slots[0]);
  EXPECT_EQ(get(slots[1]), std::vector<float>{9});
  EXPECT_EQ(get(slots[2]), std::vector<float>{19});
  EXPECT_EQ(get(x), std::vector<float>{4});
}

TEST_P(DeviceSuite, BlocksThatAreFreedWhileLaunchesUseThemKeepTheirContentForThem) {
  Gate gate;
  std::vector<float> sums;
  for (int round = 0; round < 40; ++round) {
    LaunchSpec fill;
    fill.segments = {multiply_add(1000, 0, 1)};
    fill.allocate = {1};
    LaunchSpec check = call(
        [&](int, void* const* addresses, const uint64_t*) {
          gate.pass();
          sums.push_back(static_cast<const float*>(addresses[0])[999]);
        },
        {1});
    Submission submission;
    submission.program = device_->compile({2, {4000, 4000}, {fill, check}});
    submission.slots = {device_->allocate(4000)};  // content does not matter: it is multiplied by 0
    LaunchSpec zero =
        call([](int, void* const* addresses, const uint64_t*) { std::memset(addresses[0], 0, 4000); }, {0});
    Submission first;
    first.program = device_->compile({1, {4000}, {zero}});
    first.slots = submission.slots;
    stream().submit(first);
    submission.slots = first.slots;
    submission.scalars = {scalar_word(0), scalar_word(round)};
    stream().submit(submission);
  }  // all blocks are dropped here, before anything ran
  gate.open();
  wait_all();
  ASSERT_EQ(sums.size(), 40u);
  for (int round = 0; round < 40; ++round) EXPECT_EQ(sums[round], round);
}

TEST_P(DeviceSuite, WithoutMemoryNothingIsQueuedAndTheSlotsAreAsBefore) {
  const BlockRef x = put(std::vector<float>(1000, 1));
  LaunchSpec launches[2];
  launches[0].segments = {multiply_add(1000, 0, 1)};
  launches[0].allocate = {1};
  launches[0].free = {0};
  launches[1].segments = {multiply_add(1000, 1, 2)};
  launches[1].allocate = {2};
  Submission submission;
  submission.program = device_->compile({3, {4000, 4000, 400'000'000}, {launches[0], launches[1]}});
  submission.slots = {x};
  submission.scalars = {scalar_word(2), scalar_word(1)};
  device_->set_memory_limit(device_->memory_stats().allocated + 100'000'000);
  const uint64_t before = stream().submitted();
  const int64_t allocated = device_->memory_stats().allocated;
  EXPECT_THROW(stream().submit(submission), OutOfMemory);
  EXPECT_EQ(stream().submitted(), before);
  EXPECT_EQ(device_->memory_stats().allocated, allocated);
  EXPECT_EQ(device_->memory_stats().out_of_memory, 1);
  EXPECT_EQ(submission.slots[0].get(), x.get());
  EXPECT_FALSE(submission.slots[1]);
  device_->set_memory_limit(-1);
  stream().submit(submission);
  EXPECT_EQ(get(submission.slots[1]), std::vector<float>(1000, 3));
}

TEST_P(DeviceSuite, StatisticsFollowAllocationAndRelease) {
  const MemoryStats start = device_->memory_stats();
  {
    const BlockRef a = device_->allocate(1000), b = device_->allocate(5 << 20);
    const MemoryStats now = device_->memory_stats();
    EXPECT_EQ(a->size(), 1000);
    EXPECT_GE(now.allocated, start.allocated + 1000 + (5 << 20));
    EXPECT_LE(now.allocated, start.allocated + 2000 + (6 << 20));
    EXPECT_EQ(now.allocations, start.allocations + 2);
    EXPECT_GE(now.reserved, now.allocated);
  }
  const MemoryStats end = device_->memory_stats();
  EXPECT_EQ(end.allocated, start.allocated);
  EXPECT_EQ(end.frees_total, start.frees_total + 2);
  EXPECT_GE(end.allocated_peak, start.allocated + (5 << 20));
  device_->reset_peak_stats();
  EXPECT_EQ(device_->memory_stats().allocated_peak, end.allocated);
  device_->reset_accumulated_stats();
  EXPECT_EQ(device_->memory_stats().allocations_total, 0);
}

TEST_P(DeviceSuite, ABlockMayOutliveItsDevice) {
  const BlockRef x = put({1, 2, 3});
  device_.reset();
  EXPECT_EQ(x->size(), 12);
}

TEST_P(DeviceSuite, HostCopiesGiveBackWhatWasPut) {
  std::vector<float> numbers(5000);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  const BlockRef a = device_->copy_from_host(numbers.data(), 20'000), b = device_->copy_from_host(nullptr, 0);
  EXPECT_EQ(a->size(), 20'000);
  EXPECT_EQ(b->size(), 0);
  EXPECT_EQ(get(a), numbers);
  EXPECT_TRUE(get(b).empty());
  device_->set_memory_limit(device_->memory_stats().allocated);
  EXPECT_THROW(device_->copy_from_host(numbers.data(), 20'000), OutOfMemory);
}

TEST_P(DeviceSuite, AHeldBlockChangesOnlyWhereTheDeviceWritesInPlace) {
  const BlockRef x = put({1, 2});
  LaunchSpec launch;
  launch.segments = {multiply_add(2, 0, 0)};
  const auto slots = run({1, {8}, {launch}}, {x}, {scalar_word(2), scalar_word(1)});
  const bool in_place = device_->capabilities().write_in_place;
  EXPECT_EQ(slots[0].get() == x.get(), in_place);
  EXPECT_EQ(get(slots[0]), (std::vector<float>{3, 5}));
  EXPECT_EQ(get(x), in_place ? (std::vector<float>{3, 5}) : (std::vector<float>{1, 2}));
}

TEST_P(DeviceSuite, AFailedProgramLeavesInItsSlotsWhatItsLaunchesWrote) {
  for (const bool held : {false, true}) {
    BlockRef x[2] = {put({1}), put({10})};
    LaunchSpec launches[2];
    launches[0].segments = {multiply_add(1, 0, 0)};
    launches[1].segments = {multiply_add(1, 0, 0), multiply_add(1, 1, 1)};
    Submission submission;
    submission.program = device_->compile(
        {2, {4, 4}, {launches[0], call([](int, void* const*, const uint64_t*) { throw 1; }, {}), launches[1]}});
    submission.slots = {x[0], x[1]};
    submission.scalars = {scalar_word(2), scalar_word(1)};
    if (!held) x[0] = x[1] = {};
    stream().submit(submission);
    EXPECT_EQ(get(submission.slots[0]), std::vector<float>{3});
    EXPECT_EQ(get(submission.slots[1]), std::vector<float>{10});
  }
}

TEST_P(DeviceSuite, WhatALaunchReadsForTheLastTimeMayBecomeWhatItWrites) {
  // Two results, one of the size of the input that the program drops, each from all that is read.
  LaunchSpec launch;
  launch.segments = {multiply_add(2, 0, 1), multiply_add(2, 0, 2)};
  launch.allocate = {1, 2};
  launch.free = {0};
  Submission submission;
  submission.program = device_->compile({3, {8, 8, 8}, {launch}});
  submission.slots = {put({1, 2})};
  submission.scalars = {scalar_word(2), scalar_word(1)};
  stream().submit(submission);
  EXPECT_FALSE(submission.slots[0]);
  EXPECT_EQ(get(submission.slots[1]), (std::vector<float>{3, 5}));
  EXPECT_EQ(get(submission.slots[2]), (std::vector<float>{3, 5}));
}

// ------------------------------------------------------------------------------- Devices whose blocks have addresses

TEST_P(DeviceSuite, AddressesAreAlignedAndTheHostMayWriteFreshBlocksAtOnce) {
  if (!device_->capabilities().addressable) GTEST_SKIP() << "blocks have no addresses";
  Gate gate;
  BlockRef used = device_->allocate(4096);
  void* address = used->address();
  Submission submission;
  float seen = 0;
  submission.program = device_->compile({1,
                                         {4096},
                                         {call(
                                             [&](int, void* const* addresses, const uint64_t*) {
                                               gate.pass();
                                               seen = *static_cast<float*>(addresses[0]);
                                             },
                                             {0})}});
  *static_cast<float*>(address) = 42;
  submission.slots = {used};
  stream().submit(submission);
  submission.slots.clear();
  used = {};
  const BlockRef fresh = device_->allocate(4096);  // the launch still reads the old block
  EXPECT_EQ(reinterpret_cast<uintptr_t>(fresh->address()) % 64, 0u);
  std::memset(fresh->address(), 0, 4096);
  gate.open();
  wait_all();
  EXPECT_EQ(seen, 42);
}

TEST_P(DeviceSuite, WrappedMemoryIsGivenBackAfterTheLastLaunchThatUsesIt) {
  if (!device_->capabilities().addressable) GTEST_SKIP() << "blocks have no addresses";
  Gate gate;
  std::vector<float> memory(16, 1);
  std::atomic<bool> released{false};
  Submission submission;
  submission.program = device_->compile({1,
                                         {64},
                                         {call(
                                             [&](int, void* const* addresses, const uint64_t*) {
                                               gate.pass();
                                               *static_cast<float*>(addresses[0]) = 5;
                                             },
                                             {0})}});
  submission.slots = {device_->wrap(memory.data(), 64, [&] { released = true; })};
  stream().submit(submission);
  submission.slots.clear();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(released);
  gate.open();
  wait_all();
  for (int i = 0; i < 2000 && !released; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(released);
  EXPECT_EQ(memory[0], 5);
}

std::unique_ptr<Device> host_device(int threads, host::NativeTier::Mode native = host::NativeTier::Mode::background) {
  host::HostOptions options;
  options.threads = threads;
  options.native = native;
  return host::make_host_device(options);
}

INSTANTIATE_TEST_SUITE_P(
    Devices, DeviceSuite,
    ::testing::Values(DeviceMaker{"Host1", [] { return host_device(1); }},
                      DeviceMaker{"Host2", [] { return host_device(2); }},
                      DeviceMaker{"Native", [] { return host_device(2, host::NativeTier::Mode::immediately); }},
                      DeviceMaker{"Functional", [] { return make_functional_device(); }}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ae::device::conformance
