#include "engine/environment.h"

#include <c10/util/Exception.h>

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace ae::engine {
namespace {

// An empty text counts as unset.
std::optional<std::string_view> value_of(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  return text;
}

bool read_switch(const char* name) {
  const auto text = value_of(name);
  if (!text || *text == "0") return false;
  TORCH_CHECK_VALUE(*text == "1", "[neuron] ", name, " is '", *text, "'; it may be 0 or 1.");
  return true;
}

int64_t read_number(const char* name, int64_t least, int64_t otherwise) {
  const auto text = value_of(name);
  if (!text) return otherwise;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  TORCH_CHECK_VALUE(error == std::errc() && end == text->data() + text->size() && value >= least, "[neuron] ", name,
                    " is '", *text, "'; it may be a whole number from ", least, " on.");
  return value;
}

device::host::NativeTier::Mode read_tier() {
  using Mode = device::host::NativeTier::Mode;
  const auto text = value_of("NEURON_EAGER_KERNELS");
  if (!text || *text == "auto") return Mode::background;
  if (*text == "tile") return Mode::off;
  TORCH_CHECK_VALUE(*text == "native", "[neuron] NEURON_EAGER_KERNELS is '", *text,
                    "'; it may be auto, tile or native.");
  return Mode::immediately;
}

void check_report() {
  const auto text = value_of("NEURON_FUSION_REPORT");
  if (!text || *text == "0" || *text == "1") return;
  for (const std::string_view suffix : {".txt", ".json", ".html"}) {
    if (text->ends_with(suffix)) return;
  }
  TORCH_CHECK_VALUE(false, "[neuron] NEURON_FUSION_REPORT is '", *text,
                    "'; it may be 0, 1, or a path that ends in .txt, .json or .html.");
}

}  // namespace

Environment read_environment() {
  Environment environment;
  environment.launch_blocking = read_switch("NEURON_LAUNCH_BLOCKING");
  const bool adaptive = read_switch("NEURON_ADAPTIVE_EAGER");
  environment.policy.adaptive = adaptive && !environment.launch_blocking;
  environment.policy.window = read_number("NEURON_EAGER_WINDOW", 1, environment.policy.window);
  environment.policy.period = read_number("NEURON_EAGER_FLUSH_PERIOD", 0, 0);
  environment.threads = static_cast<int>(read_number("NEURON_EAGER_THREADS", 1, 0));
  environment.native = read_tier();
  check_report();
  return environment;
}

}  // namespace ae::engine
