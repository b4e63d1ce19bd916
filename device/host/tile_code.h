// A tile program made ready to run: registers are replaced by values that are written once, each with a buffer in the
// scratch memory, and every instruction has its inner loop resolved. Sizes play no part here.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "device/device.h"
#include "device/host/kernels.h"
#include "device/host/native/object_code.h"
#include "device/tile_program.h"

namespace ae::device::host {

/// When an instruction of a separable program runs: once per tile of kept points before anything else, for each block
/// of full-level elements, or after the reductions. Programs that are not separable run in program order.
enum class Phase : uint8_t { before, full, after };

/// Operands are *cells*: pointers that are set per tile. Cells are, in this order, the values and the scalars.
struct CodeInstr {
  enum Kind : uint8_t { element, load, store, iota, broadcast, reduce, compiled };
  Kind kind;
  Primitive op;
  DType type, out;  // as in TileInstr
  Phase phase;
  Level level;   // of the elements it runs over
  uint8_t size;  // of one element of the result (store: of what is stored)
  uint16_t dst = 0, a = 0, b = 0, c = 0;
  uint16_t operand = 0;    // of the launch
  uint16_t reduction = 0;  // number among the reductions
  uint16_t run = 0;        // number among the native runs
  ElementKernel kernel = nullptr;
  const ReduceKernels* reducer = nullptr;
};

struct CodeValue {
  Level level;
  uint8_t size;
  uint16_t buffer;
  int32_t definition;  // instruction that makes it
  int32_t last_use;    // instruction that reads it last; `definition` when none does
};

/// A piece of scratch memory that holds a value's block; values of one size take turns.
struct CodeBuffer {
  Level level;
  uint8_t size;
};

/// A run of element-wise instructions compiled to machine code.
struct CodeRun {
  native::RunFunction function;
  bool by_row;                          // has operands per row or column of a block; else a block is one long row
  std::vector<uint16_t> reads, writes;  // cells
};

class TileCode final : public Executable {
 public:
  /// Throws std::invalid_argument when the program makes no sense.
  explicit TileCode(const TileProgram& program);

  const TileProgram& program() const { return program_; }
  const std::vector<CodeInstr>& instrs() const { return instrs_; }
  const std::vector<CodeValue>& values() const { return values_; }
  const std::vector<CodeBuffer>& buffers() const { return buffers_; }
  bool separable() const { return program_.separable; }
  /// Element sizes of the reductions' results.
  const std::vector<uint8_t>& reductions() const { return reductions_; }
  const std::vector<CodeRun>& runs() const { return runs_; }
  int cells() const { return static_cast<int>(values_.size() + program_.scalars.size()); }
  int scalar_cell(int scalar) const { return static_cast<int>(values_.size()) + scalar; }
  /// Time per full-level and per kept-level element, in units of an addition's.
  double full_cost() const { return full_cost_; }
  double kept_cost() const { return kept_cost_; }

  /// The same code with native runs, for blocks whose rows are kept points (`rows`) or not; null until it has been
  /// made.
  std::shared_ptr<const TileCode> native(bool rows) const {
    return native_ready_[rows].load(std::memory_order_acquire) ? native_[rows] : nullptr;
  }
  /// Once for each layout, from one thread at a time. `code` may be null: there is nothing to compile.
  void set_native(bool rows, std::shared_ptr<const TileCode> code) const {
    native_[rows] = std::move(code);
    native_ready_[rows].store(true, std::memory_order_release);
  }
  bool native_ready(bool rows) const { return native_ready_[rows].load(std::memory_order_acquire); }

 private:
  friend class RunPlanner;
  TileCode() = default;
  struct Source {
    bool is_scalar = false;
    uint16_t cell = 0;  // scalars: number of the scalar until all values are known
  };
  struct Draft;

  void translate(const TileInstr& instr, Draft& draft);
  void element_instr(const TileInstr& instr, Draft& draft, CodeInstr out);
  void find_last_uses();
  void assign_buffers();

  TileProgram program_;
  std::vector<CodeInstr> instrs_;
  std::vector<CodeValue> values_;
  std::vector<CodeBuffer> buffers_;
  std::vector<uint8_t> reductions_;
  double full_cost_ = 0, kept_cost_ = 0;
  std::vector<CodeRun> runs_;
  std::shared_ptr<const native::ObjectCode> run_code_;
  mutable std::shared_ptr<const TileCode> native_[2];
  mutable std::atomic<bool> native_ready_[2] = {false, false};
};

/// Calls f with each cell that an instruction reads.
template <class F>
void for_reads(const TileCode& code, const CodeInstr& instr, F f) {
  if (instr.kind == CodeInstr::load || instr.kind == CodeInstr::iota) return;
  if (instr.kind == CodeInstr::compiled) {
    for (const uint16_t cell : code.runs()[instr.run].reads) f(cell);
    return;
  }
  for (const uint16_t cell : {instr.a, instr.b, instr.c}) f(cell);
}

}  // namespace ae::device::host
