// A plan: what a trace becomes. It holds for every trace with equal words whose needs it covers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "fusion/trace/trace.h"

namespace ae::fusion {

/// Makes the call that runs a library node; given by the engine.
using LibraryResolver = std::function<std::shared_ptr<const device::LibraryCall>(const NodeView&)>;

/// What a plan has to know of a trace's buffer besides the words.
struct BufferNeed {
  bool visible = true;     // its content can be seen after the trace
  bool has_block = false;  // it has memory before the trace
  int64_t nbytes = 0;
  bool operator==(const BufferNeed&) const = default;
};

struct Plan {
  // The key.
  std::vector<uint64_t> words;
  std::vector<BufferNeed> needs;

  std::shared_ptr<const device::Program> program;  // null when nothing of the trace can be seen
  std::vector<uint64_t> constants;                 // passed behind the trace's scalars
  /// By trace buffer: whether the program makes its block, and the last launch that writes / uses it (-1: none).
  struct BufferUse {
    bool made = false;
    bool kept = false;  // made, and its content stays
    // On devices that do not write in place, of a buffer that had a block before:
    bool replaced = false;  // it is written, so that it gets another block
    bool given_up = false;  // nobody sees it after the trace: the block may become another buffer's
    int32_t first_write = -1;
    int32_t last_write = -1;
    int32_t last_use = -1;
  };
  std::vector<BufferUse> uses;

  /// For the report: what each launch is, and why its fusion ended.
  struct LaunchInfo {
    std::string name;
    std::vector<uint32_t> nodes;
    std::string why_not_more;  // why it did not join the launch before it
    size_t segments = 0;       // kernels that run side by side in it
    int64_t library = -1;      // library operators: which one (the node's first attribute)
  };
  std::vector<LaunchInfo> launches;
  std::vector<std::string> lines;  // source line of each node ("file:line"), empty text if unknown
  int64_t bytes_not_written = 0;
  bool can_fail = false;  // has an operator that can fail on data
  /// Plans that came after this one, the latest first: what to follow next.
  std::vector<std::weak_ptr<Plan>> successors;

  // Learned from the device's waiting: see fusion/flush/cuts.h.
  int idle_flushes = 0;          // flushes in succession that found the device idle
  std::vector<uint32_t> pieces;  // cut the trace after so many operators, after so many more, …
  bool ends_at_cut = false;      // it is such a piece: flush it as soon as it is complete

  size_t operators = 0;
};

}  // namespace ae::fusion
