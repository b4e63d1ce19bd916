#include "device/host/tile_plan.h"

#include <algorithm>
#include <stdexcept>

namespace ae::device::host {
namespace {

constexpr int64_t kTile = 1024;            // elements of a block
constexpr int64_t kCacheBytes = 24 << 10;  // of the first-level cache, for the buffers in use
constexpr int64_t kSkew = 128;             // between buffers, so that they do not begin on the same cache sets
constexpr double kSplitCost = 100'000;     // a reduction dearer than this is worth splitting

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t full_bytes_per_element(const TileCode& code) {
  int64_t bytes = 0;
  for (const CodeBuffer& buffer : code.buffers()) bytes += buffer.level == Level::full ? buffer.size : 0;
  return bytes;
}

int64_t chosen_tile(const TileCode& code, const TileOptions& options) {
  if (options.tile_elements) return padded(options.tile_elements);
  const int64_t bytes = std::max<int64_t>(1, full_bytes_per_element(code));
  int64_t tile = kTile;
  while (tile > 256 && tile * bytes > kCacheBytes) tile /= 2;
  return tile;
}

/// Innermost dimension reduced: rows, unless they are so short that they fill no group. A handful of kept points make
/// poor columns, too.
Layout chosen_layout(const Space& space, int64_t kept, int64_t reduced, const TileOptions& options) {
  if (space.reduced == 0) return Layout::flat;
  if (options.layout >= 0) return options.layout == 0 ? Layout::rows : Layout::columns;
  const bool innermost_reduced = (space.reduced >> (space.rank - 1)) & 1;
  const bool short_rows = reduced <= kGroup / 2 && kept >= kGroup;
  return (innermost_reduced && !short_rows) || kept < 4 ? Layout::rows : Layout::columns;
}

/// Whether the reductions read operands as they are: then memory is read in place, and long rows are good for that.
bool reduces_operands_only(const TileCode& code) {
  return std::all_of(code.instrs().begin(), code.instrs().end(), [](const CodeInstr& instr) {
    return instr.level == Level::kept || instr.kind == CodeInstr::load || instr.kind == CodeInstr::reduce;
  });
}

void choose_tiles(TilePlan& plan, const TileOptions& options) {
  const TileCode& code = *plan.code;
  const int64_t tile = chosen_tile(code, options);
  plan.by_phase = plan.layout != Layout::flat && code.separable();
  plan.chunks = plan.by_phase ? std::max<int64_t>(1, ceil_div(plan.reduced, kReductionChunk)) : 1;
  if (plan.layout == Layout::flat) {
    plan.tile_kept = tile;
    plan.block_reduced = 1;
  } else if (plan.layout == Layout::rows) {
    plan.block_reduced = plan.by_phase ? std::min<int64_t>(plan.reduced, kReductionChunk) : plan.reduced;
    plan.tile_kept =
        plan.chunks > 1 ? 1 : std::max<int64_t>(1, tile / std::max<int64_t>(kGroup, padded(plan.block_reduced)));
  } else if (plan.by_phase) {
    const int64_t width =
        reduces_operands_only(code) && !options.tile_elements ? 256 : std::min<int64_t>(64, tile / kGroup);
    plan.tile_kept = std::min(padded(plan.kept), std::max<int64_t>(kGroup, padded(width)));
    plan.block_reduced = std::clamp<int64_t>(tile / plan.tile_kept / kGroup * kGroup, kGroup, kReductionChunk);
  } else {
    plan.tile_kept =
        std::min(padded(plan.kept), std::max<int64_t>(kGroup, padded(tile / std::max<int64_t>(1, plan.reduced))));
    plan.block_reduced = plan.reduced;
  }
  const int64_t kept_tiles = ceil_div(plan.kept, plan.tile_kept);
  const double point_cost = code.full_cost() * static_cast<double>(plan.reduced) + code.kept_cost();
  plan.tile_cost = point_cost * static_cast<double>(std::min(plan.kept, plan.tile_kept)) + 200;
  if (plan.chunks > 1) {
    int64_t splits = options.splits;
    if (!splits && kept_tiles < 8) splits = static_cast<int64_t>(plan.tile_cost / kSplitCost);
    splits = std::clamp<int64_t>(splits, 1, std::min<int64_t>(plan.chunks, 64));
    plan.chunks_per_split = ceil_div(plan.chunks, splits);
    plan.splits = ceil_div(plan.chunks, plan.chunks_per_split);
    plan.tile_cost /= static_cast<double>(plan.splits);
  } else {
    plan.chunks_per_split = plan.chunks;
  }
  plan.tiles = kept_tiles * plan.splits;
}

Access make_access(const TilePlan& plan, const Segment& segment, const CodeInstr& instr) {
  const Space& space = segment.space;
  const SegmentOperand& operand = segment.operands.at(instr.operand);
  Access access;
  access.slot = operand.slot;
  access.size = instr.size;
  access.offset = operand.view.offset;
  Walk kept, reduced;
  for (int d = 0; d < space.rank; ++d) {
    const bool is_reduced = (space.reduced >> d) & 1;
    if (is_reduced && instr.level == Level::kept) continue;
    (is_reduced ? reduced : kept).append(space.sizes[d], operand.view.strides[d]);
  }
  if (instr.level == Level::kept || plan.layout == Layout::flat) {
    access.inner = kept;
  } else {
    access.outer = plan.layout == Layout::rows ? kept : reduced;
    access.inner = plan.layout == Layout::rows ? reduced : kept;
  }
  return access;
}

/// An access is large, and most instructions have none. The plan is kept for long, so there is no spare capacity.
void make_accesses(TilePlan& plan, const Segment& segment) {
  const auto& instrs = plan.code->instrs();
  const auto names_operand = [](const CodeInstr& instr) {
    return instr.kind == CodeInstr::load || instr.kind == CodeInstr::store || instr.kind == CodeInstr::iota;
  };
  plan.accesses.reserve(1 + std::count_if(instrs.begin(), instrs.end(), names_operand));
  plan.accesses.emplace_back();
  plan.access_of.assign(instrs.size(), 0);
  for (size_t i = 0; i < instrs.size(); ++i) {
    if (!names_operand(instrs[i])) continue;
    plan.access_of[i] = static_cast<uint16_t>(plan.accesses.size());
    plan.accesses.push_back(make_access(plan, segment, instrs[i]));
  }
}

bool is_full(const TilePlan& plan, Level level) { return level == Level::full || plan.layout == Layout::flat; }

/// Whether any store to `slot` comes after instruction `from` and not after instruction `to`.
bool stored_between(const TilePlan& plan, int32_t slot, int32_t from, int32_t to) {
  const auto& instrs = plan.code->instrs();
  for (int32_t i = from + 1; i <= to; ++i) {
    if (instrs[i].kind == CodeInstr::store && plan.access(i).slot == slot) return true;
  }
  return false;
}

/// A store may be done by the instruction that computes its value when nothing between the two sees the memory.
bool store_can_be_direct(const TilePlan& plan, int32_t store) {
  const auto& instrs = plan.code->instrs();
  const auto& values = plan.code->values();
  const uint16_t cell = instrs[store].a;
  const int32_t slot = plan.access(store).slot;
  if (cell >= values.size() || !is_full(plan, values[cell].level)) return false;
  const CodeValue& value = values[cell];
  const CodeInstr::Kind maker = instrs[value.definition].kind;
  if (maker != CodeInstr::element && maker != CodeInstr::broadcast && maker != CodeInstr::compiled) return false;
  const auto reads_slot = [&](uint16_t read) {
    if (read >= values.size()) return false;
    const int32_t definition = values[read].definition;
    return instrs[definition].kind == CodeInstr::load && plan.direct[definition] &&
           plan.access(definition).slot == slot;
  };
  for (int32_t i = value.definition + 1; i <= store; ++i) {
    const CodeInstr& instr = instrs[i];
    if (instr.kind == CodeInstr::load) {
      if (plan.access(i).slot == slot) return false;
    } else if (i != store) {
      bool reads = false;
      for_reads(*plan.code, instr, [&](uint16_t read) { reads |= reads_slot(read); });
      if (reads) return false;
    }
    if (instr.kind == CodeInstr::store && i != store && (plan.access(i).slot == slot || instr.a == cell)) return false;
  }
  return !stored_between(plan, slot, store, value.last_use);
}

void choose_direct(TilePlan& plan) {
  const auto& instrs = plan.code->instrs();
  const auto& values = plan.code->values();
  plan.direct.assign(instrs.size(), 0);
  for (size_t i = 0; i < instrs.size(); ++i) {
    if (instrs[i].kind != CodeInstr::load || !is_full(plan, instrs[i].level)) continue;
    const int32_t last_use = values[instrs[i].dst].last_use;
    plan.direct[i] = !stored_between(plan, plan.access(i).slot, static_cast<int32_t>(i), last_use - 1);
  }
  plan.only_reduced = plan.direct;
  for (const CodeInstr& instr : instrs) {
    if (instr.kind == CodeInstr::reduce) continue;
    for_reads(*plan.code, instr, [&](uint16_t cell) {
      if (cell < values.size()) plan.only_reduced[values[cell].definition] = 0;
    });
  }
  for (size_t i = 0; i < instrs.size(); ++i) {
    if (instrs[i].kind != CodeInstr::store || !store_can_be_direct(plan, static_cast<int32_t>(i))) continue;
    plan.direct[i] = 1;
    plan.direct_stores.push_back(static_cast<uint16_t>(i));
  }
}

void lay_out_scratch(TilePlan& plan) {
  const TileCode& code = *plan.code;
  const int64_t kept_padded = padded(plan.tile_kept);
  int64_t full = 0;
  switch (plan.layout) {
    case Layout::flat: full = kept_padded; break;
    case Layout::rows: full = plan.tile_kept * padded(plan.block_reduced); break;
    case Layout::columns: full = plan.block_reduced * kept_padded; break;
  }
  int64_t at = 0;
  const auto take = [&](int64_t bytes) {
    const int64_t offset = at;
    at += (bytes + 63) / 64 * 64 + kSkew;
    return offset;
  };
  for (const CodeBuffer& buffer : code.buffers()) {
    plan.buffer_offsets.push_back(take(buffer.size * (is_full(plan, buffer.level) ? full : kept_padded)));
  }
  for (uint8_t size : code.reductions()) {
    const bool columns = plan.layout == Layout::columns;
    plan.accumulator_offsets.push_back(plan.by_phase && columns ? take(size * kReductionLanes * kept_padded) : 0);
    const bool local = plan.chunks > 1 && plan.splits == 1;
    plan.partial_offsets.push_back(local ? take(size * plan.chunks * (columns ? kept_padded : plan.tile_kept)) : 0);
    if (plan.splits > 1) {
      plan.shared_offsets.push_back(plan.shared_bytes);
      plan.shared_bytes += (size * plan.chunks * padded(plan.kept) + 63) / 64 * 64;
    }
  }
  plan.scratch_bytes = at;
}

}  // namespace

TilePlan plan_tiles(const Segment& segment, const TileOptions& options) {
  TilePlan plan;
  plan.code = std::dynamic_pointer_cast<const TileCode>(segment.executable);
  if (!plan.code) throw std::invalid_argument("the executable was not loaded by a host device");
  const Space& space = segment.space;
  for (int d = 0; d < space.rank; ++d) ((space.reduced >> d) & 1 ? plan.reduced : plan.kept) *= space.sizes[d];
  plan.layout = chosen_layout(space, plan.kept, plan.reduced, options);
  if (const auto native = plan.code->native(plan.layout == Layout::rows)) plan.code = native;
  plan.scalars = segment.scalars;
  if (plan.scalars.size() < plan.code->program().scalars.size()) throw std::invalid_argument("scalars are missing");
  if (plan.kept == 0 || (plan.layout == Layout::flat && plan.kept == 0)) return plan;
  choose_tiles(plan, options);
  make_accesses(plan, segment);
  choose_direct(plan);
  lay_out_scratch(plan);
  return plan;
}

}  // namespace ae::device::host
