#include "fusion/flush/cuts.h"

#include <algorithm>
#include <map>

namespace ae::fusion {
namespace {

/// First and last operator of a launch, or of those in it that use one buffer.
struct Reach {
  uint32_t first = UINT32_MAX;
  uint32_t last = 0;
  int64_t bytes = 0;
  void add(uint32_t node, int64_t moved) {
    first = std::min(first, node);
    last = std::max(last, node);
    bytes = std::max(bytes, moved);
  }
};

}  // namespace

std::vector<int64_t> cut_costs(const Trace& trace, std::span<const Plan::LaunchInfo> launches) {
  // First the differences from the cut before.
  std::vector<int64_t> costs(trace.size() + 1, 0);
  const auto charge = [&](const Reach& reach) {
    if (reach.first == reach.last) return;
    costs[reach.first + 1] += reach.bytes;
    costs[reach.last + 1] -= reach.bytes;
  };
  for (const Plan::LaunchInfo& launch : launches) {
    if (launch.nodes.size() < 2) continue;
    Reach whole;
    std::map<uint32_t, Reach> buffers;
    for (uint32_t at : launch.nodes) {
      whole.add(at, kLaunchCost);
      const NodeView node = NodeView::decode(trace.words.data() + trace.starts[at], 0);
      for (const auto* accesses : {&node.inputs, &node.outputs})
        for (const AccessView& access : *accesses)
          if (!access.is_scalar) buffers[access.buffer].add(at, bytes_of(access));
    }
    charge(whole);
    for (const auto& [buffer, reach] : buffers) charge(reach);
  }
  for (size_t c = 1; c < costs.size(); ++c) costs[c] += costs[c - 1];
  return costs;
}

std::vector<uint32_t> choose_pieces(std::span<const int64_t> costs) {
  const auto operators = static_cast<uint32_t>(costs.size() - 1);
  std::vector<uint32_t> pieces;
  for (uint32_t begin = 0; operators - begin >= 2 * kMinPiece;) {
    const auto end = costs.begin() + (operators - kMinPiece) + 1;
    const auto from = costs.begin() + begin + kMinPiece;
    auto cut = std::min_element(from, std::min(from + kMinPiece + 1, end));
    if (*cut > kMaxCutCost) cut = std::find_if(cut, end, [](int64_t cost) { return cost <= kMaxCutCost; });
    if (cut == end) break;
    const auto at = static_cast<uint32_t>(cut - costs.begin());
    pieces.push_back(at - begin);
    begin = at;
  }
  return pieces;
}

}  // namespace ae::fusion
