// How operator files record a node. Everything here is fast: no shape inference, no dispatch, no allocation but that of
// the trace.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>

#include "engine/backend/storage.h"
#include "fusion/ops/opcode.h"
#include "fusion/plan/plan.h"

namespace ae::engine {

/// Our dtype for a PyTorch scalar type. Throws TypeError-like c10::Error for types that kernels do not have.
DType to_dtype(c10::ScalarType type);
/// True for the types that fused kernels compute with (not complex, quantised, float8…).
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

 private:
  const at::Tensor* tensor_ = nullptr;
  DType dtype_ = DType::kF32;
  uint64_t word_ = 0;
};

/// Records a pointwise operator over the shape of `outputs[0]`; inputs are broadcast to it (right-aligned), outputs all
/// have that shape. A 0-dim CPU tensor among the inputs is read now and becomes a number.
/// Inputs that overlap an output other than element for element are copied first, as TensorIterator's rules ask:
/// the caller has checked with at::assert_no_partial_overlap / assert_no_internal_overlap.
void record_pointwise(fusion::Opcode opcode, c10::ScalarType common, c10::ArrayRef<Input> inputs,
                      c10::ArrayRef<at::Tensor> outputs, c10::ArrayRef<int64_t> attributes = {});

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
