#include "device/host/memory.h"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace ae::device::host {
namespace {

struct MemoryPoolTest : ::testing::Test {
  std::shared_ptr<StreamClock> clock = std::make_shared<StreamClock>();
  MemoryPool pool{clock};
};

int64_t resident_bytes() {
  long total = 0, resident = 0;
  FILE* file = std::fopen("/proc/self/statm", "r");
  if (std::fscanf(file, "%ld %ld", &total, &resident) != 2) resident = 0;
  std::fclose(file);
  return resident * sysconf(_SC_PAGESIZE);
}

TEST_F(MemoryPoolTest, BlocksInUseNeverOverlap) {
  std::mt19937_64 random(1);
  std::map<std::byte*, BlockRef> live;
  for (int i = 0; i < 20'000; ++i) {
    if (live.size() > 200 || (!live.empty() && random() % 3 == 0)) {
      live.erase(std::next(live.begin(), static_cast<long>(random() % live.size())));
      continue;
    }
    const int64_t bytes = static_cast<int64_t>(random() % (1ull << (random() % 24)));
    BlockRef block = random() % 2 ? pool.allocate(bytes) : pool.allocate_idle(bytes);
    auto* begin = static_cast<std::byte*>(block->address());
    ASSERT_EQ(reinterpret_cast<uintptr_t>(begin) % 64, 0u);
    ASSERT_EQ(block->size(), bytes);
    const int64_t padded = std::max<int64_t>(64, (bytes + 63) / 64 * 64);
    const auto next = live.lower_bound(begin);
    if (next != live.end()) {
      ASSERT_LE(begin + padded, next->first);
    }
    if (next != live.begin()) {
      const auto before = std::prev(next);
      ASSERT_LE(before->first + before->second->size(), begin);
    }
    std::memset(begin, 1, bytes ? 1 : 0);
    live.emplace(begin, std::move(block));
  }
  live.clear();
  EXPECT_EQ(pool.stats().allocated, 0);
  EXPECT_EQ(pool.stats().allocations, 0);
}

TEST_F(MemoryPoolTest, AFreedBlockIsReusedByTheStreamAtOnce) {
  clock->issued = 5;  // launches 0 to 4 are queued
  for (int64_t bytes : {100, 100'000, 50'000'000}) {
    void* address = pool.allocate(bytes)->address();
    EXPECT_EQ(pool.allocate(bytes)->address(), address) << bytes;
  }
}

TEST_F(MemoryPoolTest, TheHostGetsABlockOnlyWhenItsLaunchesAreDone) {
  clock->issued = 5;
  for (int64_t bytes : {100, 100'000, 50'000'000}) {
    clock->completed = 4;
    void* address = pool.allocate(bytes)->address();
    EXPECT_NE(pool.allocate_idle(bytes)->address(), address) << bytes;
    clock->completed = 5;
    const int64_t reserved = pool.stats().reserved;
    const BlockRef first = pool.allocate_idle(bytes), second = pool.allocate_idle(bytes);
    EXPECT_EQ(pool.stats().reserved, reserved) << bytes;
    if (bytes != 100'000) {  // those are cut from segments, in any of them
      EXPECT_TRUE(first->address() == address || second->address() == address) << bytes;
    }
  }
}

TEST_F(MemoryPoolTest, NeighboursMergeAgain) {
  std::vector<BlockRef> pieces;
  for (int i = 0; i < 10; ++i) pieces.push_back(pool.allocate(1 << 20));
  const int64_t reserved = pool.stats().reserved;
  std::swap(pieces[2], pieces[8]);  // an order of release that is not that of the addresses
  pieces.clear();
  const BlockRef whole = pool.allocate(7 << 20);
  EXPECT_EQ(pool.stats().reserved, reserved);
}

TEST_F(MemoryPoolTest, UntouchedMemoryIsNotResident) {
  const int64_t before = resident_bytes();
  const BlockRef large = pool.allocate(1LL << 30);
  EXPECT_LT(resident_bytes() - before, 64 << 20);
}

TEST_F(MemoryPoolTest, EmptyCacheGivesMemoryBackToTheSystem) {
  const int64_t before = resident_bytes();
  {
    const BlockRef large = pool.allocate(400 << 20);
    std::memset(large->address(), 1, 400 << 20);
    EXPECT_GT(resident_bytes() - before, 390 << 20);
  }
  pool.empty_cache();
  EXPECT_LT(resident_bytes() - before, 20 << 20);
}

TEST_F(MemoryPoolTest, TheCacheDoesNotGrowBeyondAQuarterOfWhatIsInUse) {
  // Blocks of ever larger sizes, one at a time: none of the old ones serves the new one.
  int64_t most = 0;
  const int64_t before = resident_bytes();
  for (int64_t megabytes = 20; megabytes <= 200; megabytes += 12) {
    const BlockRef block = pool.allocate(megabytes << 20);
    std::memset(block->address(), 1, megabytes << 20);
    most = std::max(most, resident_bytes() - before);
  }
  EXPECT_LT(most, (200 + 200 + 80) << 20);
}

TEST_F(MemoryPoolTest, ALimitIsKeptAndLiftedAgain) {
  pool.set_limit(1 << 20);
  const BlockRef half = pool.allocate(600 << 10);
  try {
    (void)pool.allocate(600 << 10);
    FAIL() << "allocated beyond the limit";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.requested, 600 << 10);
    EXPECT_EQ(error.limit, 1 << 20);
    EXPECT_NE(std::string(error.what()).find("614400 bytes"), std::string::npos) << error.what();
  }
  pool.set_limit(-1);
  EXPECT_TRUE(pool.allocate(600 << 10));
  EXPECT_THROW((void)pool.allocate(int64_t(1) << 60), OutOfMemory);
  EXPECT_THROW((void)pool.allocate(int64_t(1) << 45), OutOfMemory);
  EXPECT_THROW((void)pool.allocate(-1), OutOfMemory);
}

TEST_F(MemoryPoolTest, HolesInTheHeapGoBackBeforeThePoolGrows) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "malloc is the sanitizer's";
#endif
  std::vector<std::unique_ptr<char[]>> large, between;
  for (int i = 0; i < 640; ++i) {
    large.push_back(std::make_unique<char[]>(100'000));  // below malloc's limit for memory of its own
    between.push_back(std::make_unique<char[]>(64));
  }
  const int64_t before = resident_bytes();
  large.clear();
  const BlockRef block = pool.allocate(32 << 20);
  EXPECT_LT(resident_bytes(), before - (48 << 20));
}

TEST_F(MemoryPoolTest, ThreadsMayReleaseWhatOthersAllocated) {
  std::vector<BlockRef> blocks(2000);
  std::thread maker([&] {
    for (BlockRef& block : blocks) block = pool.allocate(1000);
  });
  maker.join();
  std::thread first([&] {
    for (size_t i = 0; i < 1000; ++i) blocks[i] = {};
  });
  std::thread second([&] {
    for (size_t i = 1000; i < 2000; ++i) blocks[i] = pool.allocate(50'000);
  });
  first.join();
  second.join();
  blocks.clear();
  EXPECT_EQ(pool.stats().allocated, 0);
}

}  // namespace
}  // namespace ae::device::host
