// Partition: a trace becomes launches.
//
// Operators are taken in program order. Launches are an ordered list; an operator may go into launch L only if
// everything that it depends on lies in launches before L, or in the one segment of L that it joins. So the order of
// launches always keeps read-after-write, write-after-read and write-after-write, and placing an operator is a look at
// the latest launch that it depends on: join the producer's segment, else a segment beside it that reads the same
// memory, else ride along in a later launch as a segment of its own (horizontal fusion), else open a new launch.
#pragma once

#include <memory>

#include "fusion/plan/kernel_cache.h"
#include "fusion/plan/plan.h"
#include "fusion/trace/trace.h"

namespace ae::fusion {

/// Makes the plan of a trace. `needs` has one entry for each of the trace's buffers.
std::shared_ptr<Plan> make_plan(const Trace& trace, const std::vector<BufferNeed>& needs, KernelCache& kernels,
                                device::Device& device, const LibraryResolver& library);

}  // namespace ae::fusion
