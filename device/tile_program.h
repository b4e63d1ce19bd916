// A tile program: one fused kernel as straight-line code over registers that each hold a block of elements.
//
// Index space. A launch runs a program over a Space: dimensions in row-major order, each either *kept* or *reduced*.
// A *full-level* value has one element per point of the space; a *kept-level* value has one per combination of kept
// indices. Reductions take full level to kept level, `broadcast` goes back. Without reduced dimensions there is no
// reduction and every value is full level.
//
// Canonical order of a reduction (part of its meaning, the same for every layout, tile size and number of threads).
// The elements x[0..n) of one kept point, in row-major order of the reduced dimensions, are cut into chunks of 1,024.
// In a chunk, lane l of 16 starts as the reduction's identity and takes x[l], x[l+16], x[l+32]… in order; then lanes
// are combined as a tree: lane l with lane l+8, then l+4, l+2, l+1. The chunks' results are reduced again by the same
// rule until one is left. (n <= 1024: one chunk. n == 0: the identity.)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/dtype.h"
#include "device/primitive.h"

namespace ae::device {

inline constexpr int kReductionLanes = 16;
inline constexpr int kReductionChunk = 1024;
inline constexpr int kMaxRank = 12;

enum class Level : uint8_t { full, kept };

/// A register holds a block of values. Programs reuse registers, so one register can hold values of several dtypes, but
/// always of one element size and one level.
struct TileRegister {
  Level level;
  uint8_t element_size;
  bool operator==(const TileRegister&) const = default;
};

/// Where an instruction's input comes from: a register, or a scalar of the launch (the same for all elements).
struct TileSource {
  enum Kind : uint8_t { none, reg, scalar } kind = none;
  uint16_t index = 0;
  bool operator==(const TileSource&) const = default;
};

struct TileInstr {
  Primitive op;
  DType type;        // dtype of the inputs (select: of b and c; load, iota, scalar: of the result)
  DType out;         // dtype of the result
  Level level;       // level at which it runs: that of the result (reductions: full; store: of what is stored)
  uint16_t dst;      // register of the result (not for store)
  uint16_t operand;  // load, store, iota: index of the launch's operand
  TileSource a, b, c;
  bool operator==(const TileInstr&) const = default;
};

/// Stores come after every instruction that reads the same memory in the program's order; a program is executed so that
/// for each element all loads that precede a store have been done when the store is done.
struct TileProgram {
  std::vector<TileRegister> registers;
  std::vector<TileInstr> instrs;
  std::vector<DType> operands;  // dtype of each operand; iota operands say kI64
  std::vector<DType> scalars;   // dtype of each scalar
  /// No full-level instruction depends on a reduction's result: a launch may then cut the reduced dimensions into
  /// chunks, run full-level instructions once per chunk, and kept-level ones at the end.
  bool separable = true;
  std::string name;  // for reports: what it computes, e.g. "mul add gelu"
  bool operator==(const TileProgram&) const = default;
};

/// The index space of one launch. Dimensions are row-major; size-1 dimensions are left out; rank 0 is one point.
struct Space {
  int rank = 0;
  uint32_t reduced = 0;  // bit d: dimension d is reduced
  int64_t sizes[kMaxRank] = {};
};

/// How a launch's operand is seen in its space, in elements (not bytes). Kept-level operands have stride 0 in reduced
/// dimensions.
struct OperandView {
  int64_t offset = 0;
  int64_t strides[kMaxRank] = {};
};

}  // namespace ae::device
