// The forward pass of partition: places operators into launches (see partition.h for the rule).
#pragma once

#include <string>
#include <vector>

#include "fusion/partition/segment_builder.h"
#include "fusion/plan/plan.h"

namespace ae::fusion {

/// A launch being filled: segments of fused operators, or one library node.
struct LaunchState {
  std::vector<SegmentState> segments;
  bool library = false;
  uint32_t node = 0;                        // library: its node
  std::vector<uint32_t> writes;             // library: numbers of its writes
  std::vector<std::vector<uint32_t>> sources;  // library: per input, the writes that it may see
  bool fence = false;
  Mismatch opened_because = Mismatch::none;
};

class Partitioner {
 public:
  Partitioner(const Trace& trace, const std::vector<BufferNeed>& needs);
  /// Places all of the trace's operators.
  void run();

  std::vector<NodeView> nodes;
  std::vector<LaunchState> launches;
  std::vector<Write> writes;
  /// By buffer: the writes that make up its content at the end.
  std::vector<std::vector<uint32_t>> current;
  ConstantPool constants;

 private:
  static constexpr int kNone = -1, kSeveral = -2;

  /// The last launch that uses a buffer, and the segment in it (kSeveral: more than one, or a library node).
  struct Place {
    int launch = kNone;
    int segment = kNone;
    void add(int new_launch, int new_segment);
  };
  struct BufferState {
    Place write, use;  // use: reads and writes
  };

  void place(uint32_t node);
  void place_library(uint32_t node);
  void place_fused(uint32_t node);
  Place latest_dependence(const NodeView& node) const;
  /// Why the node cannot join the segment; on success `dims` and `mapped` are what the joined segment has.
  Mismatch can_join(const SegmentState& segment, const NodeView& node, const NodeSpace& space, Dims& dims,
                    MappedNode& mapped) const;
  bool conflicts(const SegmentState& segment, const Dims& dims, const MappedNode& mapped) const;
  bool shares_input(const SegmentState& segment, const NodeView& node) const;
  void join(int launch, int segment, uint32_t node, const Dims& dims, const MappedNode& mapped);
  void open(int launch, uint32_t node, const NodeSpace& space);
  int new_launch(Mismatch because);
  void note_use(const NodeView& node, int launch, int segment);
  void make_current(uint32_t write, int segment_writes_from);
  void keep_for_fence();

  const Trace& trace_;
  const std::vector<BufferNeed>& needs_;
  std::vector<BufferState> buffers_;
  int first_open_ = 0;  // launches before it take no more operators (fences)
};

/// A node's accesses over `dims`.
MappedNode map_node(const NodeView& node, const NodeSpace& space, const Dims& dims, bool kept_only);

}  // namespace ae::fusion
