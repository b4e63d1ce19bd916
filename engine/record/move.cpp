// Operators that put the elements of a tensor into other places: roll and flip.
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/ops/flip_cpu_dispatch.h>

#include "engine/library/out_call.h"
#include "engine/record/kernel.h"
#include "engine/record/result.h"

namespace ae::engine {
namespace {

using at::Tensor;

const library::OutCall<[](const Tensor& self, at::IntArrayRef dims, Tensor& out) {
  out.copy_(at::cpu::flip(self, dims));
}>
    kFlip("flip");

Tensor fresh_like(const Tensor& self) { return make_tensor(self.sizes(), self.scalar_type()); }

/// Two copies: what is shifted out at the end comes in at the start.
Tensor rolled(const Tensor& self, int64_t shift, int64_t dim) {
  const int64_t size = self.size(dim), start = ((shift % size) + size) % size;
  const Tensor result = fresh_like(self);
  const auto copy = [&](int64_t from, int64_t to, int64_t length) {
    if (length == 0) return;
    const Tensor source = self.narrow(dim, from, length);
    record_pointwise(Opcode::copy, self.scalar_type(), {Input(source)}, result.narrow(dim, to, length));
  };
  copy(0, start, size - start);
  copy(size - start, 0, start);
  return result;
}

Tensor roll(const Tensor& self, c10::SymIntArrayRef symbolic_shifts, at::IntArrayRef dims) {
  const auto shifts = C10_AS_INTARRAYREF_SLOW(symbolic_shifts);
  const bool flat = dims.empty() && shifts.size() == 1;
  bool valid = is_recordable(self.scalar_type()) && !shifts.empty() && (flat || shifts.size() == dims.size());
  for (const int64_t dim : dims) valid = valid && dim >= -self.dim() && dim < self.dim();
  if (!valid)
    return Fallback<Tensor(const Tensor&, c10::SymIntArrayRef, at::IntArrayRef)>::call("roll", self, symbolic_shifts,
                                                                                       dims);
  if (self.numel() == 0) return fresh_like(self);
  if (flat) return rolled(self.contiguous().view({-1}), shifts[0], 0).view(self.sizes());
  Tensor result = self;
  for (size_t i = 0; i < dims.size(); ++i) result = rolled(result, shifts[i], dims[i]);
  return result;
}

Tensor flip(const Tensor& self, at::IntArrayRef dims) {
  bool valid = is_recordable(self.scalar_type());
  for (const int64_t dim : dims) valid = valid && dim >= -self.dim() && dim < self.dim();
  if (!valid) return Fallback<Tensor(const Tensor&, at::IntArrayRef)>::call("flip", self, dims);
  // PyTorch's own check for dimensions that come twice.
  at::dim_list_to_bitset(dims, self.dim());
  const Tensor result =
      make_tensor(self.sizes(), result_strides(self.sizes(), {self}, self.scalar_type()), self.scalar_type());
  if (self.numel() != 0) kFlip.record(self, dims, result);
  return result;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("roll", &roll);
  m.impl("flip", &flip);
}

}  // namespace
}  // namespace ae::engine
