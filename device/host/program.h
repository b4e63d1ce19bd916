// A compiled plan of the host device: launches with their tasks, and where temporaries lie.
#pragma once

#include <cstdint>
#include <vector>

#include "device/device.h"
#include "device/host/native_tier.h"
#include "device/host/tile_plan.h"

namespace ae::device::host {

/// Tiles [first, last) of one segment.
struct TileRange {
  int32_t plan;
  int64_t first, last;
};

/// What a task runs: some of a launch's ranges.
struct LaunchTask {
  int32_t first_range, last_range;
};

/// A fused launch, cut into tasks.
struct TileWork {
  std::vector<TilePlan> plans;  // per segment
  std::vector<TileRange> ranges;
  std::vector<LaunchTask> tasks;
  std::vector<int32_t> split_plans;     // those whose tiles are put together at the end
  std::vector<int64_t> shared_offsets;  // per plan: its memory in the launch's shared memory
  int64_t shared_bytes = 0;
};

struct Launch {
  std::vector<Segment> segments;
  std::shared_ptr<const LibraryCall> library;
  std::vector<int32_t> library_slots;
  int32_t library_scalars = 0;

  // Blocks that are made before and dropped after the launch, temporaries excepted.
  std::vector<int32_t> allocate, free;
};

/// A slot that lives inside the program only: part of the program's one block of temporaries.
struct Temporary {
  int32_t slot;
  int64_t offset;
};

class HostProgram final : public Program {
 public:
  explicit HostProgram(ProgramSpec spec);

  int32_t slots() const { return slots_; }
  int64_t bytes_of(int32_t slot) const { return slot_bytes_[slot]; }
  const std::vector<Launch>& launches() const { return launches_; }
  /// Before a run, by the stream's worker alone: asks for native code for programs that come again, and takes what is
  /// ready.
  void take_native_code(NativeTier& tier) const;
  /// The tasks of a launch; the stream's worker's.
  const TileWork& work(size_t launch) const { return work_[launch]; }
  const std::vector<Temporary>& temporaries() const { return temporaries_; }
  int64_t temporary_bytes() const { return temporary_bytes_; }
  int64_t scalars_needed() const { return scalars_needed_; }

 private:
  void place_temporaries(const ProgramSpec& spec);

  int32_t slots_;
  std::vector<int64_t> slot_bytes_;
  std::vector<Launch> launches_;
  std::vector<Temporary> temporaries_;
  std::vector<uint8_t> is_temporary_;
  int64_t temporary_bytes_ = 0, scalars_needed_ = 0;

  // The worker's.
  mutable std::vector<TileWork> work_;  // per launch
  mutable int runs_ = 0;
  mutable uint64_t native_generation_ = 0;  // of the tier, when its code was last taken
};

}  // namespace ae::device::host
