#include "engine/library/beside.h"

#include <algorithm>

#include "engine/library/out_call.h"

namespace ae::engine::library {

namespace {
constexpr int64_t kLine = 128;  // elements
}  // namespace

std::vector<Piece> beside_dim(const Piece& all, std::span<const int64_t> attributes) {
  const int64_t rank = all.back().dim(), dim = attributes[0];
  const auto is_cut = [&](const Operand& operand) { return operand.dim() == rank; };
  int64_t elements = 0;
  for (const Operand& operand : all)
    if (is_cut(operand)) elements = std::max(elements, operand.numel());
  for (int64_t d = 0; d < rank; ++d) {
    int64_t extent = all.back().sizes[d];
    for (const Operand& operand : all)
      if (is_cut(operand)) extent = std::min(extent, operand.sizes[d]);
    if (d == dim || extent < 2) continue;
    // ATen goes through dimensions after its own with long steps: narrow stretches of them waste most of each line.
    const Cut stretches = cut(extent, pieces_for(elements), d > dim ? kLine : 1);
    if (stretches.count == 1) break;
    std::vector<Piece> pieces(stretches.count);
    for (int p = 0; p < stretches.count; ++p)
      for (const Operand& operand : all)
        pieces[p].push_back(is_cut(operand) ? operand.narrow(d, stretches.start(p), stretches.length(p)) : operand);
    return pieces;
  }
  return {all};
}

}  // namespace ae::engine::library
