#include "engine/record/record.h"

#include <c10/util/SmallVector.h>

#include <span>

#include "engine/library/precision.h"
#include "engine/runtime.h"

namespace ae::engine {

namespace {

using fusion::Buffer;
using fusion::Opcode;
using fusion::OpKind;
using fusion::Recorder;
using Geometry = c10::SmallVector<int64_t, 8>;

struct LibraryEntry {
  const char* name;
  LibraryFactory factory;
};

std::vector<LibraryEntry>& library_table() {
  static std::vector<LibraryEntry> table;
  return table;
}

void commit(Recorder::Node& node) {
  try {
    node.commit();
  } catch (...) {  // a flush that found no memory
    rethrow_for_torch();
  }
  after_record();
}

/// An access as a node sees it; scalars have no buffer.
struct Operand {
  Buffer* buffer = nullptr;
  DType dtype = DType::kF32;
  int64_t offset = 0;
  Geometry strides;
  uint64_t word = 0, imaginary_word = 0;
};

/// Elements from the start of the tensor's Buffer to its first element.
int64_t offset_of(const at::Tensor& tensor) {
  const int64_t start = storage_start(tensor);
  return start == 0 ? tensor.storage_offset()
                    : tensor.storage_offset() + start / static_cast<int64_t>(tensor.element_size());
}

/// A 0-dim CPU tensor is a number that is taken now.
Input as_number(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.dim() == 0, "Expected all tensors to be on the same device, but found at least two devices, ",
              kDeviceType, " and ", tensor.device(), "!");
  return Input(tensor.item(), tensor.scalar_type());
}

/// Strides of `tensor` broadcast to `sizes` (right-aligned).
Geometry broadcast_strides(const at::Tensor& tensor, c10::IntArrayRef sizes) {
  Geometry strides(sizes.size(), 0);
  const auto own = tensor.sizes(), from = tensor.strides();
  const size_t skip = sizes.size() - own.size();
  for (size_t d = 0; d < own.size(); ++d)
    if (own[d] != 1 || sizes[skip + d] == 1) strides[skip + d] = from[d];
  return strides;
}

/// Strides over a reduction's whole shape of a result that has `sizes`, or 1 or nothing in the reduced dimensions.
Geometry result_strides(const at::Tensor& result, c10::IntArrayRef sizes, uint32_t reduced) {
  if (result.dim() == static_cast<int64_t>(sizes.size())) return broadcast_strides(result, sizes);
  Geometry strides(sizes.size(), 0);
  int64_t next = 0;
  for (size_t d = 0; d < sizes.size(); ++d)
    if ((reduced >> d & 1) == 0) strides[d] = result.stride(next++);
  return strides;
}

Operand operand_of(const Input& input, c10::IntArrayRef sizes) {
  Operand operand;
  if (const at::Tensor* tensor = input.tensor(); tensor && tensor->device().type() == kDeviceType) {
    arm(*tensor);
    operand.buffer = buffer_of(*tensor);
    operand.dtype = to_dtype(tensor->scalar_type());
    operand.offset = offset_of(*tensor);
    operand.strides = broadcast_strides(*tensor, sizes);
  } else {
    const Input number = input.tensor() ? as_number(*input.tensor()) : input;
    operand.dtype = number.dtype();
    operand.word = number.word();
    operand.imaginary_word = number.imaginary_word();
  }
  return operand;
}

Operand operand_of(const at::Tensor& output, Geometry strides) {
  arm(output);
  return {buffer_of(output), to_dtype(output.scalar_type()), offset_of(output), std::move(strides), 0, 0};
}

/// True when an input shares memory with an output other than element for element: then it has to be copied first, or
/// the result would depend on the order in which elements are computed.
bool clashes(const Operand& input, const Operand& output, c10::IntArrayRef sizes) {
  if (input.buffer == nullptr || input.buffer != output.buffer) return false;
  bool same = input.dtype == output.dtype && input.offset == output.offset;
  int64_t input_reach = 1, output_reach = 1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return false;
    same &= sizes[d] == 1 || input.strides[d] == output.strides[d];
    input_reach += (sizes[d] - 1) * input.strides[d];
    output_reach += (sizes[d] - 1) * output.strides[d];
  }
  if (same) return false;
  const int64_t in = size_of(input.dtype), out = size_of(output.dtype);
  return input.offset * in < (output.offset + output_reach) * out &&
         output.offset * out < (input.offset + input_reach) * in;
}

void write_node(Opcode opcode, DType common, c10::IntArrayRef sizes, uint32_t reduced, c10::ArrayRef<Operand> inputs,
                c10::ArrayRef<Operand> outputs, c10::ArrayRef<int64_t> attributes) {
  Recorder::Node node(recorder(), opcode, common, static_cast<int>(sizes.size()), sizes.data(), reduced);
  fusion::NodeWriter& writer = node.writer();
  for (int64_t attribute : attributes) writer.attribute(attribute);
  for (const Operand& input : inputs) {
    if (input.buffer)
      writer.input(input.buffer, input.dtype, input.offset, input.strides.data());
    else
      writer.scalar(input.dtype, input.word, input.imaginary_word);
  }
  for (const Operand& output : outputs) {
    node.makes(*output.buffer);
    writer.output(output.buffer, output.dtype, output.offset, output.strides.data());
  }
  commit(node);
}

/// Drops the dimensions of size 1 and merges neighbours wherever all accesses allow it, for shapes of very many
/// dimensions. The last `own` dimensions stay as they are.
void merge_dimensions(Geometry& sizes, uint32_t& reduced, std::span<Operand> operands, size_t own) {
  Geometry merged;
  uint32_t flags = 0;
  size_t kept = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const bool is_own = d + own >= sizes.size();
    if (sizes[d] == 1 && !is_own) continue;
    const uint32_t flag = reduced >> d & 1;
    bool merge = !is_own && kept > 0 && (flags >> (kept - 1) & 1) == flag;
    for (const Operand& operand : operands)
      merge = merge && (!operand.buffer || operand.strides[kept - 1] == operand.strides[d] * sizes[d]);
    if (merge) {
      merged[kept - 1] *= sizes[d];
    } else {
      merged.push_back(sizes[d]);
      flags |= flag << kept++;
    }
    for (Operand& operand : operands)
      if (operand.buffer) operand.strides[kept - 1] = operand.strides[d];
  }
  TORCH_CHECK_NOT_IMPLEMENTED(kept <= static_cast<size_t>(device::kMaxRank), "neuron: operators over more than ",
                              device::kMaxRank, " dimensions that cannot be merged are not supported");
  sizes = std::move(merged);
  reduced = flags;
}

void record_operands(Opcode opcode, c10::ScalarType common, c10::IntArrayRef sizes, uint32_t reduced,
                     c10::ArrayRef<Input> inputs, c10::SmallVector<Operand, 4> outputs,
                     c10::ArrayRef<int64_t> attributes) {
  c10::SmallVector<Operand, 8> operands;
  c10::SmallVector<at::Tensor, 2> copies;
  for (const Input& input : inputs) {
    operands.push_back(operand_of(input, sizes));
    for (const Operand& output : outputs) {
      if (!clashes(operands.back(), output, sizes)) continue;
      copies.push_back(make_tensor(input.tensor()->sizes(), input.tensor()->scalar_type()));
      record_pointwise(Opcode::copy, input.tensor()->scalar_type(), {Input(*input.tensor())}, {copies.back()});
      operands.back() = operand_of(Input(copies.back()), sizes);
    }
  }
  const DType type = to_dtype(common);
  if (sizes.size() <= static_cast<size_t>(device::kMaxRank))
    return write_node(opcode, type, sizes, reduced, operands, outputs, attributes);
  Geometry merged(sizes.begin(), sizes.end());
  const size_t count = operands.size();
  operands.append(outputs.begin(), outputs.end());
  // Operators on so many dimensions that read their index read it along the last two (tril, triu).
  const size_t own = kind_of(opcode) == OpKind::indexed ? 2 : 0;
  merge_dimensions(merged, reduced, {operands.data(), operands.size()}, own);
  const c10::ArrayRef<Operand> all = operands;
  write_node(opcode, type, merged, reduced, all.slice(0, count), all.slice(count), attributes);
}

/// True when all accesses are contiguous, have the output's shape, and share memory only as the same tensor.
bool is_flat(Opcode opcode, c10::ArrayRef<Input> inputs, c10::ArrayRef<at::Tensor> outputs) {
  if (kind_of(opcode) == OpKind::indexed) return false;
  const at::Tensor& first = outputs[0];
  for (const at::Tensor& output : outputs)
    if (!output.is_contiguous()) return false;
  for (const Input& input : inputs) {
    const at::Tensor* tensor = input.tensor();
    if (!tensor) continue;
    if (tensor->device().type() != kDeviceType || tensor->sizes() != first.sizes() || !tensor->is_contiguous())
      return false;
    for (const at::Tensor& output : outputs)  // same buffer, other place: the general path looks closer
      if (tensor->unsafeGetTensorImpl() != output.unsafeGetTensorImpl() &&
          tensor->storage().unsafeGetStorageImpl() == output.storage().unsafeGetStorageImpl())
        return false;
  }
  return true;
}

FlatOperand flat(const at::Tensor& tensor) { return {*tensor.unsafeGetTensorImpl(), to_dtype(tensor.scalar_type())}; }

}  // namespace

namespace detail {
DType throw_unsupported(c10::ScalarType type) {
  TORCH_CHECK_TYPE(false, "neuron: tensors of dtype ", type, " are not supported by recorded operators");
}
}  // namespace detail

bool is_recordable(c10::ScalarType type) { return detail::kDTypes[static_cast<size_t>(type)] != detail::kNoDType; }

Input::Input(const c10::Scalar& scalar, c10::ScalarType type) : dtype_(to_dtype(type)) {
  if (is_complex(dtype_)) {
    const c10::complex<double> number = scalar.toComplexDouble();
    word_ = fusion::scalar_word(number.real());
    imaginary_word_ = fusion::scalar_word(number.imag());
  } else if (is_floating(dtype_)) {
    word_ = fusion::scalar_word(scalar.toDouble());
  } else if (dtype_ == DType::kBool) {
    word_ = fusion::scalar_word(static_cast<int64_t>(scalar.toBool()));
  } else {
    word_ = dtype_ == DType::kU64 ? scalar.toUInt64() : fusion::scalar_word(scalar.toLong());
  }
}

void record_flat(Opcode opcode, DType common, int64_t size, c10::ArrayRef<FlatOperand> inputs,
                 c10::ArrayRef<FlatOperand> outputs, c10::ArrayRef<int64_t> attributes) {
  const int64_t one = 1;
  Recorder::Node node(recorder(), opcode, common, 1, &size);
  fusion::NodeWriter& writer = node.writer();
  for (int64_t attribute : attributes) writer.attribute(attribute);
  for (const FlatOperand& input : inputs) {
    if (input.buffer)
      writer.input(input.buffer, input.dtype, input.offset, &one);
    else
      writer.scalar(input.dtype, input.word, input.imaginary_word);
  }
  for (const FlatOperand& output : outputs) {
    node.makes(*output.buffer);
    writer.output(output.buffer, output.dtype, output.offset, &one);
  }
  commit(node);
}

void record_pointwise(Opcode opcode, c10::ScalarType common, c10::ArrayRef<Input> inputs,
                      c10::ArrayRef<at::Tensor> outputs, c10::ArrayRef<int64_t> attributes) {
  if (is_flat(opcode, inputs, outputs)) {
    c10::SmallVector<FlatOperand, 8> operands;
    for (const Input& input : inputs) operands.push_back(input.tensor() ? flat(*input.tensor()) : FlatOperand(input));
    for (const at::Tensor& output : outputs) operands.push_back(flat(output));
    const c10::ArrayRef<FlatOperand> all = operands;
    return record_flat(opcode, to_dtype(common), outputs[0].numel(), all.slice(0, inputs.size()),
                       all.slice(inputs.size()), attributes);
  }
  const auto sizes = outputs[0].sizes();
  c10::SmallVector<Operand, 4> results;
  for (const at::Tensor& output : outputs) results.push_back(operand_of(output, broadcast_strides(output, sizes)));
  record_operands(opcode, common, sizes, 0, inputs, std::move(results), attributes);
}

void record_reduce(Opcode opcode, c10::ScalarType common, c10::IntArrayRef sizes, uint32_t reduced,
                   c10::ArrayRef<Input> inputs, c10::ArrayRef<at::Tensor> outputs, c10::ArrayRef<int64_t> attributes) {
  c10::SmallVector<Operand, 4> results;
  for (const at::Tensor& output : outputs)
    results.push_back(operand_of(output, result_strides(output, sizes, reduced)));
  record_operands(opcode, common, sizes, reduced, inputs, std::move(results), attributes);
}

int register_library(const char* name, LibraryFactory factory) {
  library_table().push_back({name, factory});
  return static_cast<int>(library_table().size()) - 1;
}

const char* library_name(int id) { return library_table()[static_cast<size_t>(id)].name; }

std::shared_ptr<const device::LibraryCall> resolve_library(const fusion::NodeView& node) {
  return library_table()[static_cast<size_t>(node.attributes[0])].factory(node);
}

void record_library(int id, c10::ArrayRef<at::Tensor> inputs, c10::ArrayRef<at::Tensor> outputs,
                    c10::ArrayRef<int64_t> attributes, c10::ArrayRef<double> scalars, bool can_fail) {
  c10::SmallVector<Buffer*, 8> buffers;
  for (const auto& tensors : {inputs, outputs})
    for (const at::Tensor& tensor : tensors) {
      arm(tensor);
      buffers.push_back(buffer_of(tensor));
    }
  Recorder::Node node(recorder(), Opcode::library, DType::kF32);
  fusion::NodeWriter& writer = node.writer();
  writer.attribute(id);
  writer.attribute(library::reduces_products());
  for (int64_t attribute : attributes) writer.attribute(attribute);
  writer.attribute(static_cast<int64_t>(scalars.size()));
  if (can_fail) writer.fence();
  for (double scalar : scalars) writer.library_scalar(fusion::scalar_word(scalar));
  size_t next = 0;
  for (const at::Tensor& input : inputs)
    writer.input(buffers[next++], to_dtype(input.scalar_type()), static_cast<int>(input.dim()), offset_of(input),
                 input.sizes().data(), input.strides().data());
  for (const at::Tensor& output : outputs) {
    Buffer* buffer = buffers[next++];
    node.makes(*buffer);
    writer.output(buffer, to_dtype(output.scalar_type()), static_cast<int>(output.dim()), offset_of(output),
                  output.sizes().data(), output.strides().data());
  }
  commit(node);
}

}  // namespace ae::engine
