// Kernel IR: one fused kernel in SSA form over an index space (see device/tile_program.h for levels and reductions).
//
// Value i is the result of instruction i; operands are earlier values. Loads, stores and iotas name an operand of the
// kernel, scalars a scalar argument. Sizes, strides, offsets and scalars' values are arguments of a launch, never part
// of a kernel, so one kernel serves all of them.
//
// Text form (printer and parser), one instruction a line:
//   kernel (f32, f32, i64) scalars (f32) {
//     %0 = load.f32 full @0
//     %1 = load.f32 kept @1
//     %2 = broadcast.f32 full %1
//     %3 = sub.f32 full %0, %2
//     %4 = scalar.f32 $0
//     %5 = mul.f32 full %3, %4
//     %6 = reduce_sum.f32 kept %5
//     store.f32 kept @1, %6
//   }
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/dtype.h"
#include "device/primitive.h"
#include "device/tile_program.h"

namespace ae::fusion {

using device::Level;

using ValueId = int32_t;
inline constexpr ValueId kNoValue = -1;

struct Instr {
  Primitive op;
  DType type;          // dtype of the inputs (select: of b and c; load, iota, scalar, store: of the value)
  DType out;           // dtype of the result
  Level level;         // of the result (store: of the stored value); scalars say full and fit both levels
  int32_t index = -1;  // load, store, iota: operand; scalar: scalar argument
  ValueId a = kNoValue, b = kNoValue, c = kNoValue;
  bool operator==(const Instr&) const = default;
};

struct Kernel {
  std::vector<DType> operands;  // iota operands say kI64
  std::vector<DType> scalars;
  std::vector<Instr> instrs;
  bool operator==(const Kernel&) const = default;
};

/// Dtype of a primitive's result when its inputs (select: b and c; load, iota, scalar: the value) have dtype `type`.
/// Casts are the exception: their result has the dtype that they convert to.
constexpr DType result_type(Primitive op, DType type) {
  const bool tests =
      is_comparison(op) || op == Primitive::logical_not || op == Primitive::is_nan || op == Primitive::is_inf;
  return tests ? DType::kBool : type;
}

/// Whether a primitive is defined on inputs of dtype `type` (casts: `type` is either side of the conversion).
bool is_defined(Primitive op, DType type);

/// Hash of everything that operator== compares.
uint64_t hash_of(const Kernel& kernel);

/// Checks types, levels, order and operand use; returns an empty text when the kernel is well formed, else what is
/// wrong and in which instruction.
std::string verify(const Kernel& kernel);

std::string print(const Kernel& kernel);

/// Parses `print`'s form. Throws std::invalid_argument with line and reason.
Kernel parse(const std::string& text);

/// Operand of an interpreted kernel: host memory of element 0 of the space, and how it is seen.
struct InterpreterOperand {
  void* base = nullptr;  // null for iota operands
  device::OperandView view;
};

/// Runs a kernel element by element, obviously and slowly: this defines what kernels mean. Scalars as in tile programs.
void interpret(const Kernel& kernel, const device::Space& space, const std::vector<InterpreterOperand>& operands,
               const std::vector<uint64_t>& scalars);

}  // namespace ae::fusion
