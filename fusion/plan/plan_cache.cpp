#include "fusion/plan/plan_cache.h"

#include <algorithm>

namespace ae::fusion {

namespace {

/// Multiply-xorshift over the words: fast, and equality is always checked on a hit.
uint64_t hash_of(const std::vector<uint64_t>& words) {
  uint64_t hash = words.size();
  for (uint64_t word : words) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 29;
  }
  return hash;
}

/// A plan made for `has` serves a trace with `wants`: the same memory, and nothing seen that the plan does not keep.
bool serves(const std::vector<BufferNeed>& has, const std::vector<BufferNeed>& wants) {
  return std::equal(has.begin(), has.end(), wants.begin(), wants.end(), [](const BufferNeed& a, const BufferNeed& b) {
    return a.has_block == b.has_block && a.nbytes == b.nbytes && (a.visible || !b.visible);
  });
}

}  // namespace

std::shared_ptr<Plan> PlanCache::find(const std::vector<uint64_t>& words, const std::vector<BufferNeed>& needs) {
  auto [it, end] = by_hash_.equal_range(hash_of(words));
  Entries::iterator larger = entries_.end();
  for (; it != end; ++it) {
    const Entries::iterator entry = it->second;
    if (entry->plan->words != words) continue;
    if (entry->plan->needs == needs) {
      entries_.splice(entries_.begin(), entries_, entry);
      return entry->plan;
    }
    if (larger == entries_.end() && serves(entry->plan->needs, needs)) larger = entry;
  }
  if (larger == entries_.end()) return nullptr;
  auto& unmet = larger->unmet;
  if (std::erase(unmet, needs) > 0) return nullptr;
  if (unmet.size() == kMaxUnmet) unmet.erase(unmet.begin());
  unmet.push_back(needs);
  entries_.splice(entries_.begin(), entries_, larger);
  return larger->plan;
}

void PlanCache::insert(std::shared_ptr<Plan> plan) {
  words_ += plan->words.size();
  const uint64_t hash = hash_of(plan->words);
  entries_.push_front({hash, std::move(plan), {}});
  by_hash_.emplace(hash, entries_.begin());
  while (words_ > kMaxWords && entries_.size() > 1) {
    const auto last = std::prev(entries_.end());
    auto [it, end] = by_hash_.equal_range(last->hash);
    while (it != end && it->second != last) ++it;
    by_hash_.erase(it);
    words_ -= last->plan->words.size();
    entries_.erase(last);
  }
}

}  // namespace ae::fusion
