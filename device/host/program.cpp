#include "device/host/program.h"

#include <algorithm>
#include <stdexcept>

namespace ae::device::host {
namespace {

// In units of an addition's time in the first-level cache, about 0.06 ns.
constexpr double kSerialCost = 150'000;  // a launch cheaper than this runs on one thread
constexpr double kTaskCost = 200'000;    // about what a task should cost at least
constexpr double kTasksAtMost = 64;

constexpr int kRunsBeforeNative = 2;  // a program that ran so often will run again

struct Lifetime {
  int32_t slot;
  int64_t bytes;
  int32_t first, last;  // launches
};

/// Offsets such that slots that live at the same time do not overlap: large slots first, each in the smallest gap that
/// fits. Returns the bytes of all.
int64_t place(std::vector<Lifetime> lives, std::vector<Temporary>& out) {
  struct Placed {
    int64_t begin, end;
    int32_t first, last;
  };
  std::sort(lives.begin(), lives.end(), [](const Lifetime& a, const Lifetime& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.slot < b.slot;
  });
  std::vector<Placed> placed;  // by begin
  int64_t total = 0;
  for (const Lifetime& life : lives) {
    int64_t best = -1, best_gap = INT64_MAX, at = 0;
    for (const Placed& other : placed) {
      if (other.last < life.first || life.last < other.first) continue;
      const int64_t gap = other.begin - at;
      if (gap >= life.bytes && gap < best_gap) {
        best = at;
        best_gap = gap;
      }
      at = std::max(at, other.end);
    }
    if (best < 0) best = at;
    const Placed own{best, best + life.bytes, life.first, life.last};
    placed.insert(std::upper_bound(placed.begin(), placed.end(), own,
                                   [](const Placed& a, const Placed& b) { return a.begin < b.begin; }),
                  own);
    out.push_back({life.slot, best});
    total = std::max(total, own.end);
  }
  return total;
}

TileWork plan_segments(const std::vector<Segment>& segments) {
  TileWork work;
  double total = 0;
  for (const Segment& segment : segments) {
    TilePlan plan = plan_tiles(segment);
    total += plan.tile_cost * static_cast<double>(plan.tiles);
    work.shared_offsets.push_back(work.shared_bytes);
    work.shared_bytes += plan.shared_bytes;
    if (plan.splits > 1) work.split_plans.push_back(static_cast<int32_t>(work.plans.size()));
    work.plans.push_back(std::move(plan));
  }
  const double target = total < kSerialCost ? total + 1 : std::max(kTaskCost, total / kTasksAtMost);
  double cost = 0;
  int32_t first_range = 0;
  const auto close_task = [&] {
    const auto last = static_cast<int32_t>(work.ranges.size());
    if (last > first_range) work.tasks.push_back({first_range, last});
    first_range = last;
    cost = 0;
  };
  for (size_t p = 0; p < work.plans.size(); ++p) {
    const TilePlan& plan = work.plans[p];
    for (int64_t tile = 0; tile < plan.tiles;) {
      const double room = std::max(1.0, (target - cost) / plan.tile_cost + 0.5);
      const int64_t n = room >= static_cast<double>(plan.tiles - tile) ? plan.tiles - tile : static_cast<int64_t>(room);
      work.ranges.push_back({static_cast<int32_t>(p), tile, tile + n});
      tile += n;
      cost += plan.tile_cost * static_cast<double>(n);
      if (cost >= target) close_task();
    }
  }
  close_task();
  return work;
}

}  // namespace

HostProgram::HostProgram(ProgramSpec spec) : slots_(spec.slots), slot_bytes_(spec.slot_bytes) {
  if (static_cast<int32_t>(slot_bytes_.size()) != slots_)
    throw std::invalid_argument("program: slot_bytes has a wrong size");
  const auto check_slot = [&](int32_t slot) {
    if (slot < 0 || slot >= slots_) throw std::invalid_argument("program: no such slot");
  };
  place_temporaries(spec);
  for (LaunchSpec& from : spec.launches) {
    Launch launch;
    for (const Segment& segment : from.segments) {
      for (const SegmentOperand& operand : segment.operands) {
        if (operand.slot != -1) check_slot(operand.slot);
      }
      for (int32_t scalar : segment.scalars) scalars_needed_ = std::max<int64_t>(scalars_needed_, scalar + 1);
    }
    work_.push_back(plan_segments(from.segments));
    launch.segments = std::move(from.segments);
    for (int32_t slot : from.library_slots) check_slot(slot);
    launch.library = std::move(from.library);
    launch.library_slots = std::move(from.library_slots);
    launch.library_scalars = from.library_scalars;
    for (int32_t slot : from.allocate) {
      if (!is_temporary_[slot]) launch.allocate.push_back(slot);
    }
    for (int32_t slot : from.free) {
      if (!is_temporary_[slot]) launch.free.push_back(slot);
    }
    launches_.push_back(std::move(launch));
  }
}

void HostProgram::take_native_code(NativeTier& tier) const {
  if (tier.mode() == NativeTier::Mode::off) return;
  if (tier.mode() == NativeTier::Mode::background && runs_ < kRunsBeforeNative) {
    ++runs_;
    return;
  }
  if (runs_ >= 0) {  // the first time
    runs_ = -1;
    for (const TileWork& work : work_) {
      for (const TilePlan& plan : work.plans) tier.request(plan.code, plan.layout == Layout::rows);
    }
  }
  const uint64_t generation = tier.generation();
  if (generation == native_generation_) return;
  native_generation_ = generation;
  for (size_t i = 0; i < launches_.size(); ++i) {
    const auto is_better = [](const TilePlan& plan) {
      return plan.code->native(plan.layout == Layout::rows) != nullptr;
    };
    const auto& plans = work_[i].plans;
    if (std::any_of(plans.begin(), plans.end(), is_better)) work_[i] = plan_segments(launches_[i].segments);
  }
}

void HostProgram::place_temporaries(const ProgramSpec& spec) {
  is_temporary_.assign(slots_, 0);
  std::vector<int32_t> allocated(slots_, -1);
  std::vector<Lifetime> lives;
  for (size_t i = 0; i < spec.launches.size(); ++i) {
    for (int32_t slot : spec.launches[i].allocate) allocated.at(slot) = static_cast<int32_t>(i);
    for (int32_t slot : spec.launches[i].free) {
      if (allocated.at(slot) < 0) continue;
      is_temporary_[slot] = 1;
      const int64_t bytes = std::max<int64_t>(64, (slot_bytes_[slot] + 63) / 64 * 64);
      lives.push_back({slot, bytes, allocated[slot], static_cast<int32_t>(i)});
    }
  }
  temporary_bytes_ = place(std::move(lives), temporaries_);
}

}  // namespace ae::device::host
