#include "fusion/partition/sink.h"

#include <algorithm>

namespace ae::fusion {

namespace {

// How far a launch may move: its inputs stay in memory as long.
constexpr int kReach = 8;
constexpr size_t kMaxSegments = 4;

/// Buffers that a launch (or a segment of one) reads and writes.
struct Touched {
  std::vector<uint32_t> reads, writes;
};

void add_segment(const SegmentState& segment, const std::vector<Write>& writes, Touched& touched) {
  for (const Read& read : segment.reads)
    if (read.access.buffer != kScalarBuffer) touched.reads.push_back(read.access.buffer);
  for (uint32_t write : segment.writes)
    if (writes[write].needed) touched.writes.push_back(writes[write].access.buffer);
}

Touched touched_by(const Partitioner& partitioner, const LaunchState& launch) {
  Touched touched;
  for (const SegmentState& segment : launch.segments) add_segment(segment, partitioner.writes, touched);
  if (!launch.library) return touched;
  for (const AccessView& input : partitioner.nodes[launch.node].inputs) touched.reads.push_back(input.buffer);
  for (const AccessView& output : partitioner.nodes[launch.node].outputs) touched.writes.push_back(output.buffer);
  return touched;
}

bool intersect(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  return std::any_of(a.begin(), a.end(),
                     [&](uint32_t buffer) { return std::find(b.begin(), b.end(), buffer) != b.end(); });
}

bool depend(const Touched& earlier, const Touched& later) {
  return intersect(earlier.writes, later.reads) || intersect(earlier.writes, later.writes) ||
         intersect(earlier.reads, later.writes);
}

bool is_dead(const LaunchState& launch) {
  return launch.library ? launch.writes.empty() && !launch.fence : launch.segments.empty();
}

}  // namespace

void sink_launches(Partitioner& partitioner) {
  auto& launches = partitioner.launches;
  std::vector<Touched> touched;
  for (const LaunchState& launch : launches)
    touched.push_back(is_dead(launch) ? Touched{} : touched_by(partitioner, launch));
  for (int from = static_cast<int>(launches.size()) - 1; from >= 0; --from) {
    LaunchState& launch = launches[from];
    if (launch.library || is_dead(launch) || launch.segments.size() > kMaxSegments) continue;
    for (int to = from + 1, seen = 0; to < static_cast<int>(launches.size()) && seen < kReach; ++to) {
      if (is_dead(launches[to])) continue;
      ++seen;
      if (launches[to].fence || depend(touched[from], touched[to])) break;
      if (launches[to].library) continue;
      std::move(launch.segments.begin(), launch.segments.end(), std::back_inserter(launches[to].segments));
      launch.segments.clear();
      touched[to].reads.insert(touched[to].reads.end(), touched[from].reads.begin(), touched[from].reads.end());
      touched[to].writes.insert(touched[to].writes.end(), touched[from].writes.begin(), touched[from].writes.end());
      break;
    }
  }
}

}  // namespace ae::fusion
