// Tensors without content: creation, views, storages and metadata. Nothing here records or waits, unless the program
// asked for memory without content to be filled (torch.utils.deterministic.fill_uninitialized_memory).
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/ResizeCommon.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/is_set_to_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include <optional>

#include "engine/backend/storage.h"
#include "engine/runtime.h"

namespace ae::engine {
namespace {

using at::Tensor;
using c10::IntArrayRef;

void check_options(const std::optional<at::Layout>& layout, const std::optional<at::Device>& device,
                   const std::optional<bool>& pin_memory) {
  TORCH_CHECK_NOT_IMPLEMENTED(!layout || *layout == c10::kStrided, "[neuron] empty: the layout ",
                              layout.value_or(c10::kStrided), " is not supported on the neuron device");
  TORCH_CHECK(!device || device->index() <= 0, "[neuron] there is one device, neuron:0, but ", *device,
              " was asked for");
  TORCH_CHECK(!pin_memory || !*pin_memory, "Only dense CPU tensors can be pinned");
}

/// Whether the program asked for memory without content to be filled.
bool fills_memory() {
  const at::Context& context = at::globalContext();
  return context.deterministicAlgorithms() && context.deterministicFillUninitializedMemory();
}

Tensor empty(IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
             std::optional<at::Device> device, std::optional<bool> pin_memory, std::optional<at::MemoryFormat> format) {
  check_options(layout, device, pin_memory);
  at::detail::check_size_nonnegative(size);
  recorder();  // the first tensor is the first use of the device
  Tensor made = make_tensor(size, c10::dtype_or_default(dtype));
  if (format && *format != at::MemoryFormat::Contiguous) {
    TORCH_CHECK(*format != at::MemoryFormat::Preserve, "memory format option is only supported by strided tensors");
    made.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  }
  if (fills_memory()) at::native::fill_empty_deterministic_(made);
  return made;
}

Tensor empty_strided(IntArrayRef size, IntArrayRef stride, std::optional<at::ScalarType> dtype,
                     std::optional<at::Layout> layout, std::optional<at::Device> device,
                     std::optional<bool> pin_memory) {
  check_options(layout, device, pin_memory);
  at::detail::check_size_nonnegative(size);
  recorder();
  Tensor made = make_tensor(size, stride, c10::dtype_or_default(dtype));
  if (fills_memory()) at::native::fill_empty_deterministic_(made);
  return made;
}

Tensor efficient_zero_tensor(IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                             std::optional<at::Device> device, std::optional<bool> pin_memory) {
  check_options(layout, device, pin_memory);
  const c10::DispatchKeySet keys({c10::DispatchKey::PrivateUse1, c10::DispatchKey::ZeroTensor});
  auto impl = c10::make_intrusive<c10::TensorImpl>(c10::Storage(make_storage(0)), keys,
                                                   c10::scalarTypeToTypeMeta(c10::dtype_or_default(dtype)));
  impl->set_sizes_contiguous(size);
  return Tensor(std::move(impl));
}

const Tensor& resize(const Tensor& self, IntArrayRef size, std::optional<at::MemoryFormat> format) {
  TORCH_CHECK(!format || *format != at::MemoryFormat::Preserve, "Unsupported memory format", *format);
  auto* impl = self.unsafeGetTensorImpl();
  const auto old_bytes = static_cast<int64_t>(self.storage().nbytes());
  if (self.sizes() != size) {
    at::detail::check_size_nonnegative(size);
    const auto needed = static_cast<int64_t>(
        at::detail::computeStorageNbytesContiguous(size, self.element_size(), self.storage_offset()));
    c10::StorageImpl* storage = self.storage().unsafeGetStorageImpl();
    if (self.numel() != 0 || needed > 0) {
      if (needed > static_cast<int64_t>(storage->nbytes()) && c10::multiply_integers(size) > 0)
        resize_storage(storage, needed);
    }
    impl->set_sizes_contiguous(size);
  }
  if (format) impl->empty_tensor_restride(*format);
  if (fills_memory()) at::native::fill_resize_deterministic_(self, old_bytes);
  return self;
}

Tensor& set_storage(Tensor& self, at::Storage source, int64_t offset, IntArrayRef size, IntArrayRef stride) {
  TORCH_CHECK(source.device_type() == kDeviceType, "Expected a storage on the neuron device, but found one on ",
              source.device());
  TORCH_CHECK(offset >= 0, "Tensor: invalid storage offset ", offset);
  if (stride.data() != nullptr) {
    TORCH_CHECK(size.size() == stride.size(), "unequal size length (", size.size(), ") and stride length (",
                stride.size(), ")");
  }
  auto* impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(source));
  if (stride.data() != nullptr) {
    impl->set_sizes_and_strides(size, stride, offset);
  } else {
    impl->set_sizes_contiguous(size);
    impl->set_storage_offset(offset);
  }
  // As on CPU, a storage that is too small grows.
  const auto needed = static_cast<int64_t>(at::detail::computeStorageNbytes(
      impl->sizes(), impl->strides(), self.element_size(), static_cast<size_t>(offset)));
  c10::StorageImpl* storage = self.storage().unsafeGetStorageImpl();
  if (impl->numel() > 0 && needed > static_cast<int64_t>(storage->nbytes())) resize_storage(storage, needed);
  return self;
}

Tensor& set_source_storage(Tensor& self, at::Storage source) {
  const auto count = static_cast<int64_t>(source.nbytes() / self.element_size());
  return set_storage(self, std::move(source), 0, {count}, {});
}

Tensor& set_source_tensor(Tensor& self, const Tensor& source) {
  if (self.is_same(source)) return self;
  return set_storage(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

Tensor& set_nothing(Tensor& self) { return set_storage(self, c10::Storage(make_storage(0)), 0, {0}, {}); }

void record_stream(Tensor&, at::Stream) {}  // one stream: its order is enough

bool has_compatible_shallow_copy_type(const Tensor& self, const Tensor& from) {
  return self.layout() == c10::kStrided && from.layout() == c10::kStrided && !self.is_quantized() &&
         !from.is_quantized();
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("_efficientzerotensor", &efficient_zero_tensor);
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
  m.impl("view", static_cast<Tensor (*)(const Tensor&, IntArrayRef)>(&at::native::view));
  m.impl("_reshape_alias", &at::native::_reshape_alias);
  m.impl("unfold", &at::native::unfold);
  m.impl("view_as_real", &at::native::view_as_real);
  m.impl("view_as_complex", &at::native::view_as_complex);
  m.impl("is_set_to", &at::native::is_set_to);
  m.impl("resize_", &resize);
  m.impl("set_.source_Storage", &set_source_storage);
  m.impl("set_.source_Storage_storage_offset", &set_storage);
  m.impl("set_.source_Tensor", &set_source_tensor);
  m.impl("set_", &set_nothing);
  m.impl("record_stream", &record_stream);
  m.impl("_has_compatible_shallow_copy_type", &has_compatible_shallow_copy_type);
}

}  // namespace ae::engine
