#include "fusion/flush/policy.h"

namespace ae::fusion {

std::optional<FlushReason> decide(const PolicySettings& settings, const PolicyState& state) {
  if (!settings.adaptive) return FlushReason::unfused;
  if (settings.period > 0 && state.operators >= settings.period) return FlushReason::forced_period;
  if (state.operators >= settings.window) return FlushReason::window_full;
  // Over budget, a known end is taken at once; elsewhere the trace may grow to twice the budget to reach one.
  if (state.bytes_held > settings.bytes_budget && (state.at_known_end || state.bytes_held > 2 * settings.bytes_budget))
    return FlushReason::bytes_budget;
  return std::nullopt;
}

}  // namespace ae::fusion
