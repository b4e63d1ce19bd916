// What is the host device's own, beyond the conformance suite.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>

#include "device/host/host_device.h"
#include "device/host/program.h"
#include "tests/conformance/device_suite.h"
#include "tests/cpp/tile_reference.h"

namespace ae::device::host {
namespace {

using conformance::Call;

std::unique_ptr<Device> device_with(int threads, std::function<void()> thread_start = {}) {
  return make_host_device({.threads = threads, .thread_start = std::move(thread_start)});
}

LaunchSpec call(Call::Body body, int pieces = 1) {
  LaunchSpec launch;
  launch.library = std::make_shared<Call>(std::move(body), pieces);
  return launch;
}

TEST(HostStream, EachThreadThatRunsLaunchesIsStartedOnce) {
  std::mutex mutex;
  std::multiset<std::thread::id> started;
  std::atomic<bool> early{false};
  auto device = device_with(2, [&] {
    std::lock_guard lock(mutex);
    started.insert(std::this_thread::get_id());
  });
  Submission submission;
  submission.program = device->compile({0,
                                        {},
                                        {call(
                                            [&](int, void* const*, const uint64_t*) {
                                              std::lock_guard lock(mutex);
                                              if (!started.contains(std::this_thread::get_id())) early = true;
                                            },
                                            2000)}});
  device->default_stream().submit(submission);
  ASSERT_TRUE(device->default_stream().wait(1, 60'000));
  std::lock_guard lock(mutex);
  EXPECT_FALSE(early);
  for (const auto& id : started) EXPECT_EQ(started.count(id), 1u);
}

TEST(HostStream, AForkedChildIsToldThatItHasNoWorker) {
  auto device = device_with(2);
  Submission submission;
  submission.program = device->compile({0, {}, {call([](int, void* const*, const uint64_t*) {})}});
  const pid_t child = fork();
  if (child == 0) {
    int code = 1;
    try {
      device->default_stream().submit(submission);
    } catch (const std::runtime_error& error) {
      code = std::strstr(error.what(), "forked process") ? 0 : 2;
    }
    device.reset();  // must not wait for a thread that is not there
    _exit(code);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  device->default_stream().submit(submission);
  EXPECT_TRUE(device->default_stream().wait(1, 60'000));
}

TEST(HostStream, AFullQueueOfSmallProgramsWakesAWaiterEachTime) {
  auto device = device_with(2);
  const auto program = device->compile({0, {}, {call([](int, void* const*, const uint64_t*) {})}});
  for (int i = 0; i < 3000; ++i) {
    Submission submission;
    submission.program = program;
    const uint64_t number = device->default_stream().submit(submission);
    if (i % 100 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));  // the worker falls asleep
    ASSERT_TRUE(device->default_stream().wait(number + 1, 10'000)) << i;
  }
}

TEST(HostProgram, TemporariesThatLiveAtTheSameTimeDoNotOverlapAndOthersShare) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    const int32_t launches = 20, slots = 30;
    ProgramSpec spec{slots, {}, std::vector<LaunchSpec>(launches)};
    std::vector<std::pair<int, int>> lives;
    for (int32_t slot = 0; slot < slots; ++slot) {
      spec.slot_bytes.push_back(static_cast<int64_t>(random() % 10'000));
      const int first = static_cast<int>(random() % launches),
                last = first + static_cast<int>(random() % (launches - first));
      spec.launches[first].allocate.push_back(slot);
      spec.launches[last].free.push_back(slot);
      lives.emplace_back(first, last);
    }
    const std::vector<int64_t> bytes = spec.slot_bytes;
    const HostProgram program(std::move(spec));
    ASSERT_EQ(program.temporaries().size(), static_cast<size_t>(slots));
    int64_t sum = 0;
    for (int64_t b : bytes) sum += b;
    EXPECT_LT(program.temporary_bytes(), sum);
    for (const Temporary& a : program.temporaries()) {
      ASSERT_EQ(a.offset % 64, 0);
      ASSERT_LE(a.offset + bytes[a.slot], program.temporary_bytes());
      for (const Temporary& b : program.temporaries()) {
        if (a.slot >= b.slot) continue;
        const bool together =
            lives[a.slot].first <= lives[b.slot].second && lives[b.slot].first <= lives[a.slot].second;
        const bool overlap = a.offset < b.offset + bytes[b.slot] && b.offset < a.offset + bytes[a.slot];
        ASSERT_FALSE(together && overlap);
      }
    }
  }
}

TEST(HostDevice, OneThreadAndTwoGiveTheSameBitsOnLargeRandomPrograms) {
  using testing::Random;
  for (int i = 0; i < 30; ++i) {
    std::vector<std::vector<std::byte>> results[2];
    testing::TileCase tile_case;
    for (int threads : {1, 2}) {
      Random random(7000 + i);
      const Space space = testing::random_space(random, 300'000, i % 2 == 1);
      tile_case = testing::random_case(random, space, 12);
      auto device = device_with(threads);
      LaunchSpec launch;
      launch.segments.resize(1);
      Segment& segment = launch.segments[0];
      segment.executable = device->load(tile_case.program);
      segment.space = space;
      for (size_t o = 0; o < tile_case.views.size(); ++o)
        segment.operands.push_back({tile_case.slots[o], tile_case.views[o]});
      for (size_t s = 0; s < tile_case.scalars.size(); ++s) segment.scalars.push_back(static_cast<int32_t>(s));
      Submission submission;
      std::vector<int64_t> bytes;
      for (const auto& memory : tile_case.memory) {
        bytes.push_back(static_cast<int64_t>(memory.size()));
        submission.slots.push_back(device->allocate(bytes.back()));
        std::memcpy(submission.slots.back()->address(), memory.data(), memory.size());
      }
      submission.program = device->compile({static_cast<int32_t>(bytes.size()), bytes, {launch}});
      submission.scalars = tile_case.scalars;
      device->default_stream().submit(submission);
      ASSERT_TRUE(device->default_stream().wait(1, 60'000));
      for (const BlockRef& block : submission.slots) {
        const auto* begin = static_cast<const std::byte*>(block->address());
        results[threads - 1].emplace_back(begin, begin + block->size());
      }
    }
    ASSERT_EQ(testing::difference(tile_case, results[0], results[1]), "") << i;
  }
}

}  // namespace
}  // namespace ae::device::host
