#include "fusion/flush/cuts.h"

#include <algorithm>

namespace ae::fusion {

std::vector<uint32_t> choose_pieces(std::span<const Plan::LaunchInfo> launches, uint32_t operators) {
  // split[c]: launches that have operators on both sides of a cut after c operators.
  std::vector<int32_t> split(operators + 1, 0);
  for (const Plan::LaunchInfo& launch : launches) {
    const auto [first, last] = std::minmax_element(launch.nodes.begin(), launch.nodes.end());
    if (first == last) continue;
    ++split[*first + 1];
    --split[*last + 1];
  }
  for (uint32_t c = 1; c <= operators; ++c) split[c] += split[c - 1];
  std::vector<uint32_t> pieces;
  for (uint32_t begin = 0; operators - begin >= 2 * kMinPiece;) {
    const auto from = split.begin() + begin + kMinPiece;
    const auto to = split.begin() + std::min(begin + 2 * kMinPiece, operators - kMinPiece) + 1;
    const auto cut = static_cast<uint32_t>(std::min_element(from, to) - split.begin());
    pieces.push_back(cut - begin);
    begin = cut;
  }
  return pieces;
}

}  // namespace ae::fusion
