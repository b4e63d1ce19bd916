// Counters that are always on; the report reads them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "fusion/flush/reason.h"

namespace ae::fusion {

struct Statistics {
  int64_t operators_recorded = 0;
  int64_t operators_flushed = 0;
  int64_t operators_plan_hit = 0;  // operators flushed through a plan that was known
  int64_t launches = 0;            // as the device counts them
  int64_t flushes = 0;
  int64_t plans_made = 0;
  int64_t kernels_made = 0;
  int64_t bytes_not_written = 0;  // bytes of operator results that never reached memory
  std::array<int64_t, kFlushReasonCount> flushes_by_reason{};
  std::map<std::pair<FlushReason, std::string>, int64_t> flushes_by_line;  // forced flushes only
  int64_t ns_recording = 0;                                                // estimated from one operator of 256
  int64_t ns_planning = 0, ns_executing = 0, ns_waiting = 0;
};

}  // namespace ae::fusion
