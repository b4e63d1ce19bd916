// The neuron device's c10::DeviceAllocator: statistics and raw memory. Storages of tensors get theirs at flush.
#pragma once

#include <c10/core/Allocator.h>

namespace ae::engine {

c10::Allocator* neuron_allocator();
/// Memory that exists at once, for those who allocate without a storage of ours (storage.cpp).
c10::DataPtr allocate_pointer(int64_t nbytes);

}  // namespace ae::engine
