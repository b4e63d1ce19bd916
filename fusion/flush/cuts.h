// Where to cut a trace that is recorded again and again, so that the device works while the rest is recorded.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fusion/plan/plan.h"
#include "fusion/trace/trace.h"

namespace ae::fusion {

/// Pieces of a cut trace have at least so many operators, and, where such a place is cheap, at most twice that.
inline constexpr uint32_t kMinPiece = 32;
/// A trace is cut once the device had run out of work at so many flushes of its plan in succession.
inline constexpr int kIdleFlushes = 3;

/// A cut is not worth more than so many bytes: moving them takes as long as recording a piece.
inline constexpr int64_t kMaxCutCost = 1 << 20;
/// To begin a launch once more costs as much as moving so many bytes.
inline constexpr int64_t kLaunchCost = 1 << 15;

/// What a cut after c operators costs, for c from 0 to the trace's length, in bytes: launches that have operators on
/// both sides become two, and what both of them use moves twice.
std::vector<int64_t> cut_costs(const Trace& trace, std::span<const Plan::LaunchInfo> launches);

/// Lengths of the pieces in which to flush a trace with these costs of cuts, without the last piece; empty if it is
/// not to be cut. Of the cuts that make short pieces the cheapest is taken, else the first that is cheap enough.
std::vector<uint32_t> choose_pieces(std::span<const int64_t> costs);

}  // namespace ae::fusion
