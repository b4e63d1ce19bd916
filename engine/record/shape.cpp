#include "engine/record/shape.h"

#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TypeProperties.h>
#include <c10/util/strides.h>

#include <algorithm>
#include <array>
#include <limits>

namespace ae::engine {
namespace {

constexpr size_t kMaxArgs = 8;
using Inputs = c10::SmallVector<Input, kMaxArgs>;

/// A number of this kind does not raise the dtype of a tensor.
bool keeps_type(const at::Scalar& scalar, at::ScalarType type) {
  if (contains(kComplexes, type)) return true;
  if (scalar.isComplex()) return false;
  if (contains(kFloats, type)) return true;
  return type == at::kBool ? scalar.isBoolean() : scalar.isIntegral(/*includeBool=*/true);
}

/// A number without a say about the dtype is one that PyTorch takes there.
bool is_valid_parameter(const at::Scalar& scalar, at::ScalarType common) {
  return !scalar.isComplex() || contains(kComplexes, common);
}

at::ScalarType result_type(Rule rule, at::ScalarType common) {
  switch (rule.result) {
    case Rule::kTruth: return at::kBool;
    case Rule::kReal: return c10::toRealValueType(common);
    default: return common;
  }
}

bool is_wrapped_number(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->is_wrapped_number() && is_cpu_scalar(tensor);
}

/// What all tensors of a fast call have in common.
struct Common {
  const c10::TensorImpl* shape = nullptr;
  at::ScalarType type = at::ScalarType::Undefined;
};

/// True if also the strides of dimensions of size 1 are those of a new tensor. A number beside a tensor makes
/// TensorIterator keep the tensor's strides, whatever they are.
bool has_plain_strides(const c10::TensorImpl& impl) {
  const auto sizes = impl.sizes(), strides = impl.strides();
  int64_t next = 1;
  for (size_t d = sizes.size(); d-- > 0; next *= sizes[d])
    if (strides[d] != next) return false;
  return next != 0;
}

/// False unless all tensors are contiguous, of one shape and dtype (numbers aside).
bool find_common(std::initializer_list<Arg> args, Common& common) {
  bool numbers = false;
  for (const Arg& arg : args) {
    if (!arg.is_tensor()) {
      numbers = numbers || arg.kind == Arg::kNumber;
      continue;
    }
    const c10::TensorImpl* impl = arg.tensor().unsafeGetTensorImpl();
    if (impl->device_type() != kDeviceType) {
      if (arg.kind != Arg::kTensor || !is_wrapped_number(arg.tensor())) return false;
      numbers = true;
      continue;
    }
    if (!impl->is_contiguous()) return false;
    if (!common.shape) {
      common.shape = impl;
    } else if (!impl->sizes().equals(common.shape->sizes())) {
      return false;
    }
    if (arg.kind == Arg::kCondition) {
      if (impl->dtype() != caffe2::TypeMeta::Make<bool>()) return false;
      continue;
    }
    const at::ScalarType type = c10::typeMetaToScalarType(impl->dtype());
    if (common.type == at::ScalarType::Undefined) {
      common.type = type;
    } else if (type != common.type) {
      return false;
    }
  }
  return common.type != at::ScalarType::Undefined && (!numbers || has_plain_strides(*common.shape));
}

/// The inputs of a fast call; false where a number would raise the common dtype.
bool fast_inputs(std::initializer_list<Arg> args, at::ScalarType type, FlatOperand* inputs) {
  const DType dtype = to_dtype(type);
  for (const Arg& arg : args) {
    if (arg.is_tensor()) {
      const c10::TensorImpl& impl = *arg.tensor().unsafeGetTensorImpl();
      if (impl.device_type() == kDeviceType) [[likely]] {
        *inputs++ = FlatOperand(impl, arg.kind == Arg::kCondition ? DType::kBool : dtype);
        continue;
      }
      const at::Scalar value = read_cpu_scalar(arg.tensor());
      if (!keeps_type(value, type)) return false;
      *inputs++ = FlatOperand(number_input(value, type));
    } else {
      if (!(arg.kind == Arg::kParameter ? is_valid_parameter(arg.scalar(), type) : keeps_type(arg.scalar(), type))) {
        return false;
      }
      *inputs++ = FlatOperand(number_input(arg.scalar(), type));
    }
  }
  return true;
}

/// The inputs of any call.
Inputs all_inputs(std::initializer_list<Arg> args, at::ScalarType common) {
  Inputs inputs;
  for (const Arg& arg : args) {
    if (!arg.is_tensor()) {
      inputs.push_back(number_input(arg.scalar(), common));
    } else if (is_neuron(arg.tensor())) {
      inputs.emplace_back(arg.tensor());
    } else {
      inputs.push_back(number_input(read_cpu_scalar(arg.tensor()), arg.kind == Arg::kCondition ? at::kBool : common));
    }
  }
  return inputs;
}

/// A target that can be written to without any of the checks of the general path.
bool is_fast_target(const at::Tensor& target, const Common& common, at::ScalarType type,
                    std::initializer_list<Arg> args) {
  const c10::TensorImpl* impl = target.unsafeGetTensorImpl();
  if (impl->device_type() != kDeviceType || c10::typeMetaToScalarType(impl->dtype()) != type ||
      !impl->is_contiguous() || !impl->sizes().equals(common.shape->sizes())) {
    return false;
  }
  return std::all_of(args.begin(), args.end(), [&](const Arg& arg) {
    if (!arg.is_tensor()) return true;
    const c10::TensorImpl* other = arg.tensor().unsafeGetTensorImpl();
    return other == impl || !other->storage().is_alias_of(impl->storage());
  });
}

void check_devices(const at::Tensor* target, std::initializer_list<Arg> args) {
  for (const Arg& arg : args) {
    if (arg.is_tensor() && !is_neuron(arg.tensor()) && !is_cpu_scalar(arg.tensor())) throw_devices(arg.tensor());
  }
  if (target && !is_neuron(*target)) throw_devices(*target);
}

/// The operands' common dtype; Undefined if an operand has a dtype that kernels do not have, or a parameter is complex
/// and the operands are not.
at::ScalarType common_type(Rule rule, std::initializer_list<Arg> args) {
  at::native::ResultTypeState state;
  for (const Arg& arg : args) {
    if (arg.is_tensor() && is_neuron(arg.tensor()) && !is_recordable(arg.tensor().scalar_type())) {
      return at::ScalarType::Undefined;
    }
    if (arg.kind == Arg::kTensor) state = at::native::update_result_type_state(arg.tensor(), state);
    if (arg.is_tensor()) continue;
    if (arg.kind != Arg::kParameter) state = at::native::update_result_type_state(arg.scalar(), state);
  }
  const at::ScalarType type = at::native::result_type(state);
  for (const Arg& arg : args)
    if (arg.kind == Arg::kParameter && !is_valid_parameter(arg.scalar(), type)) return at::ScalarType::Undefined;
  if (rule.result == Rule::kFloat && c10::isIntegralType(type, /*includeBool=*/true)) {
    return c10::typeMetaToScalarType(c10::get_default_dtype());
  }
  return type;
}

at::DimVector broadcast_shape(std::initializer_list<Arg> args) {
  at::DimVector shape;
  bool first = true;
  for (const Arg& arg : args) {
    if (!arg.is_tensor()) continue;
    const auto sizes = arg.tensor().sizes();
    if (first) {
      shape.assign(sizes.begin(), sizes.end());
    } else if (!sizes.equals(shape)) {
      shape = at::infer_size_dimvector(shape, sizes);
    }
    first = false;
  }
  return shape;
}

/// An operand as TensorIterator lays it out: converted to the common dtype first, which makes it dense.
struct Layout {
  Layout(const Arg& arg, at::ScalarType common) {
    if (!arg.is_tensor()) return;
    const at::Tensor& tensor = arg.tensor();
    sizes = tensor.sizes();
    dense = tensor.is_non_overlapping_and_dense();
    if (!dense && arg.kind == Arg::kTensor && tensor.scalar_type() != common) {
      const std::vector<int64_t> converted = at::infer_dense_strides(sizes, tensor.strides());
      strides.assign(converted.begin(), converted.end());
      dense = true;
      contiguous = c10::contiguous_strides(sizes) == strides;
      channels_last = sizes.size() == 4 && at::IntArrayRef(strides).equals(c10::get_channels_last_strides_2d(sizes));
    } else {
      strides.assign(tensor.strides().begin(), tensor.strides().end());
      contiguous = tensor.is_contiguous();
      channels_last = tensor.is_contiguous(at::MemoryFormat::ChannelsLast);
    }
  }
  at::IntArrayRef sizes;  // empty for numbers, which are 0-dim tensors to PyTorch
  at::DimVector strides;
  bool contiguous = true, channels_last = false, dense = true;
};
using Layouts = c10::SmallVector<Layout, kMaxArgs>;

/// TensorIterator's choice where all operands have the result's shape: the layout that all agree on, if they do.
std::optional<at::DimVector> agreed_strides(at::IntArrayRef shape, const Layouts& layouts) {
  bool contiguous = true, channels_last = true, same = true;
  for (const Layout& layout : layouts) {
    if (!layout.sizes.equals(shape)) return std::nullopt;
    contiguous = contiguous && layout.contiguous;
    channels_last = channels_last && layout.channels_last;
    same = same && layout.dense && layout.strides == layouts[0].strides;
  }
  if (contiguous) return c10::contiguous_strides(shape);
  if (channels_last) {
    const auto strides = c10::get_channels_last_strides_2d(shape);
    return at::DimVector(strides.begin(), strides.end());
  }
  if (same) return layouts[0].strides;
  return std::nullopt;
}

/// Which of two dimensions is the faster one: positive if `a` should come after `b`, 0 where operands do not say.
int compare_dims(at::IntArrayRef shape, const c10::SmallVectorImpl<at::DimVector>& strides, int64_t a, int64_t b) {
  for (const at::DimVector& operand : strides) {
    const int64_t stride_a = operand[a], stride_b = operand[b];
    if (stride_a == 0 || stride_b == 0) continue;
    if (stride_a != stride_b) return stride_a < stride_b ? -1 : 1;
    if (shape[a] > shape[b]) return 1;
  }
  return 0;
}

/// TensorIterator's order of dimensions, fastest first, from the strides of all operands.
at::DimVector dimension_order(at::IntArrayRef shape, const c10::SmallVectorImpl<at::DimVector>& strides) {
  const int64_t rank = static_cast<int64_t>(shape.size());
  at::DimVector order(rank);
  for (int64_t d = 0; d < rank; ++d) order[d] = rank - 1 - d;
  for (int64_t i = 1; i < rank; ++i) {
    int64_t moving = i;
    for (int64_t j = i - 1; j >= 0; --j) {
      const int comparison = compare_dims(shape, strides, order[j], order[moving]);
      if (comparison > 0) {
        std::swap(order[j], order[moving]);
        moving = j;
      } else if (comparison < 0) {
        break;
      }
    }
  }
  return order;
}

}  // namespace

at::DimVector result_strides(at::IntArrayRef shape, std::initializer_list<Arg> args, at::ScalarType common) {
  Layouts layouts;
  for (const Arg& arg : args)
    if (arg.is_tensor() || arg.kind == Arg::kNumber) layouts.emplace_back(arg, common);
  if (auto agreed = agreed_strides(shape, layouts)) return *agreed;
  const size_t rank = shape.size();
  c10::SmallVector<at::DimVector, kMaxArgs> strides;
  for (const Layout& layout : layouts) {
    const size_t missing = rank - layout.sizes.size();
    at::DimVector& operand = strides.emplace_back(rank, 0);
    for (size_t d = missing; d < rank; ++d) {
      const int64_t size = layout.sizes[d - missing];
      if (size != 1 || shape[d] == 1) operand[d] = layout.strides[d - missing];
    }
  }
  const at::DimVector order = dimension_order(shape, strides);
  bool in_order = true;
  for (size_t d = 0; d < rank; ++d) in_order = in_order && order[d] == static_cast<int64_t>(rank - 1 - d);
  if (in_order) return c10::contiguous_strides(shape);
  at::DimVector result(rank);
  int64_t next = 1;
  for (int64_t d : order) {
    result[d] = next;
    next *= shape[d];
  }
  return result;
}

at::Scalar read_cpu_scalar(const at::Tensor& tensor) {
  const void* data = tensor.const_data_ptr();
  switch (tensor.scalar_type()) {
    case at::kDouble: return *static_cast<const double*>(data);
    case at::kLong: return *static_cast<const int64_t*>(data);
    case at::kFloat: return *static_cast<const float*>(data);
    case at::kBool: return *static_cast<const bool*>(data);
    default: return tensor.item();
  }
}

Input number_input(const at::Scalar& scalar, at::ScalarType common) {
  if (common == at::kDouble) return {scalar.toDouble(), at::kDouble};
  if (common == at::kComplexFloat) {
    const auto rounded = static_cast<c10::complex<float>>(scalar.toComplexDouble());
    return {at::Scalar(static_cast<c10::complex<double>>(rounded)), common};
  }
  if (common == at::kComplexDouble) return {scalar, common};
  if (contains(kFloats, common)) return {static_cast<double>(static_cast<float>(scalar.toDouble())), at::kFloat};
  if (common == at::kBool)
    return {at::Scalar(scalar.isFloatingPoint() ? scalar.toDouble() != 0 : scalar.toLong() != 0), at::kBool};
  const int64_t value = scalar.isFloatingPoint() ? static_cast<int64_t>(scalar.toDouble()) : scalar.toLong();
  switch (common) {
    case at::kByte: return {at::Scalar(static_cast<int64_t>(static_cast<uint8_t>(value))), common};
    case at::kChar: return {at::Scalar(static_cast<int64_t>(static_cast<int8_t>(value))), common};
    case at::kShort: return {at::Scalar(static_cast<int64_t>(static_cast<int16_t>(value))), common};
    case at::kInt: return {at::Scalar(static_cast<int64_t>(static_cast<int32_t>(value))), common};
    default: return {at::Scalar(value), common};
  }
}

bool fits(const at::Scalar& scalar, at::ScalarType type) {
  if (!contains(kInts, type) || !scalar.isIntegral(/*includeBool=*/true)) return true;
  const int64_t value = scalar.toLong();
  switch (type) {
    case at::kByte: return value >= 0 && value <= std::numeric_limits<uint8_t>::max();
    case at::kChar: return value == static_cast<int8_t>(value);
    case at::kShort: return value == static_cast<int16_t>(value);
    case at::kInt: return value == static_cast<int32_t>(value);
    default: return true;
  }
}

void throw_devices(const at::Tensor& other) {
  TORCH_CHECK(false, "Expected all tensors to be on the same device, but found at least two devices, ",
              c10::Device(kDeviceType, 0), " and ", other.device(), "!");
}

void resize_out(const at::Tensor& target, at::IntArrayRef sizes, at::IntArrayRef strides) {
  if (!at::native::resize_output(target, sizes) || strides.empty() || c10::contiguous_strides(sizes) == strides) return;
  target.as_strided_(sizes, strides);
}

void check_overlap(const at::Tensor& target, std::initializer_list<Arg> args) {
  at::assert_no_internal_overlap(target);
  for (const Arg& arg : args) {
    if (arg.is_tensor() && is_neuron(arg.tensor())) at::assert_no_partial_overlap(target, arg.tensor());
  }
}

bool Call::record(Opcode opcode, Rule rule, std::initializer_list<Arg> args, c10::ArrayRef<int64_t> attributes) {
  return record_fast(opcode, rule, args, attributes) || record_general(opcode, rule, args, attributes);
}

bool Call::record_fast(Opcode opcode, Rule rule, std::initializer_list<Arg> args, c10::ArrayRef<int64_t> attributes) {
  Common common;
  if (!find_common(args, common) || !contains(rule.types, common.type)) return false;
  const at::ScalarType type = result_type(rule, common.type);
  if (target_ && !is_fast_target(*target_, common, type, args)) return false;
  FlatOperand inputs[kMaxArgs];  // not initialized: only what is used is set
  TORCH_INTERNAL_ASSERT(args.size() <= kMaxArgs);
  if (!fast_inputs(args, common.type, inputs)) return false;
  if (!target_) result = make_tensor_like(*common.shape, type);
  const at::Tensor& target = target_ ? *target_ : result;
  const int64_t size = common.shape->numel();
  if (size == 0) return true;
  if (kind_of(opcode) == fusion::OpKind::indexed) [[unlikely]] {
    record_pointwise(opcode, common.type, all_inputs(args, common.type), target, attributes);
  } else {
    record_flat(opcode, to_dtype(common.type), size, {inputs, args.size()},
                FlatOperand(*target.unsafeGetTensorImpl(), to_dtype(type)), attributes);
  }
  return true;
}

bool Call::record_general(Opcode opcode, Rule rule, std::initializer_list<Arg> args,
                          c10::ArrayRef<int64_t> attributes) {
  check_devices(target_, args);
  const at::ScalarType common = common_type(rule, args);
  if (!contains(rule.types, common)) return false;
  const at::DimVector shape = broadcast_shape(args);
  const at::ScalarType type = result_type(rule, common);
  if (target_) {
    const at::ScalarType given = target_->scalar_type();
    if (!is_recordable(given) || (rule.result != Rule::kTruth && !c10::canCast(type, given))) return false;
    if (c10::isComplexType(given) && !c10::isComplexType(type)) return false;
    if (in_place_ && !target_->sizes().equals(shape)) return false;
    check_overlap(*target_, args);
    if (!target_->sizes().equals(shape)) {
      resize_out(*target_, shape, contiguous_ ? at::DimVector() : result_strides(shape, args, common));
    }
  } else {
    result = contiguous_ ? make_tensor(shape, type) : make_tensor(shape, result_strides(shape, args, common), type);
  }
  const at::Tensor& target = target_ ? *target_ : result;
  if (target.numel() != 0) record_pointwise(opcode, common, all_inputs(args, common), target, attributes);
  return true;
}

}  // namespace ae::engine
