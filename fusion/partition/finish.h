// The second half of partition: what nobody can see is dropped, and launches become what the device takes.
#pragma once

#include <memory>

#include "fusion/partition/partitioner.h"
#include "fusion/plan/kernel_cache.h"

namespace ae::fusion {

/// Marks the writes that somebody can see, from the last launch to the first.
void find_needed(Partitioner& partitioner, const std::vector<BufferNeed>& needs);

/// Instructions of a segment that lead to needed writes, as a kernel with its stores, and how it is launched.
struct FinishedSegment {
  Kernel kernel;
  device::Segment segment;  // all but the executable
};
FinishedSegment finish_segment(const SegmentState& segment, const std::vector<Write>& writes);

}  // namespace ae::fusion
