// The loop of a function from device/math.
#pragma once

#include "device/host/kernels.h"
#include "device/math/vec.h"

namespace ae::device::host {

/// An ElementKernel.
template <class T, auto kFunction>
void math_kernel(void* dst, const void* a, const void*, const void*, int64_t groups) {
  constexpr int64_t kLanes = 64 / sizeof(T);
  using V = math::Vec<T, kLanes>;
  T* out = static_cast<T*>(dst);
  const T* x = static_cast<const T*>(a);
  for (int64_t i = 0; i < groups * kGroup; i += kLanes) kFunction(V::load(x + i)).store(out + i);
}

}  // namespace ae::device::host
