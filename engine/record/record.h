// How operator files record a node. Everything here is fast: no shape inference, no dispatch, no allocation but that of
// the trace.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>

#include <array>
#include <utility>

#include "engine/backend/storage.h"
#include "fusion/ops/opcode.h"
#include "fusion/plan/plan.h"

namespace ae::engine {

namespace detail {
inline constexpr uint8_t kNoDType = 0xff;
/// Our dtypes by PyTorch's numbers.
inline constexpr auto kDTypes = [] {
  std::array<uint8_t, 64> table{};
  table.fill(kNoDType);
  constexpr std::pair<c10::ScalarType, DType> kPairs[] = {
      {c10::ScalarType::Bool, DType::kBool},         {c10::ScalarType::Byte, DType::kU8},
      {c10::ScalarType::Char, DType::kI8},           {c10::ScalarType::Short, DType::kI16},
      {c10::ScalarType::Int, DType::kI32},           {c10::ScalarType::Long, DType::kI64},
      {c10::ScalarType::UInt16, DType::kU16},        {c10::ScalarType::UInt32, DType::kU32},
      {c10::ScalarType::UInt64, DType::kU64},        {c10::ScalarType::Half, DType::kF16},
      {c10::ScalarType::BFloat16, DType::kBF16},     {c10::ScalarType::Float, DType::kF32},
      {c10::ScalarType::Double, DType::kF64},        {c10::ScalarType::ComplexFloat, DType::kC64},
      {c10::ScalarType::ComplexDouble, DType::kC128}};
  for (const auto& [type, dtype] : kPairs) table[static_cast<size_t>(type)] = static_cast<uint8_t>(dtype);
  return table;
}();
[[noreturn]] DType throw_unsupported(c10::ScalarType type);
}  // namespace detail

/// Our dtype for a PyTorch scalar type. Throws TypeError for types that kernels do not have.
inline DType to_dtype(c10::ScalarType type) {
  const uint8_t dtype = detail::kDTypes[static_cast<size_t>(type)];
  if (dtype == detail::kNoDType) [[unlikely]]
    detail::throw_unsupported(type);
  return static_cast<DType>(dtype);
}
/// True for the types that fused kernels compute with (not quantised, float8, complex half…).
bool is_recordable(c10::ScalarType type);

/// An input of a pointwise or reduce node: a neuron tensor, or a number that was known when recording.
class Input {
 public:
  Input(const at::Tensor& tensor) : tensor_(&tensor) {}  // NOLINT: implicit; keeps no reference
  /// A number with the dtype in which the operator sees it.
  Input(const c10::Scalar& scalar, c10::ScalarType type);
  Input(double value, c10::ScalarType type) : Input(c10::Scalar(value), type) {}
  const at::Tensor* tensor() const { return tensor_; }
  DType dtype() const { return dtype_; }
  uint64_t word() const { return word_; }
  uint64_t imaginary_word() const { return imaginary_word_; }

 private:
  const at::Tensor* tensor_ = nullptr;
  DType dtype_ = DType::kF32;
  uint64_t word_ = 0, imaginary_word_ = 0;
};

/// Records a pointwise operator over the shape of `outputs[0]`; inputs are broadcast to it (right-aligned), outputs all
/// have that shape. A 0-dim CPU tensor among the inputs is read now and becomes a number.
/// Inputs that overlap an output other than element for element are copied first, as TensorIterator's rules ask:
/// the caller has checked with at::assert_no_partial_overlap / assert_no_internal_overlap.
void record_pointwise(fusion::Opcode opcode, c10::ScalarType common, c10::ArrayRef<Input> inputs,
                      c10::ArrayRef<at::Tensor> outputs, c10::ArrayRef<int64_t> attributes = {});

/// An operand of a flat node: a contiguous tensor, or a number.
struct FlatOperand {
  FlatOperand() = default;
  FlatOperand(const c10::TensorImpl& tensor, DType dtype) : dtype(dtype), offset(tensor.storage_offset()) {
    c10::StorageImpl* storage = tensor.unsafe_storage().unsafeGetStorageImpl();
    if (!storage->has_materializer()) [[unlikely]]
      detail::arm(storage);
    buffer = buffer_of(storage);
    if (!detail::is_ours(storage->data_ptr())) [[unlikely]]
      offset += foreign_offset(storage) / size_of(dtype);
  }
  explicit FlatOperand(const Input& number)
      : buffer(nullptr), dtype(number.dtype()), word(number.word()), imaginary_word(number.imaginary_word()) {}

  fusion::Buffer* buffer;  // null: a number
  DType dtype;
  union {
    int64_t offset;  // elements from the start of the Buffer
    uint64_t word;
  };
  uint64_t imaginary_word;  // of a complex number
};

/// The same, for operands that are known to be contiguous and of one shape (that of `size` elements) and to share
/// memory only as the same tensor.
void record_flat(fusion::Opcode opcode, DType common, int64_t size, c10::ArrayRef<FlatOperand> inputs,
                 c10::ArrayRef<FlatOperand> outputs, c10::ArrayRef<int64_t> attributes = {});

/// Records a reduction over the dimensions in `reduced` (bit d: dimension d) of a node of shape `sizes`. Inputs are
/// broadcast to `sizes`. Outputs either have shape `sizes`, or `sizes` with 1 in all reduced dimensions (keepdim), or
/// with them left out.
void record_reduce(fusion::Opcode opcode, c10::ScalarType common, c10::IntArrayRef sizes, uint32_t reduced,
                   c10::ArrayRef<Input> inputs, c10::ArrayRef<at::Tensor> outputs,
                   c10::ArrayRef<int64_t> attributes = {});

/// Makes the call for one library operator from the recorded node; shapes and attributes are all in the node.
using LibraryFactory = std::shared_ptr<const device::LibraryCall> (*)(const fusion::NodeView&);
/// Registers a library operator (static initialisation) and returns its id. `name` is shown in the report.
int register_library(const char* name, LibraryFactory factory);
const char* library_name(int id);
std::shared_ptr<const device::LibraryCall> resolve_library(const fusion::NodeView& node);

/// Records a library operator. `attributes` are part of the plan's key, `scalars` are not. A tensor that is read and
/// written stands in both lists. Undefined tensors are not allowed: leave them out and say so in an attribute.
/// `can_fail`: the call may throw for reasons that depend on data (a fence).
void record_library(int id, c10::ArrayRef<at::Tensor> inputs, c10::ArrayRef<at::Tensor> outputs,
                    c10::ArrayRef<int64_t> attributes = {}, c10::ArrayRef<double> scalars = {}, bool can_fail = false);

}  // namespace ae::engine
