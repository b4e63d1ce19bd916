#include "engine/backend/storage.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "engine/backend/address_map.h"
#include "engine/backend/allocator.h"
#include "engine/runtime.h"

namespace ae::engine {
namespace {

using fusion::Buffer;
using fusion::BufferRef;
using fusion::FlushReason;

const c10::Device kDevice(kDeviceType, 0);

// One range of addresses that nobody may touch. Slots are handed out in turn and wrap around: they have to differ from
// their neighbours and be as large as the storage, no more.
class PlaceholderRange {
 public:
  PlaceholderRange() {
    for (size_ = int64_t{1} << 46;; size_ >>= 1) {
      void* base =
          mmap(nullptr, static_cast<size_t>(size_), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (base != MAP_FAILED) {
        base_ = static_cast<char*>(base);
        return;
      }
      TORCH_CHECK(size_ > int64_t{1} << 30, "[neuron] no address range could be reserved; is RLIMIT_AS set too low?");
    }
  }
  /// `bytes`: a multiple of 64.
  char* slot(int64_t bytes) {
    TORCH_CHECK_WITH(OutOfMemoryError, bytes <= size_, "[neuron] a storage of ", bytes,
                     " bytes is larger than the device");
    for (;;) {
      const int64_t at = cursor_.fetch_add(bytes, std::memory_order_relaxed) & (size_ - 1);
      if (at + bytes <= size_) [[likely]]
        return base_ + at;
    }
  }

 private:
  char* base_ = nullptr;
  int64_t size_ = 0;
  std::atomic<int64_t> cursor_{0};
};

int64_t physical_bytes() {
  return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<int64_t>(sysconf(_SC_PAGE_SIZE));
}

std::atomic<int64_t> g_visible{0};
std::atomic<int64_t> g_limit{physical_bytes()};

// What small storages take from the shared counters each thread takes in larger pieces: atomic operations are a good
// part of what recording costs.
constexpr int64_t kSmallStorage = 4096, kUncounted = 64 << 10, kPiece = 1 << 20;

// Without a constructor or destructor, which would be looked for at each access.
struct ThreadShare {
  int64_t uncounted;  // bytes that `g_visible` does not have yet; negative: has too many
  int64_t most_uncounted;
  bool was_started;
  char* slot;  // placeholders for small storages
  char* slots_end;
};
constinit thread_local ThreadShare t_share __attribute__((tls_model("initial-exec"))){};

struct ThreadShareEnd {
  ~ThreadShareEnd() {
    g_visible.fetch_add(t_share.uncounted, std::memory_order_relaxed);
    t_share.uncounted = t_share.most_uncounted = 0;  // objects of the thread that end later are counted at once
  }
};

// Counts what a thread has not counted yet, if that is much. Returns what all storages have then, else nothing.
std::optional<int64_t> count(int64_t nbytes) {
  ThreadShare& share = t_share;
  if (std::abs(nbytes) <= kSmallStorage) {
    share.uncounted += nbytes;
    if (std::abs(share.uncounted) < share.most_uncounted) [[likely]]
      return std::nullopt;
    if (!share.was_started) {
      thread_local ThreadShareEnd end;
      (void)&end;
      share.was_started = true;
      share.most_uncounted = kUncounted;
    }
    nbytes = std::exchange(share.uncounted, 0);
  }
  return g_visible.fetch_add(nbytes, std::memory_order_relaxed) + nbytes;
}

void* placeholder(int64_t nbytes) {
  static PlaceholderRange& range = *new PlaceholderRange;  // leaked: storages outlive static destruction
  if (nbytes == 0) return nullptr;
  const int64_t bytes = (nbytes + 63) & ~int64_t{63};
  if (bytes > kSmallStorage) return range.slot(bytes);
  ThreadShare& share = t_share;
  if (share.slots_end - share.slot < bytes) [[unlikely]] {
    share.slot = range.slot(kPiece);
    share.slots_end = share.slot + kPiece;
  }
  return std::exchange(share.slot, share.slot + bytes);
}

std::string mebibytes(int64_t bytes) {
  const int64_t tenths = bytes / (int64_t{1} << 20) * 10 + bytes % (int64_t{1} << 20) * 10 / (int64_t{1} << 20);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " MiB";
}

// Flushes, waits and empties caches, since values that nobody sees any more may hold memory; then counts again.
[[noreturn]] void throw_out_of_memory(int64_t nbytes) {
  g_visible.fetch_sub(nbytes, std::memory_order_relaxed);
  if (is_initialized()) {
    synchronize(FlushReason::out_of_memory);
    host_device().empty_cache();
  }
  TORCH_CHECK_WITH(OutOfMemoryError, false, "neuron out of memory. Tried to allocate ", mebibytes(nbytes), "; ",
                   mebibytes(g_visible.load()), " are in use and the limit is ", mebibytes(g_limit.load()),
                   ". Release tensors, or raise torch.neuron.set_per_process_memory_fraction.");
}

void account(int64_t nbytes) {
  if (const auto now = count(nbytes); now && *now > g_limit.load(std::memory_order_relaxed)) [[unlikely]]
    throw_out_of_memory(nbytes);
}

// Takes over the only reference to `buffer`, whose bytes are accounted.
c10::DataPtr placeholder_pointer(BufferRef buffer) {
  void* slot = placeholder(buffer->nbytes);
  buffer->own_by_storage();
  return {slot, buffer.release(), &detail::release_placeholder, kDevice};
}

// The materializer: gives the storage its Buffer's address, after everything recorded on it is done.
void materialize(c10::StorageImpl* storage) {
  Buffer* buffer = buffer_of(storage);
  wait_for(*buffer, true, FlushReason::address);
  // Another thread may have recorded on it meanwhile; c10 clears the hook when this returns.
  while (!recorder().is_idle(*buffer)) wait_for(*buffer, true, FlushReason::address);
  c10::DataPtr& old = storage->_mutable_data_ptr_no_checks();
  if (old.get_deleter() != &detail::release_placeholder) return;  // the address is there, or the storage is foreign
  void* address = buffer->block ? buffer->block->address() : nullptr;
  addresses().add(buffer, address);
  buffer->known.store(0, std::memory_order_relaxed);
  void* context = old.release_context();
  storage->set_data_ptr_noswap(c10::DataPtr(address, context, &detail::release_address, kDevice));
}

// What recording makes, in memory that is used again.
class NeuronStorage final : public c10::StorageImpl {
 public:
  using StorageImpl::StorageImpl;
  static void* operator new(size_t) { return fusion::FreeList<NeuronStorage>::take(); }
  static void operator delete(void* memory) noexcept { fusion::FreeList<NeuronStorage>::give(memory); }
};
class NeuronTensor final : public c10::TensorImpl {
 public:
  using TensorImpl::TensorImpl;
  static void* operator new(size_t) { return fusion::FreeList<NeuronTensor>::take(); }
  static void operator delete(void* memory) noexcept { fusion::FreeList<NeuronTensor>::give(memory); }
};

c10::intrusive_ptr<c10::StorageImpl> storage_on(BufferRef buffer) {
  const int64_t nbytes = buffer->nbytes;
  auto storage = c10::make_intrusive<NeuronStorage>(c10::StorageImpl::use_byte_size_t(), c10::SymInt(nbytes),
                                                    placeholder_pointer(std::move(buffer)), neuron_allocator(), true);
  storage->set_materializer(&materialize);
  return storage;
}

// Puts a new Buffer in the place of the storage's own.
void exchange_buffer(c10::StorageImpl* storage, BufferRef buffer) {
  const int64_t nbytes = buffer->nbytes;
  storage->set_data_ptr_noswap(placeholder_pointer(std::move(buffer)));
  storage->set_nbytes(static_cast<size_t>(nbytes));
  detail::arm(storage);
}

BufferRef new_buffer(int64_t nbytes) {
  account(nbytes);
  return BufferRef::adopt(new Buffer(nbytes));
}

device::BlockRef allocate(int64_t nbytes) {
  try {
    return host_device().allocate(nbytes);
  } catch (...) {
    rethrow_for_torch();
  }
}

void release_reference(void* context) { static_cast<Buffer*>(context)->release(); }

c10::intrusive_ptr<c10::StorageImpl> create_storage(c10::StorageImpl::use_byte_size_t, c10::SymInt size_bytes,
                                                    c10::DataPtr data_ptr, c10::Allocator* allocator, bool resizable) {
  const int64_t nbytes = size_bytes.guard_int(__FILE__, __LINE__);
  if (!data_ptr && data_ptr.get_context() == nullptr) {
    auto storage = make_storage(nbytes);
    storage->set_resizable(resizable);
    return storage;
  }
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), std::move(size_bytes),
                                                       std::move(data_ptr), allocator, resizable);
  detail::arm(storage.get());
  return storage;
}

at::Tensor make_contiguous(c10::IntArrayRef sizes, caffe2::TypeMeta meta, size_t nbytes) {
  auto impl = c10::make_intrusive<NeuronTensor>(c10::Storage(make_storage(static_cast<int64_t>(nbytes))),
                                                c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), meta);
  if (sizes.size() != 1 || sizes[0] != 0) impl->set_sizes_contiguous(sizes);
  return at::Tensor(std::move(impl));
}

[[maybe_unused]] const bool g_registered = [] {
  c10::SetStorageImplCreate(kDeviceType, &create_storage);
  return true;
}();

}  // namespace

namespace detail {

void release_placeholder(void* context) {
  auto* buffer = static_cast<Buffer*>(context);
  buffer->visible.store(false, std::memory_order_release);
  count(-buffer->nbytes);
  if (buffer->held_epoch != 0 && is_initialized()) recorder().drop(*buffer);
  buffer->release_by_storage();
}

void release_address(void* context) {
  addresses().remove(static_cast<Buffer*>(context));
  release_placeholder(context);
}

void arm(c10::StorageImpl* storage) {
  if (!storage->has_materializer()) storage->set_materializer(&materialize);
}

Buffer* foreign_buffer(const c10::StorageImpl* storage) {
  TORCH_CHECK(storage->device_type() == kDeviceType, "Expected a tensor on the neuron device, but found one on ",
              storage->device());
  return addresses().find(storage).buffer;
}

}  // namespace detail

int64_t foreign_offset(const c10::StorageImpl* storage) { return addresses().find(storage).offset; }

c10::DataPtr allocate_pointer(int64_t nbytes) {
  BufferRef buffer = new_buffer(nbytes);
  if (nbytes > 0) buffer->block = allocate(nbytes);
  void* address = nbytes > 0 ? buffer->block->address() : nullptr;
  addresses().add(buffer.get(), address);
  buffer->own_by_storage();
  return {address, buffer.release(), &detail::release_address, kDevice};
}

c10::intrusive_ptr<c10::StorageImpl> make_storage(int64_t nbytes) { return storage_on(new_buffer(nbytes)); }

c10::intrusive_ptr<c10::StorageImpl> make_storage(device::BlockRef block, int64_t nbytes) {
  BufferRef buffer = new_buffer(nbytes);
  buffer->block = std::move(block);
  return storage_on(std::move(buffer));
}

at::Tensor make_tensor(c10::IntArrayRef sizes, at::ScalarType dtype) {
  const auto meta = c10::scalarTypeToTypeMeta(dtype);
  return make_contiguous(sizes, meta, at::detail::computeStorageNbytesContiguous(sizes, meta.itemsize()));
}

at::Tensor make_tensor_like(const c10::TensorImpl& shape, at::ScalarType dtype) {
  const auto meta = c10::scalarTypeToTypeMeta(dtype);
  return make_contiguous(shape.sizes(), meta, static_cast<size_t>(shape.numel()) * meta.itemsize());
}

at::Tensor make_tensor(c10::IntArrayRef sizes, c10::IntArrayRef strides, at::ScalarType dtype) {
  const size_t nbytes = at::detail::computeStorageNbytes(sizes, strides, c10::elementSize(dtype));
  return make_tensor(c10::Storage(make_storage(static_cast<int64_t>(nbytes))), sizes, strides, 0, dtype);
}

at::Tensor make_tensor(c10::Storage storage, c10::IntArrayRef sizes, c10::IntArrayRef strides, int64_t offset,
                       at::ScalarType dtype) {
  auto impl = c10::make_intrusive<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::scalarTypeToTypeMeta(dtype));
  impl->set_sizes_and_strides(sizes, strides, offset);
  return at::Tensor(std::move(impl));
}

void resize_storage(c10::StorageImpl* storage, int64_t nbytes) {
  const auto old_bytes = static_cast<int64_t>(storage->nbytes());
  if (nbytes == old_bytes) return;
  TORCH_CHECK(storage->resizable(), "Trying to resize storage that is not resizable");
  BufferRef old = BufferRef::share(buffer_of(storage));
  BufferRef buffer = new_buffer(nbytes);
  const int64_t kept = std::min(old_bytes, nbytes);
  if (kept > 0 && !is_fresh(*old.get())) {
    wait_for(*old.get(), true, FlushReason::storage_resize);
    buffer->block = allocate(nbytes);
    std::memcpy(buffer->block->address(), old->block->address(), static_cast<size_t>(kept));
  }
  exchange_buffer(storage, std::move(buffer));
}

void replace_memory(c10::StorageImpl* storage, device::BlockRef block, int64_t nbytes) {
  BufferRef old = BufferRef::share(buffer_of(storage));
  wait_for(*old.get(), true, FlushReason::storage_resize);
  BufferRef buffer = new_buffer(nbytes);
  buffer->block = std::move(block);
  exchange_buffer(storage, std::move(buffer));
}

c10::Storage host_storage(const c10::StorageImpl* storage, bool for_write, FlushReason reason) {
  BufferRef buffer = BufferRef::share(buffer_of(storage));
  wait_for(*buffer.get(), for_write, reason);
  if (for_write) buffer->known.store(0, std::memory_order_relaxed);
  const int64_t start = detail::is_ours(storage->data_ptr()) ? 0 : foreign_offset(storage);
  void* address = buffer->block ? static_cast<char*>(buffer->block->address()) + start : nullptr;
  return c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), c10::SymInt(static_cast<int64_t>(storage->nbytes())),
      c10::DataPtr(address, buffer.release(), &release_reference, c10::Device(c10::kCPU)), c10::GetCPUAllocator(),
      true);
}

at::Tensor host_alias(const at::Tensor& tensor, c10::Storage host) {
  auto impl =
      c10::make_intrusive<c10::TensorImpl>(std::move(host), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
  impl->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  at::Tensor alias(std::move(impl));
  if (tensor.is_conj()) alias._set_conj(true);
  if (tensor.is_neg()) alias._set_neg(true);
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) alias.unsafeGetTensorImpl()->set_wrapped_number(true);
  return alias;
}

at::Tensor host_alias(const at::Tensor& tensor, bool for_write, FlushReason reason) {
  return host_alias(tensor, host_storage(tensor.storage().unsafeGetStorageImpl(), for_write, reason));
}

c10::Storage adopt_host_storage(const c10::Storage& host) {
  const auto nbytes = static_cast<int64_t>(host.nbytes());
  if (nbytes == 0) return make_storage(0);
  void* address = host.mutable_data();
  if (reinterpret_cast<uintptr_t>(address) % 64 == 0) {
    return make_storage(host_device().wrap(address, nbytes, [host] {}), nbytes);
  }
  device::BlockRef block = allocate(nbytes);
  std::memcpy(block->address(), address, static_cast<size_t>(nbytes));
  return make_storage(std::move(block), nbytes);
}

int64_t visible_bytes() { return g_visible.load(std::memory_order_relaxed) + t_share.uncounted; }

int64_t memory_limit() { return g_limit.load(std::memory_order_relaxed); }

void set_visible_limit(int64_t bytes) {
  g_limit.store(bytes < 0 ? physical_bytes() : bytes, std::memory_order_relaxed);
}

}  // namespace ae::engine
