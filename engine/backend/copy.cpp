// Copies: from the host, to the host, on the device; and reads of single values.
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_local_scalar_dense_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal_native.h>
#include <torch/library.h>

#include "engine/backend/fallback.h"
#include "engine/backend/storage.h"
#include "engine/record/known.h"
#include "engine/record/record.h"
#include "engine/runtime.h"

namespace ae::engine {
namespace {

using at::Tensor;
using fusion::FlushReason;

bool is_neuron(const Tensor& tensor) { return tensor.device().type() == kDeviceType; }

bool has_same_bits(const Tensor& a, const Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.is_conj() == b.is_conj() && a.is_neg() == b.is_neg();
}

// The tensor's memory as elements of a type that kernels have, for copies that only move bits: complex numbers become
// pairs, other types of one, two, four or eight bytes integers. Conjugate and negative bits are left out.
Tensor plain_view(const Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  c10::SmallVector<int64_t, 6> sizes(tensor.sizes()), strides(tensor.strides());
  int64_t offset = tensor.storage_offset();
  at::ScalarType plain = type;
  if (c10::isComplexType(type)) {
    plain = c10::toRealValueType(type);
    for (int64_t& stride : strides) stride *= 2;
    sizes.push_back(2);
    strides.push_back(1);
    offset *= 2;
  } else if (!is_recordable(type)) {
    switch (c10::elementSize(type)) {
      case 1: plain = at::kByte; break;
      case 2: plain = at::kShort; break;
      case 4: plain = at::kInt; break;
      case 8: plain = at::kLong; break;
      default: TORCH_CHECK_NOT_IMPLEMENTED(false, "[neuron] copy_: tensors of ", type, " cannot be copied");
    }
  }
  return make_tensor(tensor.storage(), sizes, strides, offset, plain);
}

// Raises what CPU raises when a source does not broadcast to a destination.
void check_shapes(const Tensor& src, const Tensor& dst) {
  if (src.sizes() == dst.sizes() || at::is_expandable_to(src.sizes(), dst.sizes())) [[likely]]
    return;
  const at::TensorOptions options = at::TensorOptions(at::kCPU).dtype(at::kByte);
  at::empty(dst.sizes(), options).copy_(at::empty(src.sizes(), options));
}

void record_copy(const Tensor& src, const Tensor& dst) {
  const int64_t bits = (src.is_conj() != dst.is_conj() ? fusion::kCopyConjugated : 0) |
                       (src.is_neg() != dst.is_neg() ? fusion::kCopyNegated : 0);
  const at::IntArrayRef attributes(&bits, bits == 0 ? 0 : 1);
  if (src.dim() <= dst.dim()) {
    record_pointwise(fusion::Opcode::copy, dst.scalar_type(), {src}, {dst}, attributes);
  } else {  // leading dimensions of size 1 that the destination does not have
    const int64_t extra = src.dim() - dst.dim();
    const Tensor view = make_tensor(src.storage(), src.sizes().slice(extra), src.strides().slice(extra),
                                    src.storage_offset(), src.scalar_type());
    record_pointwise(fusion::Opcode::copy, dst.scalar_type(), {view}, {dst}, attributes);
  }
  inherit_known(src, dst);
}

void host_copy(const Tensor& src, const Tensor& dst) {
  const Tensor to = host_alias(dst, true, FlushReason::host_copy);
  const Tensor from = is_neuron(src) ? host_alias(src, false, FlushReason::host_copy) : src;
  run_on_host([&] { to.copy_(from); });
}

void copy_on_device(const Tensor& src, const Tensor& dst) {
  at::assert_no_internal_overlap(dst);
  const at::MemOverlapStatus overlap = at::get_overlap_status(dst, src);
  if (overlap == at::MemOverlapStatus::Full && has_same_bits(src, dst)) return;
  at::assert_no_partial_overlap(dst, src);
  if (is_recordable(src.scalar_type()) && is_recordable(dst.scalar_type())) return record_copy(src, dst);
  if (has_same_bits(src, dst)) {
    const Tensor from = plain_view(src), to = plain_view(dst);
    return record_copy(from, to);
  }
  host_copy(src, dst);
}

// The source may be changed as soon as the call returns, so it is copied now: into the destination where that is new,
// else into a tensor of its own that a recorded copy reads.
void copy_from_host(const Tensor& host, const Tensor& dst) {
  const bool recordable =
      is_recordable(host.scalar_type()) && is_recordable(dst.scalar_type()) && !host._is_zerotensor();
  at::assert_no_internal_overlap(dst);
  const bool plain = !host.is_conj() && !host.is_neg() && !dst.is_conj() && !dst.is_neg();
  if (host.dim() == 0 && recordable && plain) {
    record_pointwise(fusion::Opcode::copy, dst.scalar_type(), {host}, {dst});
    return inherit_known(host, dst);
  }
  const bool same_type = host.scalar_type() == dst.scalar_type();
  if (!recordable && !(same_type && has_same_bits(host, dst))) return host_copy(host, dst);
  if (same_type && is_fresh(*buffer_of(dst))) {
    host_copy(host, dst);
    return mark_host_content(dst);
  }
  const Tensor staged = make_tensor(host.sizes(), host.scalar_type());
  if (host.is_conj()) staged._set_conj(true);
  if (host.is_neg()) staged._set_neg(true);
  host_copy(host, staged);
  mark_host_content(staged);
  copy_on_device(staged, dst);
}

void copy_between(const Tensor& src, const Tensor& dst) {
  check_shapes(src, dst);
  if (dst.numel() == 0) return;
  if (src._is_zerotensor()) {
    dst.zero_();
  } else if (!is_neuron(dst)) {
    const Tensor from = host_alias(src, false, FlushReason::host_copy);
    dst.copy_(from);
  } else if (is_neuron(src)) {
    copy_on_device(src, dst);
  } else {
    copy_from_host(src.is_cpu() ? src : src.cpu(), dst);
  }
}

Tensor copy_from(const Tensor& src, const Tensor& dst, bool /*non_blocking*/) {
  copy_between(src, dst);
  return dst;
}

Tensor copy_from_and_resize(const Tensor& src, const Tensor& dst) {
  if (src.sizes() != dst.sizes()) dst.resize_(src.sizes());
  copy_between(src, dst);
  return dst;
}

at::Scalar local_scalar_dense(const Tensor& self) {
  return at::native::_local_scalar_dense_cpu(host_alias(self, false, FlushReason::value_read));
}

bool equal(const Tensor& self, const Tensor& other) {
  if (!is_neuron(self) || !is_neuron(other)) throw_mixed_devices();
  if (self.sizes() != other.sizes()) return false;
  const Tensor a = host_alias(self, false, FlushReason::value_read);
  const Tensor b = host_alias(other, false, FlushReason::value_read);
  return run_on_host([&] { return a.equal(b); });
}

Tensor lazy_clone(const Tensor& self) { return self.clone(); }

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("_local_scalar_dense", &local_scalar_dense);
  m.impl("equal", &equal);
  // Copy-on-write takes the storage's one materializer slot, which is ours.
  m.impl("_lazy_clone", &lazy_clone);
}

// _copy_from sees these bits itself; PyTorch's fallbacks for them would clone, which copies, without end.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, Negative, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, ZeroTensor, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }

}  // namespace ae::engine
