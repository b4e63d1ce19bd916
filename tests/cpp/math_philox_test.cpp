// Philox 4x32-10 against the known answers published with Random123 (kat_vectors).
#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "device/math/philox.h"

namespace {

using Words = ae::math::Vec<uint32_t, 16>;

struct KnownAnswer {
  std::array<uint32_t, 4> counter;
  std::array<uint32_t, 2> key;
  std::array<uint32_t, 4> answer;
};

constexpr KnownAnswer kKnown[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

TEST(MathPhilox, one_counter_gives_the_published_answers) {
  for (const KnownAnswer& known : kKnown) {
    const auto& [c, k, answer] = known;
    uint32_t out[4];
    ae::math::philox(c[0], c[1], c[2], c[3], k[0], k[1], out);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(out[i], answer[i]);
  }
}

TEST(MathPhilox, sixteen_counters_give_what_each_gives_alone) {
  for (const KnownAnswer& known : kKnown) {
    const auto& [c, k, answer] = known;
    Words first;
    for (int lane = 0; lane < 16; ++lane) first.set(lane, c[0] + uint32_t(lane) * 0x10001u);
    Words out[4];
    ae::math::philox(first, Words(c[1]), Words(c[2]), Words(c[3]), Words(k[0]), Words(k[1]), out);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(out[i][0], answer[i]);
    for (int lane = 0; lane < 16; ++lane) {
      uint32_t alone[4];
      ae::math::philox(first[lane], c[1], c[2], c[3], k[0], k[1], alone);
      for (int i = 0; i < 4; ++i) EXPECT_EQ(out[i][lane], alone[i]);
    }
  }
}

}  // namespace
