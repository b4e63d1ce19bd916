// A tile program made ready to run: registers are replaced by values that are written once, each with a buffer in the
// scratch memory, and every instruction has its inner loop resolved. Sizes play no part here.
#pragma once

#include <cstdint>
#include <vector>

#include "device/device.h"
#include "device/host/kernels.h"
#include "device/tile_program.h"

namespace ae::device::host {

/// When an instruction of a separable program runs: once per tile of kept points before anything else, for each block
/// of full-level elements, or after the reductions. Programs that are not separable run in program order.
enum class Phase : uint8_t { before, full, after };

/// Operands are *cells*: pointers that are set per tile. Cells are, in this order, the values and the scalars.
struct CodeInstr {
  enum Kind : uint8_t { element, load, store, iota, broadcast, reduce };
  Kind kind;
  Phase phase;
  Level level;   // of the elements it runs over
  uint8_t size;  // of one element of the result (store: of what is stored)
  uint16_t dst = 0, a = 0, b = 0, c = 0;
  uint16_t operand = 0;    // of the launch
  uint16_t reduction = 0;  // number among the reductions
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
  int cells() const { return static_cast<int>(values_.size() + program_.scalars.size()); }
  int scalar_cell(int scalar) const { return static_cast<int>(values_.size()) + scalar; }
  /// Time per full-level and per kept-level element, in units of an addition's.
  double full_cost() const { return full_cost_; }
  double kept_cost() const { return kept_cost_; }

 private:
  struct Source {
    bool is_scalar = false;
    uint16_t cell = 0;  // scalars: number of the scalar until all values are known
  };
  struct Draft;

  void translate(const TileInstr& instr, Draft& draft);
  void element_instr(const TileInstr& instr, Draft& draft, CodeInstr out);
  void assign_buffers();

  TileProgram program_;
  std::vector<CodeInstr> instrs_;
  std::vector<CodeValue> values_;
  std::vector<CodeBuffer> buffers_;
  std::vector<uint8_t> reductions_;
  double full_cost_ = 0, kept_cost_ = 0;
};

}  // namespace ae::device::host
