// What a pointwise or reducing operator will be: shape, dtype, strides and target of its result, by PyTorch's rules
// (TensorIterator's, without asking for addresses). A fast path for operands of one shape and dtype, one for the rest.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>
#include <c10/util/SmallVector.h>

#include <initializer_list>
#include <optional>

#include "engine/record/record.h"

namespace ae::engine {

using fusion::Opcode;

// Sets of dtypes, one bit each.
constexpr uint64_t type_bit(at::ScalarType type) { return uint64_t{1} << static_cast<int>(type); }
inline constexpr uint64_t kFloats =
    type_bit(at::kFloat) | type_bit(at::kDouble) | type_bit(at::kHalf) | type_bit(at::kBFloat16);
inline constexpr uint64_t kInts =
    type_bit(at::kByte) | type_bit(at::kChar) | type_bit(at::kShort) | type_bit(at::kInt) | type_bit(at::kLong);
inline constexpr uint64_t kBools = type_bit(at::kBool);
inline constexpr uint64_t kComplexes = type_bit(at::kComplexFloat) | type_bit(at::kComplexDouble);
constexpr bool contains(uint64_t types, at::ScalarType type) { return types >> static_cast<int>(type) & 1; }

/// The result's dtype, and the common dtypes that are recorded (others go to the fallback).
struct Rule {
  enum Result : uint8_t {
    kCommon,  // the operands' common dtype
    kFloat,   // the same, the default floating dtype for integers
    kTruth,   // bool; operands meet in their common dtype
    kReal,    // the type of the parts of the operands' common dtype, if that is complex
  };
  Result result;
  uint64_t types;
};
inline constexpr Rule kArithmetic{Rule::kCommon, kFloats | kInts};
inline constexpr Rule kAnyType{Rule::kCommon, kFloats | kInts | kBools};
inline constexpr Rule kWhole{Rule::kCommon, kInts | kBools};
inline constexpr Rule kFloatOnly{Rule::kCommon, kFloats};
inline constexpr Rule kToFloat{Rule::kFloat, kFloats};
inline constexpr Rule kCompare{Rule::kTruth, kFloats | kInts | kBools};
// The same with complex numbers.
inline constexpr Rule kField{Rule::kCommon, kFloats | kInts | kComplexes};
inline constexpr Rule kAnyValue{Rule::kCommon, kFloats | kInts | kBools | kComplexes};
inline constexpr Rule kFloatField{Rule::kCommon, kFloats | kComplexes};
inline constexpr Rule kToFloatField{Rule::kFloat, kFloats | kComplexes};
inline constexpr Rule kEquality{Rule::kTruth, kFloats | kInts | kBools | kComplexes};
inline constexpr Rule kMagnitude{Rule::kReal, kFloats | kInts | kComplexes};

/// An operand. Keeps references only.
class Arg {
 public:
  enum Kind : uint8_t {
    kTensor,     // takes part in type promotion
    kCondition,  // a tensor whose dtype does not matter (a mask)
    kNumber,     // a number that takes part in type promotion, and is an operand to TensorIterator
    kPromoting,  // a number that takes part in type promotion, but is no operand (bounds of clamp, exponents)
    kParameter,  // a number that does not (alpha, eps, …)
  };
  Arg(const at::Tensor& tensor) : kind(kTensor), tensor_(&tensor) {}  // NOLINT: implicit
  static Arg condition(const at::Tensor& tensor) {
    Arg arg(tensor);
    arg.kind = kCondition;
    return arg;
  }
  static Arg number(const at::Scalar& scalar) { return {kNumber, scalar}; }
  static Arg promoting(const at::Scalar& scalar) { return {kPromoting, scalar}; }
  static Arg parameter(const at::Scalar& scalar) { return {kParameter, scalar}; }

  bool is_tensor() const { return kind <= kCondition; }
  const at::Tensor& tensor() const { return *tensor_; }
  const at::Scalar& scalar() const { return *scalar_; }
  Kind kind;

 private:
  Arg(Kind kind, const at::Scalar& scalar) : kind(kind), scalar_(&scalar) {}
  union {
    const at::Tensor* tensor_;
    const at::Scalar* scalar_;
  };
};

/// One call of an operator in its functional, in-place or out= form.
class Call {
 public:
  Call() = default;
  static Call in_place(const at::Tensor& self) { return {self, true}; }
  static Call out(const at::Tensor& target) { return {target, false}; }

  /// Records a pointwise operator; its result is in `result` (functional form) or the target. False: nothing was
  /// recorded or changed, the case is one for the fallback. Throws PyTorch's error for operands on several devices.
  bool record(Opcode opcode, Rule rule, std::initializer_list<Arg> args, c10::ArrayRef<int64_t> attributes = {});

  /// The functional form's result is contiguous, whatever the operands are.
  void make_contiguous() { contiguous_ = true; }
  bool is_functional() const { return target_ == nullptr; }
  bool is_in_place() const { return in_place_; }
  const at::Tensor& target() const { return *target_; }
  at::Tensor result;

 private:
  Call(const at::Tensor& target, bool in_place) : target_(&target), in_place_(in_place) {}
  bool record_fast(Opcode opcode, Rule rule, std::initializer_list<Arg> args, c10::ArrayRef<int64_t> attributes);
  bool record_general(Opcode opcode, Rule rule, std::initializer_list<Arg> args, c10::ArrayRef<int64_t> attributes);

  const at::Tensor* target_ = nullptr;
  bool in_place_ = false;
  bool contiguous_ = false;
};

inline bool is_neuron(const at::Tensor& tensor) { return tensor.device().type() == kDeviceType; }
inline bool is_cpu_scalar(const at::Tensor& tensor) { return tensor.dim() == 0 && tensor.is_cpu(); }
/// The value of a 0-dim CPU tensor.
at::Scalar read_cpu_scalar(const at::Tensor& tensor);
/// The number as an operator of this common dtype takes it: integers wrap, half types keep fp32.
Input number_input(const at::Scalar& scalar, at::ScalarType common);
/// False if an integral `type` cannot hold the integral `scalar`.
bool fits(const at::Scalar& scalar, at::ScalarType type);
/// fp32 for half types, the type of a complex type's parts.
inline at::ScalarType compute_scalar_type(at::ScalarType type) {
  return type == at::kHalf || type == at::kBFloat16 ? at::kFloat : c10::toRealValueType(type);
}

/// Strides of a new result of this shape, as TensorIterator gives them.
at::DimVector result_strides(at::IntArrayRef shape, std::initializer_list<Arg> args, at::ScalarType common);

/// Throws PyTorch's "Expected all tensors to be on the same device".
[[noreturn]] void throw_devices(const at::Tensor& other);
/// Gives an out= tensor a shape, warning as PyTorch does; `strides` empty: contiguous.
void resize_out(const at::Tensor& target, at::IntArrayRef sizes, at::IntArrayRef strides = {});
/// Checks a target against the inputs as TensorIterator does.
void check_overlap(const at::Tensor& target, std::initializer_list<Arg> args);

}  // namespace ae::engine
