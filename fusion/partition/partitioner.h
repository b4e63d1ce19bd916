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
  uint32_t node = 0;                           // library: its node
  std::vector<uint32_t> writes;                // library: numbers of its writes
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
  /// The last launch that uses a buffer, and the segments in it that do.
  struct Place {
    static constexpr int kMaxSegments = 4;
    int launch = -1;
    bool opaque = false;  // a library node, or more segments than fit
    int count = 0;
    int segments[kMaxSegments] = {};
    void add(int segment);
    void add(const Place& other);
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
  bool can_merge(const SegmentState& a, const SegmentState& b, Dims& dims) const;
  /// Makes one segment of all that the place names; its index, or -1 where that is not possible.
  int merge_segments(const Place& place, int64_t points_of_node);
  int resolve(int launch, int segment) const;
  bool shares_input(const SegmentState& segment, const NodeView& node) const;
  void join(int launch, int segment, uint32_t node, const Dims& dims, const MappedNode& mapped);
  void open(int launch, uint32_t node, const NodeSpace& space);
  int new_launch(Mismatch because);
  void note_use(const NodeView& node, const Place& place);
  void keep_for_fence();

  const Trace& trace_;
  const std::vector<BufferNeed>& needs_;
  std::vector<BufferState> buffers_;
  int first_open_ = 0;  // launches before it take no more operators (fences)
};

/// A node's accesses over `dims`.
MappedNode map_node(const NodeView& node, const NodeSpace& space, const Dims& dims, bool kept_only);

}  // namespace ae::fusion
