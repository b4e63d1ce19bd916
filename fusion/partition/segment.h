// A segment: one kernel that grows, operator by operator, over one index space.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "fusion/ir/kernel.h"
#include "fusion/partition/dims.h"

namespace ae::fusion {

/// How a segment's instruction sees memory, over the segment's dimensions.
struct SegmentAccess {
  uint32_t buffer = kScalarBuffer;  // kScalarBuffer: an iota, which has no memory
  DType dtype = DType::kF32;
  int64_t offset = 0;
  Strides strides{};
  Level level = Level::full;
};

/// A write of a buffer by a segment or a library node. Writes are numbered through the whole trace.
struct Write {
  SegmentAccess access;
  ValueId value = kNoValue;  // in the segment's kernel; kNoValue for library nodes
  int64_t bytes = 0;
  bool superseded = false;  // a later write of the same segment puts the same elements
  bool needed = false;      // found by the backward pass: somebody can see it
};

/// A load (or iota) of a segment, and the writes that it may see.
struct Read {
  SegmentAccess access;
  ValueId value = kNoValue;
  std::vector<uint32_t> sources;  // numbers of writes
};

struct SegmentState {
  Dims dims;
  Kernel kernel;  // loads and iotas index `reads`; stores come at the end
  std::vector<Read> reads;
  std::vector<uint32_t> writes;                                  // numbers of its writes, in program order
  std::vector<int32_t> scalars;                                  // per kernel scalar: position in the program's scalars
  std::unordered_map<int32_t, ValueId> scalar_values;            // by position and dtype
  std::unordered_map<uint32_t, std::vector<uint32_t>> reads_of;  // by buffer: indices of `reads`
  std::unordered_map<uint32_t, std::vector<uint32_t>> writes_of;  // by buffer: numbers of writes
  std::vector<bool> from_reduction;                               // per value: depends on a reduction's result
  std::vector<uint32_t> nodes;
  bool separable = true;  // no full-level instruction depends on a reduction
  bool closed = false;    // takes no more operators
  int merged_into = -1;   // the segment of the launch that took all of this one's operators
};

/// Why an operator did not join a segment; null text when it can.
enum class Mismatch : uint8_t {
  none,
  space,
  reduced_dimensions,
  overlap,
  large_reduction,
  size_limit,
  closed,
  library,
  fence,
  several
};
const char* text_of(Mismatch mismatch);

/// Splits the segment's dimensions; `dims` must be a refinement of them.
void redimension(SegmentState& segment, const Dims& dims, std::vector<Write>& writes);

/// Moves all of `from`'s operators to `into`, a segment of the same launch. They have no dependence on each other, and
/// `dims` refines both.
void merge(SegmentState& into, SegmentState& from, const Dims& dims, std::vector<Write>& writes);

/// The memory that an access touches, as a range of bytes in its buffer.
struct ByteRange {
  int64_t begin = 0, end = 0;
};
ByteRange byte_range(const Dims& dims, const SegmentAccess& access);

}  // namespace ae::fusion
