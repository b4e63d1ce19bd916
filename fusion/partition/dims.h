// Index spaces while they are being fused: lists of dimensions in row-major order, and how an access is seen in them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "device/tile_program.h"
#include "fusion/trace/trace.h"

namespace ae::fusion {

struct Dim {
  int64_t size = 1;
  bool reduced = false;
  bool operator==(const Dim&) const = default;
};
using Dims = std::vector<Dim>;
using Strides = std::array<int64_t, device::kMaxRank>;

/// Number of points: all, or those of the kept / reduced dimensions.
int64_t points(const Dims& dims);
int64_t kept_points(const Dims& dims);
int64_t reduced_points(const Dims& dims);

/// A node's dimensions without those of size 1. A reducing node whose reduced dimensions all have size 1 keeps one such
/// dimension, innermost, so that its levels stay apart; if one has size 0 they become one of size 0.
struct NodeSpace {
  Dims dims;
  std::vector<int> from;  // per dimension: the node's dimension that it comes from, -1 for an added one
  bool reduces = false;   // the node has reduced dimensions
};
NodeSpace node_space(const NodeView& node);

/// The coarsest list of dimensions that both lists are groupings of: each is the product of consecutive dimensions of
/// the result. Reduced flags come from whichever list has any (`b_has_flags` says whether b's count; a's count if a
/// has a reduced dimension) and must agree where both have. Nothing if there is no such list.
std::optional<Dims> refine(const Dims& a, const Dims& b, bool b_has_flags);

/// `full` with its kept dimensions split so that the dimensions of `kept` group them. Nothing if that is impossible.
std::optional<Dims> refine_kept(const Dims& full, const Dims& kept);

/// Strides over `fine` of an access that has `strides` over `coarse`, where `coarse` groups consecutive dimensions of
/// `fine`. With kept_only, `coarse` groups the kept dimensions of `fine`, and reduced ones get stride 0.
Strides map_strides(const Dims& coarse, const Strides& strides, const Dims& fine, bool kept_only);

/// Row-major strides over the dimensions (kept_only: over the kept ones, 0 elsewhere).
Strides row_major(const Dims& dims, bool kept_only);

/// True when the strides of all reduced dimensions with more than one point are 0, and there is a reduced dimension.
bool is_kept_level(const Dims& dims, const Strides& strides);

}  // namespace ae::fusion
