#include "device/host/tile_machine.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "device/math/half.h"

namespace ae::device::host {
namespace {

/// Memory of a thread for buffers and such; grows, is never given back.
class Scratch {
 public:
  ~Scratch() { operator delete(memory_, std::align_val_t(4096)); }
  std::byte* get(int64_t bytes) {
    if (bytes > size_) {
      operator delete(memory_, std::align_val_t(4096));
      memory_ = nullptr;
      size_ = 0;
      memory_ = static_cast<std::byte*>(operator new(bytes, std::align_val_t(4096)));
      std::memset(memory_, 0, bytes);
      size_ = bytes;
    }
    return memory_;
  }

 private:
  std::byte* memory_ = nullptr;
  int64_t size_ = 0;
};
thread_local Scratch t_scratch;

constexpr int64_t kScalarBytes = 64;

/// Writes a scalar in its dtype, repeated over 64 bytes.
void splat(DType type, uint64_t word, std::byte* to) {
  double number;
  std::memcpy(&number, &word, 8);
  uint64_t element = word;
  const int64_t size = size_of(type);
  if (type == DType::kF32) {
    const float narrow = static_cast<float>(number);
    std::memcpy(&element, &narrow, 4);
  } else if (type == DType::kF16 || type == DType::kBF16) {
    const float narrow = static_cast<float>(number);
    element = type == DType::kF16 ? math::to_f16(narrow) : math::to_bf16(narrow);
  } else if (type == DType::kBool) {
    element = word != 0;
  }
  for (int64_t i = 0; i < kScalarBytes; i += size) std::memcpy(to + i, &element, size);
}

template <class T>
void broadcast_typed(Layout layout, const void* from, const Grid& grid, void* reg) {
  const T* x = static_cast<const T*>(from);
  T* out = static_cast<T*>(reg);
  for (int64_t o = 0; o < grid.outer_n; ++o, out += grid.pitch) {
    if (layout == Layout::rows)
      std::fill_n(out, grid.pitch, x[o]);
    else
      std::memcpy(out, x, grid.pitch * sizeof(T));
  }
}

void broadcast(Layout layout, int size, const void* from, const Grid& grid, void* reg) {
  switch (size) {
    case 1: return broadcast_typed<uint8_t>(layout, from, grid, reg);
    case 2: return broadcast_typed<uint16_t>(layout, from, grid, reg);
    case 4: return broadcast_typed<uint32_t>(layout, from, grid, reg);
    default: return broadcast_typed<uint64_t>(layout, from, grid, reg);
  }
}

/// One task: a plan with the addresses of a launch, on one thread.
class Machine {
 public:
  Machine(const TilePlan& plan, void* const* addresses, const uint64_t* scalars, std::byte* shared)
      : plan_(plan), code_(*plan.code), instrs_(code_.instrs().data()), count_(code_.instrs().size()), shared_(shared) {
    const size_t cells = code_.cells(), scalar_count = code_.program().scalars.size();
    const int64_t table_bytes = padded(static_cast<int64_t>((cells + count_) * sizeof(void*)));
    const int64_t scalar_at = (table_bytes + 63) / 64 * 64;
    const int64_t buffers_at = scalar_at + static_cast<int64_t>(scalar_count) * kScalarBytes;
    std::byte* memory = t_scratch.get(buffers_at + plan.scratch_bytes);
    cells_ = reinterpret_cast<void**>(memory);
    bases_ = cells_ + cells;
    buffers_ = memory + buffers_at;
    for (size_t s = 0; s < scalar_count; ++s) {
      std::byte* at = memory + scalar_at + s * kScalarBytes;
      splat(code_.program().scalars[s], scalars[plan.scalars[s]], at);
      cells_[code_.scalar_cell(static_cast<int>(s))] = at;
    }
    const CodeValue* values = code_.values().data();
    for (size_t v = 0; v < code_.values().size(); ++v) cells_[v] = buffers_ + plan.buffer_offsets[values[v].buffer];
    for (size_t i = 0; i < count_; ++i) {
      const Access& access = plan.access(i);
      bases_[i] = access.slot < 0 ? nullptr : static_cast<char*>(addresses[access.slot]) + access.offset * access.size;
    }
  }

  void run(int64_t tile) {
    if (plan_.by_phase) return run_chunks(tile / plan_.splits, tile % plan_.splits);
    const int64_t kept0 = tile * plan_.tile_kept;
    const int64_t kept_n = std::min(plan_.tile_kept, plan_.kept - kept0);
    set_kept(kept0, kept_n);
    if (plan_.layout == Layout::flat)
      set_full(kept_);
    else
      set_block(kept0, kept_n, 0, plan_.reduced);
    for (size_t i = 0; i < count_; ++i) execute(i);
  }

  /// The end of a split kept tile: what depends on reductions.
  void finish(int64_t kept_tile) {
    const int64_t kept0 = kept_tile * plan_.tile_kept;
    set_kept(kept0, std::min(plan_.tile_kept, plan_.kept - kept0));
    run_phase(Phase::before);
    gather_partials(kept0);
    run_phase(Phase::after);
  }

 private:
  void set_kept(int64_t kept0, int64_t kept_n) {
    kept_ = {0, 1, kept0, kept_n, padded(kept_n)};
    kept_groups_ = kept_.pitch / kGroup;
  }

  void set_block(int64_t kept0, int64_t kept_n, int64_t reduced0, int64_t reduced_n) {
    set_full(plan_.layout == Layout::rows ? Grid{kept0, kept_n, reduced0, reduced_n, padded(reduced_n)}
                                          : Grid{reduced0, reduced_n, kept0, kept_n, padded(kept_n)});
  }

  /// Starts a block of full-level elements: values that are stored are computed in place where that is possible.
  void set_full(const Grid& grid) {
    full_ = grid;
    full_groups_ = grid.outer_n * grid.pitch / kGroup;
    for (const uint16_t i : plan_.direct_stores) {
      const CodeInstr& instr = instrs_[i];
      void* memory = plan_.access(i).direct(bases_[i], full_);
      cells_[instr.a] = memory ? memory : buffer_of(instr.a);
    }
  }

  void* buffer_of(uint16_t value) const { return buffers_ + plan_.buffer_offsets[code_.values()[value].buffer]; }
  bool at_full(const CodeInstr& instr) const { return instr.level == Level::full || plan_.layout == Layout::flat; }

  void run_phase(Phase phase) {
    for (size_t i = 0; i < count_; ++i) {
      if (instrs_[i].phase == phase) execute(i);
    }
  }

  void execute(size_t i) {
    const CodeInstr& instr = instrs_[i];
    if (instr.kind == CodeInstr::element) {
      instr.kernel(cells_[instr.dst], cells_[instr.a], cells_[instr.b], cells_[instr.c],
                   at_full(instr) ? full_groups_ : kept_groups_);
      return;
    }
    const Grid& grid = at_full(instr) ? full_ : kept_;
    switch (instr.kind) {
      case CodeInstr::load: {
        const Access& access = plan_.access(i);
        void* memory = plan_.direct[i] ? access.direct(bases_[i], grid) : nullptr;
        if (!memory && plan_.only_reduced[i]) memory = access.rows(bases_[i], grid, plan_.layout == Layout::columns);
        cells_[instr.dst] = memory ? memory : buffer_of(instr.dst);
        if (!memory) load_grid(access, bases_[i], grid, cells_[instr.dst]);
        break;
      }
      case CodeInstr::store: {
        const Access& access = plan_.access(i);
        if (plan_.direct[i] && cells_[instr.a] != buffer_of(instr.a)) break;  // it is there already
        store_grid(access, bases_[i], grid, cells_[instr.a]);
        break;
      }
      case CodeInstr::iota: iota_grid(plan_.access(i), grid, static_cast<int64_t*>(cells_[instr.dst])); break;
      case CodeInstr::compiled: {
        const CodeRun& run = code_.runs()[instr.run];
        const int64_t groups = full_.pitch / kGroup;
        run.by_row ? run.function(cells_, full_.outer_n, groups) : run.function(cells_, 1, full_.outer_n * groups);
        break;
      }
      case CodeInstr::broadcast: broadcast(plan_.layout, instr.size, cells_[instr.a], grid, cells_[instr.dst]); break;
      default: reduce(instr);
    }
  }

  void reduce(const CodeInstr& instr) {
    const void* x = cells_[instr.a];
    const int r = instr.reduction;
    const int64_t x_pitch = pitch_of(instr.a);
    if (plan_.layout == Layout::rows) {
      void* to = cells_[instr.dst];
      int64_t pitch = 1;
      if (plan_.chunks > 1) {
        to = partial(r, instr.size, kept_.inner0, chunk_);
        pitch = plan_.chunks;
      }
      instr.reducer->rows(to, pitch, x, full_.outer_n, full_.inner_n, x_pitch);
    } else if (plan_.by_phase) {
      instr.reducer->accumulate(accumulator(r), x, full_.outer_n, full_.pitch, x_pitch);
    } else {
      instr.reducer->columns(cells_[instr.dst], x, full_.outer_n, full_.pitch, x_pitch);
    }
  }

  /// Distance between the rows of a value that is reduced; it may lie in an operand's memory.
  int64_t pitch_of(uint16_t cell) const {
    const int32_t maker = code_.values()[cell].definition;
    const bool in_memory = plan_.only_reduced[maker] && cells_[cell] != buffer_of(cell);
    return in_memory && full_.outer_n > 1 ? plan_.access(maker).outer.strides[0] : full_.pitch;
  }

  std::byte* accumulator(int reduction) const { return buffers_ + plan_.accumulator_offsets[reduction]; }

  /// Where the partial result of a chunk lies for the first kept point of the tile. Rows: [kept][chunk]; columns:
  /// [chunk][kept].
  std::byte* partial(int reduction, int size, int64_t kept0, int64_t chunk) const {
    const bool shared = plan_.splits > 1;
    const int64_t kept = shared ? kept0 : 0;
    std::byte* base = shared ? shared_ + plan_.shared_offsets[reduction] : buffers_ + plan_.partial_offsets[reduction];
    return base + size * (plan_.layout == Layout::rows ? kept * plan_.chunks + chunk : chunk * partial_pitch() + kept);
  }
  int64_t partial_pitch() const { return padded(plan_.splits > 1 ? plan_.kept : plan_.tile_kept); }

  void run_chunks(int64_t kept_tile, int64_t split) {
    const int64_t kept0 = kept_tile * plan_.tile_kept;
    const int64_t kept_n = std::min(plan_.tile_kept, plan_.kept - kept0);
    set_kept(kept0, kept_n);
    run_phase(Phase::before);
    const int64_t last_chunk = std::min(plan_.chunks, (split + 1) * plan_.chunks_per_split);
    for (chunk_ = split * plan_.chunks_per_split; chunk_ < last_chunk; ++chunk_) run_chunk(kept0, kept_n);
    if (plan_.splits > 1) return;
    if (plan_.chunks > 1) gather_partials(kept0);
    run_phase(Phase::after);
  }

  void run_chunk(int64_t kept0, int64_t kept_n) {
    const int64_t first = chunk_ * kReductionChunk;
    const int64_t last = std::min<int64_t>(plan_.reduced, first + kReductionChunk);
    if (plan_.layout == Layout::rows) {
      set_block(kept0, kept_n, first, last - first);
      run_phase(Phase::full);
      return;
    }
    for_reductions([&](const CodeInstr& instr) { instr.reducer->start(accumulator(instr.reduction), kept_.pitch); });
    for (int64_t at = first; at < last; at += plan_.block_reduced) {
      set_block(kept0, kept_n, at, std::min(plan_.block_reduced, last - at));
      run_phase(Phase::full);
    }
    for_reductions([&](const CodeInstr& instr) {
      void* to = plan_.chunks > 1 ? partial(instr.reduction, instr.size, kept0, chunk_) : cells_[instr.dst];
      instr.reducer->finish(to, accumulator(instr.reduction), kept_.pitch);
    });
  }

  void gather_partials(int64_t kept0) {
    for_reductions([&](const CodeInstr& instr) {
      const std::byte* from = partial(instr.reduction, instr.size, kept0, 0);
      if (plan_.layout == Layout::rows) {
        instr.reducer->rows(cells_[instr.dst], 1, from, kept_.inner_n, plan_.chunks, plan_.chunks);
      } else {
        instr.reducer->columns(cells_[instr.dst], from, plan_.chunks, kept_.pitch, partial_pitch());
      }
    });
  }

  template <class F>
  void for_reductions(F f) {
    for (size_t i = 0; i < count_; ++i) {
      if (instrs_[i].kind == CodeInstr::reduce) f(instrs_[i]);
    }
  }

  const TilePlan& plan_;
  const TileCode& code_;
  const CodeInstr* instrs_;
  const size_t count_;
  std::byte* shared_;
  std::byte* buffers_ = nullptr;
  void** cells_ = nullptr;  // per cell
  void** bases_ = nullptr;  // per instruction: where its operand begins
  Grid full_, kept_;
  int64_t full_groups_ = 0, kept_groups_ = 0;
  int64_t chunk_ = 0;
};

}  // namespace

void run_tiles(const TilePlan& plan, int64_t first, int64_t last, void* const* addresses, const uint64_t* scalars,
               std::byte* shared) {
  Machine machine(plan, addresses, scalars, shared);
  for (int64_t tile = first; tile < last; ++tile) machine.run(tile);
}

void finish_tiles(const TilePlan& plan, void* const* addresses, const uint64_t* scalars, std::byte* shared) {
  if (plan.splits <= 1) return;
  Machine machine(plan, addresses, scalars, shared);
  for (int64_t tile = 0; tile < plan.kept_tiles(); ++tile) machine.finish(tile);
}

}  // namespace ae::device::host
