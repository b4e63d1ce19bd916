// Sinking: a launch whose results are wanted later rides along with a later launch, so that there is one launch less.
#pragma once

#include "fusion/partition/partitioner.h"

namespace ae::fusion {

/// Moves small fused launches into later fused ones where no dependence forbids it. After `find_needed`.
void sink_launches(Partitioner& partitioner);

}  // namespace ae::fusion
