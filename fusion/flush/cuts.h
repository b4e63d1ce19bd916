// Where to cut a trace that is recorded again and again, so that the device works while the rest is recorded.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fusion/plan/plan.h"

namespace ae::fusion {

/// Pieces of a cut trace have at least so many operators, and, where a clean place can be found, at most twice that.
inline constexpr uint32_t kMinPiece = 32;
/// A trace is cut once the device had run out of work at so many flushes of its plan in succession.
inline constexpr int kIdleFlushes = 3;

/// Lengths of the pieces in which to flush a trace of `operators` operators whose plan has these launches, without the
/// last piece; empty if the trace is too short. A cut stands where it splits the fewest launches.
std::vector<uint32_t> choose_pieces(std::span<const Plan::LaunchInfo> launches, uint32_t operators);

}  // namespace ae::fusion
