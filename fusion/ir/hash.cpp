#include "fusion/ir/kernel.h"

namespace ae::fusion {
namespace {

/// Finalizer of splitmix64: every input bit reaches every output bit.
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

class Hasher {
 public:
  void add(uint64_t value) { state_ = mix(state_ + 0x9e3779b97f4a7c15u + value); }
  void add_pair(int32_t a, int32_t b) {
    add(static_cast<uint64_t>(static_cast<uint32_t>(a)) << 32 | static_cast<uint32_t>(b));
  }
  uint64_t result() const { return state_; }

 private:
  uint64_t state_ = 0;
};

}  // namespace

uint64_t hash_of(const Kernel& kernel) {
  Hasher hasher;
  for (const auto* types : {&kernel.operands, &kernel.scalars}) {
    hasher.add(types->size());
    for (DType type : *types) hasher.add(static_cast<uint64_t>(type));
  }
  for (const Instr& instr : kernel.instrs) {
    hasher.add(static_cast<uint64_t>(instr.op) | static_cast<uint64_t>(instr.type) << 8 |
               static_cast<uint64_t>(instr.out) << 16 | static_cast<uint64_t>(instr.level) << 24 |
               static_cast<uint64_t>(static_cast<uint32_t>(instr.index)) << 32);
    hasher.add_pair(instr.a, instr.b);
    hasher.add_pair(instr.c, 0);
  }
  return hasher.result();
}

}  // namespace ae::fusion
