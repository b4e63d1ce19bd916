// What the native tier compiles: a run, which is a piece of straight-line element-wise code of a tile program, as one
// loop that keeps everything in registers which nobody else reads.
#pragma once

#include <cstdint>
#include <vector>

#include "device/dtype.h"
#include "device/primitive.h"

namespace ae::device::host::native {

/// A value that a run reads through the machine's table of cells.
struct RunInput {
  enum Kind : uint8_t {
    block,       // an element per element of the block
    scalar,      // the same for all elements
    per_row,     // an element per row of the block
    per_column,  // an element per column
  };
  uint16_t cell;
  DType type;
  Kind kind;
};

/// One primitive; operands are numbers of values: the run's inputs, then the results of its operations.
struct RunOp {
  Primitive op;
  DType type, out;
  uint16_t a, b, c;
};

struct RunOutput {
  uint16_t cell;
  uint16_t value;
};

struct Run {
  std::vector<RunInput> inputs;
  std::vector<RunOp> ops;
  std::vector<RunOutput> outputs;
};

/// Runs over a block of `rows` rows of `groups` groups of 16 elements each, which follow each other without gaps. All
/// inputs of a group are read before its outputs are written.
using RunFunction = void (*)(void* const* cells, int64_t rows, int64_t groups);

}  // namespace ae::device::host::native
