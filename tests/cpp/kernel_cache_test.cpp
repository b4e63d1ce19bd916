#include "fusion/plan/kernel_cache.h"

#include <gtest/gtest.h>

#include "tests/cpp/support/program.h"

namespace ae::fusion {
namespace {

/// Adds a number `length` times.
Kernel chain(int length, DType type = DType::kF32) {
  Kernel kernel{{type, type}, {type}, {}};
  kernel.instrs.push_back({Primitive::load, type, type, Level::full, 0});
  kernel.instrs.push_back({Primitive::scalar, type, type, Level::full, 0});
  for (int i = 0; i < length; ++i)
    kernel.instrs.push_back({Primitive::add, type, type, Level::full, -1, i == 0 ? 0 : i + 1, 1});
  const ValueId last = length == 0 ? 0 : length + 1;
  kernel.instrs.push_back({Primitive::store, type, type, Level::full, 1, last});
  return kernel;
}

TEST(KernelCache, GivesTheSameExecutableForEqualKernels) {
  KernelCache cache(testing::host_device());
  const LoadedKernel first = cache.get(chain(2)), again = cache.get(chain(2));
  EXPECT_EQ(first.executable, again.executable);
  EXPECT_EQ(first.name, "add add");
  EXPECT_EQ(cache.made(), 1);
}

TEST(KernelCache, TellsKernelsApartByEverythingInThem) {
  KernelCache cache(testing::host_device());
  Kernel subtracts = chain(1), swapped;
  subtracts.instrs[2].op = Primitive::sub;
  swapped = subtracts;
  std::swap(swapped.instrs[2].a, swapped.instrs[2].b);
  Kernel other_operand = chain(1);
  other_operand.instrs.back().index = 0;
  for (const Kernel& kernel : {chain(1), chain(2), chain(1, DType::kF64), subtracts, swapped, other_operand})
    cache.get(kernel);
  EXPECT_EQ(cache.made(), 6);
}

TEST(KernelCache, IsBoundedAndForgetsTheLeastRecentlyUsed) {
  KernelCache cache(testing::host_device());
  const auto kernel = [](int i) {  // all different: the dtypes of unused scalars spell the number
    Kernel out = chain(1);
    for (int bit = 0; bit < 13; ++bit) out.scalars.push_back(i >> bit & 1 ? DType::kI32 : DType::kI64);
    return out;
  };
  const int limit = static_cast<int>(KernelCache::kMaxKernels);
  for (int i = 0; i < limit; ++i) cache.get(kernel(i));
  cache.get(kernel(0));      // used again: 1 is the oldest now
  cache.get(kernel(limit));  // 1 goes
  EXPECT_EQ(cache.made(), limit + 1);
  cache.get(kernel(0));
  cache.get(kernel(2));
  EXPECT_EQ(cache.made(), limit + 1);
  cache.get(kernel(1));
  EXPECT_EQ(cache.made(), limit + 2);
}

}  // namespace
}  // namespace ae::fusion
