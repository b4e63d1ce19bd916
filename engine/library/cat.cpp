// Concatenation: in(tensors…) -> out; attribute 0: the dimension. Empty one-dimensional tensors are left out when
// recording. A piece copies (and casts) some of the tensors, or a stretch of one.
#include <algorithm>

#include "engine/library/call.h"
#include "engine/library/operators.h"
#include "engine/record/record.h"

namespace ae::engine::library {
namespace {

constexpr int64_t kPieceElements = int64_t{1} << 16;
constexpr int64_t kMaxPieces = 8;

std::shared_ptr<const device::LibraryCall> make_cat(const fusion::NodeView& node) {
  const Piece all = whole(node);
  const auto dim = attributes_of(node)[0];
  const Operand& out = all.back();
  // Cut along the concatenation itself: piece p writes positions [start, start + length) of that dimension.
  const int64_t wanted = std::clamp(out.numel() / kPieceElements, int64_t{1}, kMaxPieces);
  const Cut stretches = cut(out.sizes[dim], static_cast<int>(wanted));
  std::vector<Piece> pieces;
  for (int p = 0; p < stretches.count; ++p) {
    const int64_t begin = stretches.start(p), end = begin + stretches.length(p);
    Piece piece = all;  // operands stay in place, those that are not in this stretch become empty
    int64_t position = 0;
    for (size_t i = 0; i + 1 < all.size(); ++i) {
      const int64_t size = all[i].sizes[dim];
      const int64_t from = std::clamp(begin, position, position + size),
                    to = std::clamp(end, position, position + size);
      piece[i] = all[i].narrow(dim, from - position, to - from);
      position += size;
    }
    piece.back() = out.narrow(dim, begin, end - begin);
    pieces.push_back(std::move(piece));
  }
  return make_call(std::move(pieces), [dim](std::span<at::Tensor> t, Scalars) {
    int64_t position = 0;
    for (size_t i = 0; i + 1 < t.size(); ++i) {
      const int64_t size = t[i].size(dim);
      if (size == 0) continue;
      t.back().narrow(dim, position, size).copy_(t[i]);
      position += size;
    }
  });
}

}  // namespace

const int kCat = register_library("cat", make_cat);

}  // namespace ae::engine::library
