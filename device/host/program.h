// A compiled plan of the host device: launches with their tasks, and where temporaries lie.
#pragma once

#include <cstdint>
#include <vector>

#include "device/device.h"
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

struct Launch {
  std::vector<TilePlan> plans;
  std::vector<TileRange> ranges;
  std::vector<LaunchTask> tasks;
  std::vector<int32_t> split_plans;     // those whose tiles are put together at the end
  std::vector<int64_t> shared_offsets;  // per plan: its memory in the launch's shared memory
  int64_t shared_bytes = 0;

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
  const std::vector<Temporary>& temporaries() const { return temporaries_; }
  int64_t temporary_bytes() const { return temporary_bytes_; }
  /// The most that a launch needs for partial results.
  int64_t shared_bytes() const { return shared_bytes_; }
  int64_t scalars_needed() const { return scalars_needed_; }

 private:
  void place_temporaries(const ProgramSpec& spec);

  int32_t slots_;
  std::vector<int64_t> slot_bytes_;
  std::vector<Launch> launches_;
  std::vector<Temporary> temporaries_;
  std::vector<uint8_t> is_temporary_;
  int64_t temporary_bytes_ = 0, shared_bytes_ = 0, scalars_needed_ = 0;
};

}  // namespace ae::device::host
