// The same bits, however a program is cut and by whatever number of threads and kind of device it is run.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/cpp/support/random_program.h"

namespace ae::fusion::testing {
namespace {

Recorder make_recorder(device::Device& device, bool adaptive, int64_t period = 0) {
  PolicySettings settings;
  settings.adaptive = adaptive;
  settings.period = period;
  return Recorder(device, settings, {test_library(), {}, {}});
}

/// Compiling takes long: only every so many-th program runs as native code.
constexpr uint32_t kNativeEvery = 40;

/// What is wrong with the program, in words; empty text when nothing is.
std::string check(const Program& program, uint32_t seed) {
  const Contents expected = interpret_program(program);
  const std::vector<bool> cuts = random_cuts(program, seed);
  std::vector<std::pair<device::Device&, const char*>> devices = {{host_device(1), " with one thread: "},
                                                                  {host_device(2), " with two threads: "},
                                                                  {functional_device(), " with immutable buffers: "}};
  if (seed % kNativeEvery == 0) devices.emplace_back(native_host_device(), " as native code: ");
  for (const auto& [device, suffix] : devices) {
    const auto compare = [&, &device = device, suffix = suffix](const char* what, Recorder& recorder,
                                                                const std::vector<bool>& places) {
      const std::string wrong = difference(program, expected, run(program, recorder, device, places));
      return wrong.empty() ? wrong : std::string(what) + suffix + wrong;
    };
    Recorder unfused = make_recorder(device, false), fused = make_recorder(device, true),
             cut = make_recorder(device, true), periodic = make_recorder(device, true, 2 + seed % 3);
    for (auto& [what, recorder, places] : std::initializer_list<std::tuple<const char*, Recorder*, std::vector<bool>>>{
             {"unfused", &unfused, {}},
             {"fused", &fused, {}},
             {"fused, replayed", &fused, {}},
             {"cut", &cut, cuts},
             {"cut otherwise", &fused, cuts},
             {"flushed periodically", &periodic, {}}})
      if (std::string wrong = compare(what, *recorder, places); !wrong.empty()) return wrong;
  }
  return {};
}

std::string check_noting_exceptions(const Program& program, uint32_t seed) {
  try {
    return check(program, seed);
  } catch (const std::exception& error) {
    return std::string("exception: ") + error.what();
  }
}

/// Leaves out operators as long as the program stays wrong. A fresh buffer whose first writer is gone is no longer
/// fresh.
Program shrink(Program program, uint32_t seed) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (size_t i = program.ops.size(); i-- > 0;) {
      Program less = program;
      for (const View& output : less.ops[i].outputs) less.buffers[output.buffer].fresh = false;
      less.ops.erase(less.ops.begin() + static_cast<std::ptrdiff_t>(i));
      if (check_noting_exceptions(less, seed).empty()) continue;
      program = std::move(less);
      smaller = true;
    }
  }
  return program;
}

int from_environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : otherwise;
}

TEST(Differential, RandomProgramsGiveTheSameBitsHoweverTheyAreCut) {
  const int first = from_environment("AE_FIRST_SEED", 0), count = from_environment("AE_SEEDS", 2000);
  int wrong = 0;
  for (int seed = first; seed < first + count && wrong < 3; ++seed) {
    const Program program = random_program(seed);
    if (check_noting_exceptions(program, seed).empty()) continue;
    ++wrong;
    const Program small = shrink(program, seed);
    ADD_FAILURE() << "seed " << seed << ": " << check_noting_exceptions(small, seed) << "\n" << print(small);
  }
}

}  // namespace
}  // namespace ae::fusion::testing
