// How operators say what they compute: each opcode has one builder function, written against this interface.
#pragma once

#include <span>

#include "fusion/ir/kernel.h"
#include "fusion/ops/opcode.h"

namespace ae::fusion {

/// A part of a complex number. Kernels know reals only: a complex operand is two of them.
enum class Part : uint8_t { real, imaginary };

/// What a builder sees of its node. Inputs and outputs are numbered in the order in which the recorder gave them;
/// an input is a tensor access or a scalar (its value is an argument of the launch).
class OpContext {
 public:
  virtual ~OpContext() = default;
  virtual Opcode opcode() const = 0;
  virtual int inputs() const = 0;
  virtual int outputs() const = 0;
  virtual int64_t attribute(int i) const = 0;  // 0 when the recorder gave none
  virtual DType input_type(int i) const = 0;   // scalars: the dtype given when recording
  virtual DType output_type(int i) const = 0;
  /// The operator's common dtype (type promotion was done when recording); the result is rounded to it.
  virtual DType common_type() const = 0;
  virtual bool is_reduced() const = 0;         // the node has reduced dimensions
  virtual Level input_level(int i) const = 0;  // kept: the access has stride 0 in all reduced dimensions
  virtual Level output_level(int i) const = 0;

  /// The input's value in its own dtype and level; of a complex one a part, of which any other has the real one only.
  virtual ValueId load_part(int i, Part part) = 0;
  ValueId load(int i) { return load_part(i, Part::real); }
  /// Stores to output i; the value must have the output's dtype and level (a scalar fits both). An output that is an
  /// input too has changed after this: load before you store.
  virtual void store_part(int i, Part part, ValueId value) = 0;
  void store(int i, ValueId value) { store_part(i, Part::real, value); }
  /// i64 value: row-major position of the element in the node's shape.
  virtual ValueId position() = 0;
  /// i64 value: index along dimension `dim` of the node's shape (negative counts from the end). Throws std::logic_error
  /// for a pointwise operator, whose node need not have the dimensions that it was called with.
  ValueId index(int dim);
  /// A constant that is part of the kernel's meaning, not an argument (0, 1, 0.5…). Same constant, same value.
  virtual ValueId constant(DType type, double value) = 0;
  /// Appends an instruction; checks nothing. `type` is the dtype of the inputs (select: of b and c), for casts that of
  /// the result. Levels: a kept operand of a full-level instruction is broadcast by `emit`.
  virtual ValueId emit(Primitive op, DType type, ValueId a, ValueId b = kNoValue, ValueId c = kNoValue) = 0;
  /// Reduces a full-level value; `op` is a reduction.
  virtual ValueId reduce(Primitive op, DType type, ValueId a) = 0;
  virtual DType type_of(ValueId value) const = 0;
  virtual Level level_of(ValueId value) const = 0;

  /// `value` converted to `type` (itself when it has it).
  ValueId cast(ValueId value, DType type);
  /// Input i converted to the common dtype and from there to its compute type.
  ValueId load_compute(int i);
  /// Rounds to the common dtype, converts to the output's dtype, and stores.
  void store_result(int i, ValueId value);

 private:
  virtual ValueId index_along(int dim) = 0;
};

/// Emits the operator's primitives. Throws std::logic_error for an opcode without builder (library operators).
void build(OpContext& context);

}  // namespace ae::fusion
