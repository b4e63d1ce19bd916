// Philox 4x32-10: position p belongs to counter group (p / 64) * 16 + p % 16 and takes output word (p % 64) / 16. So
// 64 positions that follow each other from a multiple of 64 are the four words of one vector of 16 counters.
#include "device/host/kernels.h"
#include "device/math/philox.h"
#include "device/math/vec.h"

namespace ae::device::host {
namespace {

using U32 = math::Vec<uint32_t, 16>;
using U64 = math::Vec<uint64_t, 16>;
using I64 = math::Vec<int64_t, 16>;

struct Words4 {
  U32 w[4];
};

/// Sixteen generators at once.
inline Words4 philox(U64 group, U64 offset, U64 seed) {
  const auto low = [](U64 x) { return math::convert_lanes<uint32_t>(x); };
  const auto high = [](U64 x) { return math::convert_lanes<uint32_t>(x >> 32); };
  Words4 words;
  math::philox(low(group), high(group), low(offset), high(offset), low(seed), high(seed), words.w);
  return words;
}

inline void store_words(int64_t* to, U32 words) { math::convert_lanes<int64_t>(words).store(to); }

inline bool is_aligned_run(const int64_t* positions) {
  if (positions[0] & 63) return false;
  bool same = true;
  for (int64_t i = 0; i < 64; ++i) same &= positions[i] == positions[0] + i;
  return same;
}

template <bool kScalarKey>
void random_loop(void* dst, const void* a, const void* b, const void* c, int64_t groups) {
  auto* out = static_cast<int64_t*>(dst);
  auto* position = static_cast<const int64_t*>(a);
  auto* seed = static_cast<const uint64_t*>(b);
  auto* offset = static_cast<const uint64_t*>(c);
  const int64_t n = groups * kGroup;
  U64 lanes;
  for (int l = 0; l < 16; ++l) lanes.set(l, l);
  for (int64_t i = 0; i < n;) {
    if (kScalarKey && n - i >= 64 && is_aligned_run(position + i)) {
      const U64 group = U64(static_cast<uint64_t>(position[i] / 64 * 16)) + lanes;
      const Words4 words = philox(group, U64(*offset), U64(*seed));
      for (int w = 0; w < 4; ++w) store_words(out + i + 16 * w, words.w[w]);
      i += 64;
      continue;
    }
    const I64 p = I64::load(position + i);
    const I64 group = ((p >> 6) << 4) + (p & I64(15));
    const U64 o = kScalarKey ? U64(*offset) : U64::load(offset + i);
    const U64 s = kScalarKey ? U64(*seed) : U64::load(seed + i);
    const Words4 words = philox(math::bit_cast<uint64_t>(group), o, s);
    const I64 word = (p >> 4) & I64(3);
    int64_t results[4][16];
    for (int w = 0; w < 4; ++w) store_words(results[w], words.w[w]);
    for (int l = 0; l < 16; ++l) out[i + l] = results[word[l]][l];
    i += 16;
  }
}

}  // namespace

ElementKernel random_kernel(bool scalar_key) { return scalar_key ? &random_loop<true> : &random_loop<false>; }

}  // namespace ae::device::host
