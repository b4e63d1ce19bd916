#include "engine/library/out_call.h"

#include <algorithm>

namespace ae::engine::library {
namespace {

constexpr int64_t kPieceElements = int64_t{1} << 15;
constexpr int64_t kMostPieces = 8;

}  // namespace

int pieces_for(int64_t elements) {
  return static_cast<int>(std::clamp(elements / kPieceElements, int64_t{1}, kMostPieces));
}

std::vector<Piece> cut_along(const Piece& all, int64_t dim, int pieces) {
  const int64_t extent = all.back().sizes[dim];
  const Cut stretches = cut(extent, pieces);
  std::vector<Piece> result(stretches.count);
  for (int p = 0; p < stretches.count; ++p) {
    for (const Operand& operand : all) {
      const bool is_cut = operand.dim() > dim && operand.sizes[dim] == extent;
      result[p].push_back(is_cut ? operand.narrow(dim, stretches.start(p), stretches.length(p)) : operand);
    }
  }
  return result;
}

namespace {

/// The largest operand says how much there is to do.
int pieces_for_largest(const Piece& all) {
  int64_t elements = 0;
  for (const Operand& operand : all) elements = std::max(elements, operand.numel());
  return pieces_for(elements);
}

}  // namespace

std::vector<Piece> along_first(const Piece& all, std::span<const int64_t>) {
  for (const Operand& operand : all)
    if (operand.dim() == 0 || operand.sizes[0] != all.back().sizes[0]) return {all};
  return cut_along(all, 0, pieces_for_largest(all));
}

std::vector<Piece> along_images(const Piece& all, int64_t dims) {
  if (all.back().dim() != dims + 2 || all.back().sizes[0] > 1) return along_first(all, {});
  for (const Operand& operand : all)  // channels that are last stay together
    if (operand.strides.back() != 1) return {all};
  return cut_along(all, 1, pieces_for_largest(all));
}

}  // namespace ae::engine::library
