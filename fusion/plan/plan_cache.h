// Plans by trace: structure first, then needs. A plan that keeps more than is needed is right and is used; an exact one
// is made when the same need comes back. Bounded; the least recently used goes first.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>

#include "fusion/plan/plan.h"

namespace ae::fusion {

class PlanCache {
 public:
  static constexpr size_t kMaxWords = size_t{16} << 20;  // 128 MiB of keys at most
  static constexpr size_t kMaxUnmet = 8;

  /// A plan for a trace with these words and needs, or null: then the caller makes one and inserts it.
  std::shared_ptr<Plan> find(const std::vector<uint64_t>& words, const std::vector<BufferNeed>& needs);
  void insert(std::shared_ptr<Plan> plan);
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    uint64_t hash;
    std::shared_ptr<Plan> plan;
    std::vector<std::vector<BufferNeed>> unmet;  // needs seen once that this plan served by keeping more; a few
  };
  using Entries = std::list<Entry>;
  Entries entries_;  // most recently used first
  std::unordered_multimap<uint64_t, Entries::iterator> by_hash_;
  size_t words_ = 0;
};

}  // namespace ae::fusion
