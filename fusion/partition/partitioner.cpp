#include "fusion/partition/partitioner.h"

#include <algorithm>
#include <numeric>

namespace ae::fusion {

namespace {

constexpr size_t kMaxInstrs = 1024, kMaxAccesses = 96;
constexpr int kSearchedLaunches = 8, kSearchedSegments = 4;
// A whole reduced extent has to fit a core's L2 cache with its intermediates when a later instruction of the same
// kernel needs the result for each element; beyond that two passes are faster.
constexpr int64_t kMaxWholeReduction = 16384;
// Such a kernel only runs in parallel over its kept points.
constexpr int64_t kMinParallelPoints = 16, kSmallWork = 32768;

bool uses_own_reduction(Opcode opcode) {
  switch (opcode) {
    case Opcode::var:
    case Opcode::logsumexp:
    case Opcode::softmax:
    case Opcode::log_softmax:
    case Opcode::softmax_backward:
    case Opcode::log_softmax_backward:
    case Opcode::layer_norm:
    case Opcode::layer_norm_backward:
    case Opcode::rms_norm: return true;
    default: return false;
  }
}

bool has_reduced(const Dims& dims) {
  return std::any_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.reduced; });
}

/// Whether the access stays where it is along the node's reduced dimensions. A node that reduces over no elements has
/// one dimension in the place of all its reduced ones, so that only its own strides tell.
bool is_kept_in_node(const NodeView& node, const AccessView& view) {
  for (int d = 0; d < node.rank; ++d)
    if ((node.reduced >> d & 1) != 0 && node.sizes[d] != 1 && view.strides[d] != 0) return false;
  return true;
}

SegmentAccess map_access(const NodeView& node, const AccessView& view, const NodeSpace& space, const Dims& dims,
                         bool kept_only) {
  SegmentAccess access;
  access.dtype = view.dtype;
  if (view.is_scalar) return access;
  access.buffer = view.buffer;
  access.offset = view.offset;
  Strides strides{};
  for (size_t d = 0; d < space.from.size(); ++d) strides[d] = space.from[d] >= 0 ? view.strides[space.from[d]] : 0;
  access.strides = map_strides(space.dims, strides, dims, kept_only);
  access.level = is_kept_level(dims, access.strides) ? Level::kept : Level::full;
  if (points(dims) == 0 && !is_kept_in_node(node, view)) access.level = Level::full;
  return access;
}

/// Whether the accesses pass between each other: all their steps are multiples of a distance, within which they touch
/// other bytes. So do the parts of complex numbers.
bool interleave(const Dims& dims, const SegmentAccess& a, const SegmentAccess& b) {
  const int64_t a_size = size_of(a.dtype), b_size = size_of(b.dtype);
  int64_t distance = 0;
  for (size_t d = 0; d < dims.size(); ++d)
    if (dims[d].size > 1) distance = std::gcd(distance, std::gcd(a.strides[d] * a_size, b.strides[d] * b_size));
  if (distance == 0) return false;
  const int64_t apart = b.offset * b_size - a.offset * a_size;
  const int64_t after_a = (apart % distance + distance) % distance;
  return after_a >= a_size && distance - after_a >= b_size;
}

bool overlap(const Dims& dims, const SegmentAccess& a, const SegmentAccess& b) {
  const ByteRange x = byte_range(dims, a), y = byte_range(dims, b);
  return x.begin < y.end && y.begin < x.end && !interleave(dims, a, b);
}

/// True if the node leaves nothing of what the buffer held.
bool replaces(const MappedNode& mapped, const Dims& dims, uint32_t buffer, int64_t nbytes) {
  return std::any_of(mapped.outputs.begin(), mapped.outputs.end(), [&](const SegmentAccess& output) {
    const int64_t count = output.level == Level::kept ? kept_points(dims) : points(dims);
    return output.buffer == buffer && count * size_of(output.dtype) >= nbytes;
  });
}

template <class F>
bool any_part(const SegmentAccess& access, F test) {
  return test(part_of(access, Part::real)) || (is_complex(access.dtype) && test(part_of(access, Part::imaginary)));
}

}  // namespace

const char* text_of(Mismatch mismatch) {
  constexpr const char* kTexts[] = {"",
                                    "another index space",
                                    "other reduced dimensions",
                                    "memory overlaps other than element by element",
                                    "the reduction is too large to keep whole",
                                    "the kernel would be too large",
                                    "the producer takes no more operators",
                                    "the producer is a library operator",
                                    "an operator before it can fail on data",
                                    "its inputs come from kernels that cannot be one"};
  return kTexts[static_cast<int>(mismatch)];
}

ByteRange byte_range(const Dims& dims, const SegmentAccess& access) {
  int64_t low = access.offset, high = access.offset;
  for (size_t d = 0; d < dims.size(); ++d) {
    const int64_t reach = (dims[d].size - 1) * access.strides[d];
    (reach < 0 ? low : high) += reach;
  }
  const int64_t size = size_of(access.dtype);
  return {low * size, (high + 1) * size};
}

MappedNode map_node(const NodeView& node, const NodeSpace& space, const Dims& dims, bool kept_only) {
  MappedNode mapped{{}, {}, space, kept_only};
  for (const AccessView& view : node.inputs) mapped.inputs.push_back(map_access(node, view, space, dims, kept_only));
  for (const AccessView& view : node.outputs) mapped.outputs.push_back(map_access(node, view, space, dims, kept_only));
  return mapped;
}

void Partitioner::Place::add(int segment) {
  if (std::find(segments, segments + count, segment) != segments + count) return;
  if (count == kMaxSegments)
    opaque = true;
  else
    segments[count++] = segment;
}

void Partitioner::Place::add(const Place& other) {
  if (other.launch < launch) return;
  if (other.launch > launch) {
    *this = other;
    return;
  }
  opaque |= other.opaque;
  for (int i = 0; i < other.count; ++i) add(other.segments[i]);
}

Partitioner::Partitioner(const Trace& trace, const std::vector<BufferNeed>& needs)
    : current(trace.buffers.size()),
      constants(static_cast<int32_t>(trace.scalars.size())),
      trace_(trace),
      needs_(needs),
      buffers_(trace.buffers.size()) {
  nodes.reserve(trace.size());
  uint32_t scalar = 0;
  for (size_t i = 0; i < trace.size(); ++i) {
    nodes.push_back(NodeView::decode(trace.words.data() + trace.starts[i], scalar));
    for (const AccessView& input : nodes.back().inputs) scalar += input.is_scalar ? scalar_words(input.dtype) : 0;
    if (kind_of(nodes.back().opcode) == OpKind::library)
      scalar += static_cast<uint32_t>(nodes.back().attributes.back());
  }
}

void Partitioner::run() {
  for (uint32_t i = 0; i < nodes.size(); ++i) place(i);
}

void Partitioner::place(uint32_t node) {
  if (kind_of(nodes[node].opcode) == OpKind::library)
    place_library(node);
  else
    place_fused(node);
}

Partitioner::Place Partitioner::latest_dependence(const NodeView& node) const {
  Place latest;
  for (const AccessView& input : node.inputs)
    if (!input.is_scalar) latest.add(buffers_[input.buffer].write);
  for (const AccessView& output : node.outputs) latest.add(buffers_[output.buffer].use);
  return latest;
}

void Partitioner::place_library(uint32_t index) {
  const NodeView& node = nodes[index];
  if (node.fence) keep_for_fence();
  const int launch = new_launch(Mismatch::library);
  LaunchState& state = launches[launch];
  state.library = true;
  state.node = index;
  state.fence = node.fence;
  for (const AccessView& input : node.inputs)
    state.sources.push_back(input.is_scalar ? std::vector<uint32_t>{} : current[input.buffer]);
  for (const AccessView& output : node.outputs) {
    const auto number = static_cast<uint32_t>(writes.size());
    int64_t bytes = size_of(output.dtype);
    for (int d = 0; d < output.rank; ++d) bytes *= output.sizes[d];
    SegmentAccess access;
    access.buffer = output.buffer;
    access.dtype = output.dtype;
    writes.push_back({access, kNoValue, bytes});
    state.writes.push_back(number);
    // A library write replaces the buffer's content when it covers all of it and does not read it.
    const bool reads_it = std::any_of(node.inputs.begin(), node.inputs.end(),
                                      [&](const AccessView& input) { return input.buffer == output.buffer; });
    if (!reads_it && bytes >= trace_.buffers[output.buffer]->nbytes) current[output.buffer].clear();
    current[output.buffer].push_back(number);
  }
  Place place;
  place.launch = launch;
  place.opaque = true;
  note_use(node, place);
  if (node.fence) first_open_ = launch + 1;
}

void Partitioner::place_fused(uint32_t index) {
  const NodeView& node = nodes[index];
  const NodeSpace space = node_space(node);
  if (kept_points(space.dims) == 0) return;  // nothing to write
  const Place latest = latest_dependence(node);
  Mismatch why = first_open_ > 0 && latest.launch < first_open_ ? Mismatch::fence : Mismatch::none;
  Dims dims;
  MappedNode mapped;
  if (latest.launch >= first_open_) {
    const int segment = merge_segments(latest, points(space.dims));
    if (segment >= 0)
      why = can_join(launches[latest.launch].segments[segment], node, space, dims, mapped);
    else
      why = launches[latest.launch].library ? Mismatch::library : Mismatch::several;
    if (why == Mismatch::none) return join(latest.launch, segment, index, dims, mapped);
  }
  // Later launches: beside a segment that reads the same memory, or as a segment of its own.
  const int last = static_cast<int>(launches.size()) - 1;
  const int first = std::max({latest.launch + 1, first_open_, last - kSearchedLaunches + 1});
  for (int launch = last; launch >= first; --launch) {
    if (launches[launch].library) continue;
    auto& segments = launches[launch].segments;
    const int count = static_cast<int>(segments.size());
    for (int s = count - 1; s >= std::max(0, count - kSearchedSegments); --s)
      if (shares_input(segments[s], node) && can_join(segments[s], node, space, dims, mapped) == Mismatch::none)
        return join(launch, s, index, dims, mapped);
  }
  for (int launch = last; launch >= first; --launch)
    if (!launches[launch].library) return open(launch, index, space);
  open(new_launch(why), index, space);
}

int Partitioner::resolve(int launch, int segment) const {
  while (launches[launch].segments[segment].merged_into >= 0) segment = launches[launch].segments[segment].merged_into;
  return segment;
}

bool Partitioner::can_merge(const SegmentState& a, const SegmentState& b, Dims& dims) const {
  if (a.closed || b.closed || points(a.dims) != points(b.dims)) return false;
  if (a.kernel.instrs.size() + b.kernel.instrs.size() > kMaxInstrs ||
      a.reads.size() + b.reads.size() + a.writes.size() + b.writes.size() > kMaxAccesses)
    return false;
  std::optional<Dims> fine = refine(a.dims, b.dims, has_reduced(b.dims));
  if (!fine) return false;
  dims = std::move(*fine);
  const bool serial = kept_points(dims) < kMinParallelPoints && points(dims) > kSmallWork;
  return (a.separable && b.separable) || !(serial || reduced_points(dims) > kMaxWholeReduction);
}

int Partitioner::merge_segments(const Place& place, int64_t points_of_node) {
  if (place.opaque || place.count == 0) return -1;
  const int into = resolve(place.launch, place.segments[0]);
  auto& segments = launches[place.launch].segments;
  for (int i = 1; i < place.count; ++i) {
    const int from = resolve(place.launch, place.segments[i]);
    if (from == into) continue;
    Dims dims;
    if (points(segments[into].dims) != points_of_node || !can_merge(segments[into], segments[from], dims)) return -1;
    merge(segments[into], segments[from], dims, writes);
    segments[from].merged_into = into;
  }
  return into;
}

Mismatch Partitioner::can_join(const SegmentState& segment, const NodeView& node, const NodeSpace& space, Dims& dims,
                               MappedNode& mapped) const {
  if (segment.closed) return Mismatch::closed;
  if (segment.kernel.instrs.size() > kMaxInstrs || segment.reads.size() + segment.writes.size() > kMaxAccesses)
    return Mismatch::size_limit;
  const int64_t count = points(space.dims);
  if (count == 0) return Mismatch::closed;
  bool kept_only = false;
  if (count == points(segment.dims)) {
    std::optional<Dims> fine = refine(segment.dims, space.dims, space.reduces);
    if (!fine) return space.reduces && has_reduced(segment.dims) ? Mismatch::reduced_dimensions : Mismatch::space;
    dims = std::move(*fine);
  } else if (!space.reduces && has_reduced(segment.dims) && count == kept_points(segment.dims)) {
    std::optional<Dims> fine = refine_kept(segment.dims, space.dims);
    if (!fine) return Mismatch::space;
    dims = std::move(*fine);
    kept_only = true;
  } else {
    return Mismatch::space;
  }
  mapped = map_node(node, space, dims, kept_only);
  if (conflicts(segment, dims, mapped)) return Mismatch::overlap;
  bool whole = uses_own_reduction(node.opcode);
  if (!kept_only && has_reduced(dims))
    for (const SegmentAccess& input : mapped.inputs)
      if (input.buffer != kScalarBuffer && input.level == Level::kept && segment.writes_of.count(input.buffer))
        whole = true;
  if ((whole || !segment.separable) && has_reduced(dims)) {
    const bool serial = kept_points(dims) < kMinParallelPoints && points(dims) > kSmallWork;
    if (reduced_points(dims) > kMaxWholeReduction || serial) return Mismatch::large_reduction;
  }
  return Mismatch::none;
}

bool Partitioner::conflicts(const SegmentState& segment, const Dims& dims, const MappedNode& mapped) const {
  // Accesses of the segment over the refined dimensions.
  const auto refined = [&](const SegmentAccess& access) {
    SegmentAccess out = access;
    out.strides = map_strides(segment.dims, access.strides, dims, false);
    return out;
  };
  const auto clashes = [&](const SegmentAccess& theirs, const SegmentAccess& ours) {
    const SegmentAccess seen = refined(theirs);
    return !same_access(seen, ours, dims) && overlap(dims, seen, ours);
  };
  const auto clashes_with_writes = [&](const SegmentAccess& ours) {
    const auto found = segment.writes_of.find(ours.buffer);
    return found != segment.writes_of.end() &&
           std::any_of(found->second.begin(), found->second.end(),
                       [&](uint32_t write) { return clashes(writes[write].access, ours); });
  };
  const auto clashes_with_reads = [&](const SegmentAccess& ours) {
    const auto found = segment.reads_of.find(ours.buffer);
    return found != segment.reads_of.end() &&
           std::any_of(found->second.begin(), found->second.end(),
                       [&](uint32_t read) { return clashes(segment.reads[read].access, ours); });
  };
  for (const SegmentAccess& input : mapped.inputs)
    if (input.buffer != kScalarBuffer && any_part(input, clashes_with_writes)) return true;
  for (const SegmentAccess& output : mapped.outputs)
    if (any_part(output, clashes_with_writes) || any_part(output, clashes_with_reads)) return true;
  return false;
}

bool Partitioner::shares_input(const SegmentState& segment, const NodeView& node) const {
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](const AccessView& input) {
    return !input.is_scalar && segment.reads_of.count(input.buffer) != 0;
  });
}

void Partitioner::join(int launch, int index, uint32_t node, const Dims& dims, const MappedNode& mapped) {
  SegmentState& segment = launches[launch].segments[index];
  redimension(segment, dims, writes);
  const size_t before = segment.writes.size();
  const auto first = static_cast<uint32_t>(writes.size());
  SegmentBuilder builder(segment, nodes[node], mapped, writes, current, constants);
  build(builder);
  segment.nodes.push_back(node);
  for (size_t w = before; w < segment.writes.size(); ++w) {
    const uint32_t number = segment.writes[w];
    const uint32_t buffer = writes[number].access.buffer;
    auto& content = current[buffer];
    const bool whole = replaces(mapped, dims, buffer, trace_.buffers[buffer]->nbytes);
    std::erase_if(content, [&](uint32_t old) { return (whole && old < first) || writes[old].superseded; });
    content.push_back(number);
  }
  Place place;
  place.launch = launch;
  place.add(index);
  note_use(nodes[node], place);
}

void Partitioner::open(int launch, uint32_t node, const NodeSpace& space) {
  auto& segments = launches[launch].segments;
  segments.emplace_back();
  segments.back().dims = space.dims;
  segments.back().closed = points(space.dims) == 0;
  join(launch, static_cast<int>(segments.size()) - 1, node, space.dims,
       map_node(nodes[node], space, space.dims, false));
}

int Partitioner::new_launch(Mismatch because) {
  launches.emplace_back();
  launches.back().opened_because = because;
  return static_cast<int>(launches.size()) - 1;
}

void Partitioner::note_use(const NodeView& node, const Place& place) {
  for (const AccessView& input : node.inputs)
    if (!input.is_scalar) buffers_[input.buffer].use.add(place);
  for (const AccessView& output : node.outputs) {
    buffers_[output.buffer].write.add(place);
    buffers_[output.buffer].use.add(place);
  }
}

void Partitioner::keep_for_fence() {
  for (size_t b = 0; b < current.size(); ++b)
    if (needs_[b].visible)
      for (uint32_t write : current[b]) writes[write].needed = true;
}

}  // namespace ae::fusion
