// The one file that binds the engine to Python.
#include <torch/extension.h>

#include "engine/backend/generator.h"
#include "engine/backend/storage.h"
#include "engine/library/precision.h"
#include "engine/python_state.h"
#include "engine/record/record.h"
#include "engine/runtime.h"

namespace ae::engine {
namespace {

namespace py = pybind11;

// An interrupt while waiting, or an error of ours, as Python knows it.
template <class F>
auto guarded(F&& function) {
  try {
    return function();
  } catch (python_error& error) {
    error.restore();
    throw py::error_already_set();
  }
}

py::dict statistics() {
  py::dict result;
  const fusion::Statistics counts = is_initialized() ? recorder().statistics() : fusion::Statistics{};
  result["operators_recorded"] = counts.operators_recorded;
  result["operators_flushed"] = counts.operators_flushed;
  result["operators_plan_hit"] = counts.operators_plan_hit;
  result["launches"] = counts.launches;
  result["flushes"] = counts.flushes;
  py::dict by_reason;
  for (int i = 0; i < fusion::kFlushReasonCount; ++i) {
    const int64_t count = counts.flushes_by_reason[static_cast<size_t>(i)];
    if (count > 0) by_reason[fusion::name_of(static_cast<fusion::FlushReason>(i))] = count;
  }
  result["flushes_by_reason"] = by_reason;
  py::list by_line;
  for (const auto& [place, count] : counts.flushes_by_line) {
    by_line.append(py::make_tuple(fusion::name_of(place.first), place.second, count));
  }
  result["flushes_by_line"] = by_line;
  result["kernels_made"] = counts.kernels_made;
  result["plans_made"] = counts.plans_made;
  result["bytes_not_written"] = counts.bytes_not_written;
  result["fallbacks"] = fallback_counts();
  constexpr double kSecond = 1e9;
  result["seconds_recording"] = static_cast<double>(counts.ns_recording) / kSecond;
  result["seconds_planning"] = static_cast<double>(counts.ns_planning) / kSecond;
  result["seconds_executing"] = static_cast<double>(counts.ns_executing) / kSecond;
  result["seconds_waiting"] = static_cast<double>(counts.ns_waiting) / kSecond;
  return result;
}

// The launches of the plans flushed last, the latest plan first.
py::list recent_launches() {
  py::list plans;
  if (!is_initialized()) return plans;
  for (const std::shared_ptr<const fusion::Plan>& plan : recorder().recent_plans()) {
    py::list launches;
    for (const fusion::Plan::LaunchInfo& info : plan->launches) {
      py::dict launch;
      launch["name"] = info.library < 0 ? info.name : std::string(library_name(static_cast<int>(info.library)));
      launch["operators"] = info.nodes.size();
      launch["segments"] = info.segments;
      launch["why_not_more"] = info.why_not_more;
      py::list lines;
      std::string last;
      for (const uint32_t node : info.nodes) {
        const std::string& line = node < plan->lines.size() ? plan->lines[node] : last;
        if (!line.empty() && line != last) lines.append(line);
        last = line;
      }
      launch["lines"] = lines;
      launches.append(launch);
    }
    plans.append(launches);
  }
  return plans;
}

py::dict reason_texts() {
  py::dict result;
  for (int i = 0; i < fusion::kFlushReasonCount; ++i) {
    const auto reason = static_cast<fusion::FlushReason>(i);
    result[fusion::name_of(reason)] = fusion::text_of(reason);
  }
  return result;
}

py::dict settings() {
  const fusion::PolicySettings now = recorder().settings();
  py::dict result;
  result["adaptive"] = now.adaptive;
  result["window"] = now.window;
  result["bytes_budget"] = now.bytes_budget;
  result["cuts_when_idle"] = now.cuts_when_idle;
  result["period"] = now.period;
  return result;
}

void change_settings(const py::dict& changes) {
  fusion::PolicySettings next = recorder().settings();
  for (const auto& [key, value] : changes) {
    const auto name = key.cast<std::string>();
    if (name == "adaptive") {
      next.adaptive = value.cast<bool>();
    } else if (name == "window") {
      next.window = value.cast<int64_t>();
    } else if (name == "cuts_when_idle") {
      next.cuts_when_idle = value.cast<bool>();
    } else if (name == "bytes_budget") {
      next.bytes_budget = value.cast<int64_t>();
    } else if (name == "period") {
      next.period = value.cast<int64_t>();
    } else {
      throw py::key_error(name);
    }
  }
  py::gil_scoped_release release;
  recorder().set_settings(next);
}

void set_memory_limit(int64_t bytes) {
  host_device().set_memory_limit(bytes);
  set_visible_limit(bytes);
}

}  // namespace
}  // namespace ae::engine

PYBIND11_MODULE(_C, m) {
  namespace engine = ae::engine;
  using ae::fusion::FlushReason;
  m.doc() = "The engine of torch_neuron_eager.";
  m.attr("torch_version") = AE_TORCH_VERSION;
  m.def("init", [] { engine::guarded([] { engine::recorder(); }); });
  m.def("is_initialized", &engine::is_initialized);
  m.def("is_in_bad_fork", &engine::is_in_bad_fork);
  m.def("set_skipped_folders", &engine::set_skipped_folders);
  m.def("synchronize", [] { engine::guarded([] { engine::synchronize(); }); });
  m.def("finish", [] { engine::guarded([] { engine::finish(FlushReason::mode_change); }); });
  m.def("note_precision", &engine::library::note_precision);
  m.def("flush", [] { engine::guarded([] { engine::flush(FlushReason::synchronize); }); });
  m.def("pending", [] { return engine::recorder().pending(); });
  m.def("shutdown", &engine::shutdown);
  m.def("statistics", &engine::statistics);
  m.def("recent_launches", &engine::recent_launches);
  m.def("reason_texts", &engine::reason_texts);
  m.def("settings", &engine::settings);
  m.def("change_settings",
        [](const pybind11::dict& changes) { engine::guarded([&] { engine::change_settings(changes); }); });
  m.def("set_adaptive", [](bool on) { return engine::guarded([on] { return engine::set_adaptive(on); }); });
  m.def("default_generator", [] { return engine::default_generator(); });
  m.def("visible_bytes", &engine::visible_bytes);
  m.def("memory_limit", &engine::memory_limit);
  m.def("set_memory_limit", &engine::set_memory_limit);
}
