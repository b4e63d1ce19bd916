// Flush policy: one pure function from what is known when an operator was recorded to "go on" or "flush, because R".
#pragma once

#include <cstdint>
#include <optional>

#include "fusion/flush/reason.h"

namespace ae::fusion {

/// Knobs; the environment and tests set them.
struct PolicySettings {
  bool adaptive = false;                    // false: every operator is its own launch
  int64_t window = 4096;                    // operators in a trace at most
  int64_t bytes_budget = int64_t{1} << 30;  // bytes of new values that a trace may hold
  int64_t period = 0;                       // tests: flush after every k-th operator; 0: never
  bool cuts_when_idle = true;               // learn to cut traces that keep the device waiting
};

/// What the policy looks at.
struct PolicyState {
  int64_t operators = 0;        // in the trace, the one just recorded included
  int64_t bytes_held = 0;       // bytes of values that the trace has made and somebody may still see
  bool at_known_end = false;    // the trace is equal to a known plan as far as that goes: a good place to cut
  bool at_learned_cut = false;  // here the recorder has learned to cut, since the device waited
};

/// Decides after an operator was recorded. Timing has a say only in what was learned, and bits depend on no cut.
inline std::optional<FlushReason> decide(const PolicySettings& settings, const PolicyState& state) {
  if (!settings.adaptive) return FlushReason::unfused;
  if (settings.period > 0 && state.operators >= settings.period) return FlushReason::forced_period;
  if (state.operators >= settings.window) return FlushReason::window_full;
  // Over budget, a known end is taken at once; elsewhere the trace may grow to twice the budget to reach one.
  if (state.bytes_held > settings.bytes_budget && (state.at_known_end || state.bytes_held > 2 * settings.bytes_budget))
    return FlushReason::bytes_budget;
  if (state.at_learned_cut) return FlushReason::device_idle;
  return std::nullopt;
}

}  // namespace ae::fusion
