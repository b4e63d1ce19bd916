#include "engine/backend/fallback.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/List.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "engine/backend/generator.h"
#include "engine/backend/storage.h"
#include "engine/runtime.h"

namespace ae::engine {
namespace {

using c10::IValue;
using fusion::FlushReason;
using torch::jit::Stack;

bool is_neuron(const at::Tensor& tensor) { return tensor.defined() && tensor.device().type() == kDeviceType; }

// Operators whose integer arguments may stay on the CPU, as on CUDA.
bool may_mix_devices(std::string_view name) {
  constexpr std::array<std::string_view, 8> kNames = {"aten::index",
                                                      "aten::index_put",
                                                      "aten::index_put_",
                                                      "aten::_index_put_impl_",
                                                      "aten::_unsafe_index",
                                                      "aten::_unsafe_index_put",
                                                      "aten::_pack_padded_sequence",
                                                      "aten::_pad_packed_sequence"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

template <class F>
void for_each_tensor(const IValue& value, F&& visit) {
  if (value.isTensor()) {
    visit(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) visit(tensor);
  } else if (value.isOptionalTensorList()) {
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
      if (tensor) visit(*tensor);
    }
  }
}

// Replaces every tensor in a value by what `convert` makes of it.
template <class F>
IValue map_tensors(const IValue& value, F&& convert) {
  if (value.isTensor()) return convert(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(convert(tensor));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
      list.push_back(tensor ? std::optional(convert(*tensor)) : std::nullopt);
    }
    return list;
  }
  return value;
}

// One call of the fallback: which host storage stands for which neuron storage, and back.
class HostCall {
 public:
  explicit HostCall(const c10::OperatorHandle& op) : op_(op) {}

  void run(Stack* stack) {
    const auto& arguments = op_.schema().arguments();
    const size_t first = stack->size() - arguments.size();
    survey(*stack, first);
    for (size_t i = 0; i < arguments.size(); ++i) {
      IValue& value = (*stack)[first + i];
      value = convert_argument(arguments[i], value);
    }
    call(stack);
    for (Pair& pair : pairs_) give_back_geometry(pair);
    const size_t returns = op_.schema().returns().size();
    for (size_t i = stack->size() - returns; i < stack->size(); ++i) {
      (*stack)[i] = map_tensors((*stack)[i], [this](const at::Tensor& tensor) { return result(tensor); });
    }
  }

 private:
  struct HostStorage {
    c10::Storage neuron, host;
    const void* address = nullptr;
    size_t nbytes = 0;
    bool written = false;
  };
  struct Pair {
    at::Tensor neuron, host;
    bool written;
  };

  // Looks at all arguments before anything happens: devices, and which storages are written.
  void survey(const Stack& stack, size_t first) {
    const auto& arguments = op_.schema().arguments();
    bool neuron = false, host = false;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const IValue& value = stack[first + i];
      const bool written = arguments[i].alias_info() && arguments[i].alias_info()->isWrite();
      if (value.isDevice()) to_neuron_ = value.toDevice().type() == kDeviceType;
      for_each_tensor(value, [&](const at::Tensor& tensor) {
        if (!tensor.defined()) return;
        if (is_neuron(tensor)) {
          neuron = true;
          storages_[tensor.storage().unsafeGetStorageImpl()].written |= written;
        } else if (tensor.is_cpu() && (tensor.dim() > 0 || written)) {
          host = true;
        }
      });
    }
    if (neuron && host && !may_mix_devices(op_.schema().name())) throw_mixed_devices();
  }

  IValue convert_argument(const c10::Argument& argument, const IValue& value) {
    if (value.isDevice()) return value.toDevice().type() == kDeviceType ? c10::Device(c10::kCPU) : value.toDevice();
    const c10::Type* type = argument.type().get();
    if (const auto* optional = type->castRaw<c10::OptionalType>()) type = optional->getElementType().get();
    if (type->kind() == c10::TypeKind::GeneratorType) {
      has_generator_ = true;
      return cpu_generator_from(generator_or_default(value.toOptional<at::Generator>()));
    }
    const bool written = argument.alias_info() && argument.alias_info()->isWrite();
    return map_tensors(value, [&](const at::Tensor& tensor) { return to_host(tensor, written); });
  }

  at::Tensor to_host(const at::Tensor& tensor, bool written) {
    if (!is_neuron(tensor)) return tensor;
    for (Pair& pair : pairs_) {  // ATen asks whether two arguments are one
      if (!pair.neuron.is_same(tensor)) continue;
      pair.written |= written;
      return pair.host;
    }
    HostStorage& entry = storages_[tensor.storage().unsafeGetStorageImpl()];
    if (!entry.host) {
      entry.neuron = tensor.storage();
      entry.host = host_storage(entry.neuron.unsafeGetStorageImpl(), entry.written, FlushReason::fallback);
      entry.address = entry.host.data();
      entry.nbytes = entry.host.nbytes();
      neuron_storages_.emplace(entry.host.unsafeGetStorageImpl(), entry.neuron);
    }
    at::Tensor host = host_alias(tensor, entry.host);
    pairs_.push_back({tensor, host, written});
    return host;
  }

  void call(Stack* stack) {
    OneThreadScope one_thread;
    const bool seeded = !has_generator_ && to_neuron_ && op_.hasTag(at::Tag::nondeterministic_seeded);
    if (!seeded) return op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
    // The operator draws from the CPU's default generator: it stands in for ours meanwhile.
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    const at::Generator ours = cpu_generator_from(generator_or_default(std::nullopt));
    const at::Tensor saved = exchange_state(generator, ours.get_state());
    try {
      op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
    } catch (...) {
      exchange_state(generator, saved);
      throw;
    }
    exchange_state(generator, saved);
  }

  static at::Tensor exchange_state(at::Generator& generator, const at::Tensor& state) {
    std::lock_guard lock(generator.mutex());
    at::Tensor before = generator.get_state();
    generator.set_state(state);
    return before;
  }

  // What the operator did to an argument's storage and shape is done to the neuron tensor.
  void give_back_geometry(Pair& pair) {
    if (!pair.written) return;
    const c10::Storage& host = pair.host.storage();
    auto* impl = pair.neuron.unsafeGetTensorImpl();
    HostStorage& entry = storages_[pair.neuron.storage().unsafeGetStorageImpl()];
    if (!host.is_alias_of(entry.host)) {
      impl->set_storage_keep_dtype(neuron_storage(host));
    } else if (host.data() != entry.address || host.nbytes() != entry.nbytes) {
      take_over(entry);
    }
    if (pair.neuron.sizes() != pair.host.sizes() || pair.neuron.strides() != pair.host.strides() ||
        pair.neuron.storage_offset() != pair.host.storage_offset()) {
      impl->set_sizes_and_strides(pair.host.sizes(), pair.host.strides(), pair.host.storage_offset());
    }
    if (pair.neuron.is_conj() != pair.host.is_conj()) pair.neuron._set_conj(pair.host.is_conj());
    if (pair.neuron.is_neg() != pair.host.is_neg()) pair.neuron._set_neg(pair.host.is_neg());
  }

  // The operator gave an argument's host storage other memory: the neuron storage gets that.
  static void take_over(HostStorage& entry) {
    const auto nbytes = static_cast<int64_t>(entry.host.nbytes());
    const c10::Storage adopted = adopt_host_storage(entry.host);
    replace_memory(entry.neuron.unsafeGetStorageImpl(), buffer_of(adopted.unsafeGetStorageImpl())->block, nbytes);
    entry.address = entry.host.data();
    entry.nbytes = entry.host.nbytes();
  }

  const c10::Storage& neuron_storage(const c10::Storage& host) {
    auto [it, fresh] = neuron_storages_.try_emplace(host.unsafeGetStorageImpl());
    if (fresh) {
      it->second = adopt_host_storage(host);
      kept_.push_back(host);
    }
    return it->second;
  }

  at::Tensor result(const at::Tensor& tensor) {
    if (!tensor.defined() || !to_neuron_ || !tensor.is_cpu()) return tensor;
    for (const Pair& pair : pairs_) {
      if (pair.host.is_same(tensor)) return pair.neuron;
    }
    TORCH_CHECK_NOT_IMPLEMENTED(tensor.layout() == c10::kStrided && !tensor.is_quantized(), "[neuron] ",
                                op_.schema().name(), " makes a ", tensor.is_quantized() ? "quantized" : "sparse",
                                " tensor, which the neuron device does not have. Move its inputs to the CPU first.");
    at::Tensor made = make_tensor(neuron_storage(tensor.storage()), tensor.sizes(), tensor.strides(),
                                  tensor.storage_offset(), tensor.scalar_type());
    if (tensor.is_conj()) made._set_conj(true);
    if (tensor.is_neg()) made._set_neg(true);
    return made;
  }

  const c10::OperatorHandle& op_;
  bool to_neuron_ = true;
  bool has_generator_ = false;
  std::unordered_map<c10::StorageImpl*, HostStorage> storages_;          // by neuron storage
  std::unordered_map<c10::StorageImpl*, c10::Storage> neuron_storages_;  // by host storage
  std::vector<Pair> pairs_;
  std::vector<c10::Storage> kept_;  // host storages that are keys of neuron_storages_
};

// Layouts that we do not have: a clear message for every operator.
template <int kind>
void refuse(const c10::OperatorHandle& op, Stack*) {
  constexpr const char* kKinds[] = {"sparse", "quantized", "nested"};
  TORCH_CHECK_NOT_IMPLEMENTED(false, "[neuron] ", op.schema().name(), ": ", kKinds[kind],
                              " tensors are not supported on the neuron device. Keep them on the CPU.");
}

}  // namespace

void throw_mixed_devices() {
  TORCH_CHECK(false, "Expected all tensors to be on the same device, but found at least two devices, ",
              c10::Device(kDeviceType, 0), " and cpu!");
}

at::Tensor adopt(const at::Tensor& host) {
  return make_tensor(adopt_host_storage(host.storage()), host.sizes(), host.strides(), host.storage_offset(),
                     host.scalar_type());
}

void cpu_fallback(const c10::OperatorHandle& op, Stack* stack) {
  TORCH_CHECK_NOT_IMPLEMENTED(op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU), "[neuron] ",
                              op.schema().operator_name(),
                              " has no kernel for the neuron device, and none for the CPU that could stand in.");
  HostCall(op).run(stack);
  count_fallback(op.schema().name().c_str());
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&cpu_fallback>()); }
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(_, SparsePrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&refuse<0>>()); }
TORCH_LIBRARY_IMPL(_, SparseCsrPrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&refuse<0>>()); }
TORCH_LIBRARY_IMPL(_, QuantizedPrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&refuse<1>>()); }
TORCH_LIBRARY_IMPL(_, NestedTensorPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&refuse<2>>());
}

}  // namespace ae::engine
