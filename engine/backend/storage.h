// Storages of the neuron device: ordinary StorageImpls whose DataPtr is a placeholder (a slot in an address range
// without access rights, context = the Buffer) until somebody asks for the address.
//
// The DataPtr is what owns the Buffer, wherever it is moved to (`swap_data_ptr`, `set_data_ptr`); its end tells the
// Buffer that nobody can see it any more. Its deleter is what tells our storages from foreign ones.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>

#include "fusion/flush/reason.h"
#include "fusion/trace/buffer.h"

namespace ae::engine {

inline constexpr c10::DeviceType kDeviceType = c10::DeviceType::PrivateUse1;

namespace detail {
/// Deleters of our DataPtrs; the context is a Buffer. `release_address`: the address was handed out and is registered.
void release_placeholder(void* context);
void release_address(void* context);
fusion::Buffer* foreign_buffer(const c10::StorageImpl* storage);
void arm(c10::StorageImpl* storage);
inline bool is_ours(const c10::DataPtr& pointer) {
  const auto deleter = pointer.get_deleter();
  return deleter == &release_placeholder || deleter == &release_address;
}
}  // namespace detail

/// The Buffer behind a neuron storage. Fast for our own; finds foreign ones (DLPack import) by address.
inline fusion::Buffer* buffer_of(const c10::StorageImpl* storage) {
  const c10::DataPtr& pointer = storage->data_ptr();
  if (detail::is_ours(pointer)) [[likely]]
    return static_cast<fusion::Buffer*>(pointer.get_context());
  return detail::foreign_buffer(storage);
}
inline fusion::Buffer* buffer_of(const at::Tensor& tensor) {
  return buffer_of(tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl());
}

/// Bytes from the start of the Buffer to the start of the tensor's storage: 0 for our own storages, more for a foreign
/// one that begins inside (a view that came back through DLPack). An access' offset counts from the Buffer's start.
int64_t foreign_offset(const c10::StorageImpl* storage);
inline int64_t storage_start(const at::Tensor& tensor) {
  const auto* storage = tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
  return detail::is_ours(storage->data_ptr()) ? 0 : foreign_offset(storage);
}

/// True when nothing was ever recorded on the buffer and it has no memory: its content is undefined.
inline bool is_fresh(const fusion::Buffer& buffer) { return buffer.trace_epoch == 0 && !buffer.block; }

/// A new storage without memory. [fast: this is on the recording path]
c10::intrusive_ptr<c10::StorageImpl> make_storage(int64_t nbytes);
/// A new storage on memory that exists (adopted from the host; its owner is released with it). The memory must be
/// 64-byte aligned.
c10::intrusive_ptr<c10::StorageImpl> make_storage(device::BlockRef block, int64_t nbytes);

/// A new neuron tensor without memory. `strides` in elements; the storage just fits. [fast]
at::Tensor make_tensor(c10::IntArrayRef sizes, c10::IntArrayRef strides, at::ScalarType dtype);
at::Tensor make_tensor(c10::IntArrayRef sizes, at::ScalarType dtype);  // contiguous
/// Contiguous, of the shape of a tensor that exists, with a dtype that is no wider than its.
at::Tensor make_tensor_like(const c10::TensorImpl& shape, at::ScalarType dtype);
/// A new neuron tensor over a storage.
at::Tensor make_tensor(c10::Storage storage, c10::IntArrayRef sizes, c10::IntArrayRef strides, int64_t offset,
                       at::ScalarType dtype);

/// Arms the storage's materializer, so that whoever asks for its address gets it after flush and wait. Call for every
/// storage that a recorded node reads or writes. [fast when armed already]
inline void arm(const at::Tensor& tensor) {
  auto* storage = tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
  if (!storage->has_materializer()) [[unlikely]]
    detail::arm(storage);
}

/// Changes a storage's size and keeps what fits. [waits for what uses it, unless it has no content]
void resize_storage(c10::StorageImpl* storage, int64_t nbytes);
/// Gives a storage other memory and size, whose content replaces its own. [waits for what uses it]
void replace_memory(c10::StorageImpl* storage, device::BlockRef block, int64_t nbytes);

/// A CPU storage on the same memory. Waits for pending writes (for_write: also for pending reads). [waits]
c10::Storage host_storage(const c10::StorageImpl* storage, bool for_write, fusion::FlushReason reason);
/// A CPU tensor on the same memory, same sizes, strides and offset. Waits for pending writes (for_write: also for
/// pending reads); conjugate and negative bits are carried over. [waits]
at::Tensor host_alias(const at::Tensor& tensor, bool for_write, fusion::FlushReason reason);
at::Tensor host_alias(const at::Tensor& tensor, c10::Storage host);

/// A neuron storage on a CPU storage's memory, without a copy where its address is aligned.
c10::Storage adopt_host_storage(const c10::Storage& host);

/// Bytes of all storages that can be seen (of small ones, other threads may have some 64 KiB each that are not counted
/// yet), and the most that there may be (negative: what the machine has).
int64_t visible_bytes();
int64_t memory_limit();
void set_visible_limit(int64_t bytes);

}  // namespace ae::engine
