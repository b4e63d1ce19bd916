// Padding by reflection and replication; padding with a constant is composed of a fill and a copy.
#include <ATen/ops/reflection_pad1d_backward_cpu_dispatch.h>
#include <ATen/ops/reflection_pad1d_backward_meta.h>
#include <ATen/ops/reflection_pad1d_cpu_dispatch.h>
#include <ATen/ops/reflection_pad1d_meta.h>
#include <ATen/ops/reflection_pad2d_backward_cpu_dispatch.h>
#include <ATen/ops/reflection_pad2d_cpu_dispatch.h>
#include <ATen/ops/reflection_pad3d_backward_cpu_dispatch.h>
#include <ATen/ops/reflection_pad3d_backward_meta.h>
#include <ATen/ops/reflection_pad3d_cpu_dispatch.h>
#include <ATen/ops/reflection_pad3d_meta.h>
#include <ATen/ops/replication_pad1d_backward_cpu_dispatch.h>
#include <ATen/ops/replication_pad1d_backward_meta.h>
#include <ATen/ops/replication_pad1d_cpu_dispatch.h>
#include <ATen/ops/replication_pad1d_meta.h>
#include <ATen/ops/replication_pad2d_backward_cpu_dispatch.h>
#include <ATen/ops/replication_pad2d_cpu_dispatch.h>
#include <ATen/ops/replication_pad2d_meta.h>
#include <ATen/ops/replication_pad3d_backward_cpu_dispatch.h>
#include <ATen/ops/replication_pad3d_cpu_dispatch.h>
#include <ATen/ops/replication_pad3d_meta.h>

#include "engine/record/out_kernel.h"

namespace ae::engine {
namespace {

using at::IntArrayRef;
using at::Tensor;
using library::along_batch;
using library::OutCall;

constexpr uint64_t kTypes = kFloats | kComplexes;

const OutCall<&at::cpu::reflection_pad1d_outf, &along_batch<1>> kReflection1d("reflection_pad1d");
const OutCall<&at::cpu::reflection_pad1d_backward_outf, &along_batch<1>> kReflection1dBackward(
    "reflection_pad1d_backward");
const OutCall<&at::cpu::reflection_pad2d_outf, &along_batch<2>> kReflection2d("reflection_pad2d");
const OutCall<&at::cpu::reflection_pad2d_backward_outf, &along_batch<2>> kReflection2dBackward(
    "reflection_pad2d_backward");
const OutCall<&at::cpu::reflection_pad3d_outf, &along_batch<3>> kReflection3d("reflection_pad3d");
const OutCall<&at::cpu::reflection_pad3d_backward_outf, &along_batch<3>> kReflection3dBackward(
    "reflection_pad3d_backward");
const OutCall<&at::cpu::replication_pad1d_outf, &along_batch<1>> kReplication1d("replication_pad1d");
const OutCall<&at::cpu::replication_pad1d_backward_outf, &along_batch<1>> kReplication1dBackward(
    "replication_pad1d_backward");
const OutCall<&at::cpu::replication_pad2d_outf, &along_batch<2>> kReplication2d("replication_pad2d");
const OutCall<&at::cpu::replication_pad2d_backward_outf, &along_batch<2>> kReplication2dBackward(
    "replication_pad2d_backward");
const OutCall<&at::cpu::replication_pad3d_outf, &along_batch<3>> kReplication3d("replication_pad3d");
const OutCall<&at::cpu::replication_pad3d_backward_outf, &along_batch<3>> kReplication3dBackward(
    "replication_pad3d_backward");

/// The sizes of the padded tensor; none if an argument is not as it has to be.
std::optional<at::DimVector> padded_sizes(const Tensor& self, IntArrayRef padding, int dims, bool reflection) {
  if ((self.dim() != dims + 1 && self.dim() != dims + 2) || padding.size() != static_cast<size_t>(2 * dims))
    return std::nullopt;
  at::DimVector sizes(self.sizes());
  for (int d = 0; d < dims; ++d) {  // the last dimension comes first in the list
    int64_t& size = sizes[self.dim() - 1 - d];
    const int64_t before = padding[2 * d], after = padding[2 * d + 1];
    if (reflection && (before >= size || after >= size)) return std::nullopt;
    size += before + after;
    if (size < 1) return std::nullopt;
  }
  return sizes;
}

struct Reflection2dShape : at::impl::MetaBase {
  void meta(const Tensor& self, IntArrayRef padding) {
    if (const auto sizes = padded_sizes(self, padding, 2, true)) set_output_raw_strided(0, *sizes, {}, like(self));
  }
};

/// PyTorch's own rules check the arguments, but the CPU's kernels then keep the memory format, which the rules do not
/// say.
template <class Rule, int dims, bool reflection>
struct InFormat : Rule {
  void meta(const Tensor& self, IntArrayRef padding) {
    Rule::meta(self, padding);
    if (const auto sizes = padded_sizes(self, padding, dims, reflection))
      this->set_output_raw_strided(0, *sizes, {}, like(self));
  }
};

template <int dims, bool reflection>
struct PadBackwardShape : at::impl::MetaBase {
  void meta(const Tensor& grad, const Tensor& self, IntArrayRef padding) {
    const auto sizes = padded_sizes(self, padding, dims, reflection);
    if (sizes && grad.sizes().equals(*sizes)) set_output_raw_strided(0, self.sizes(), {}, like(self));
  }
};

using Reflection2dBackwardShape = PadBackwardShape<2, true>;
using Replication2dBackwardShape = PadBackwardShape<2, false>;
using Replication3dBackwardShape = PadBackwardShape<3, false>;
using Reflection3dShape = InFormat<at::meta::structured_reflection_pad3d, 3, true>;
using Replication2dShape = InFormat<at::meta::structured_replication_pad2d, 2, false>;
using Replication3dShape = InFormat<at::meta::structured_replication_pad3d, 3, false>;

struct Reflection3dBackwardShape : at::meta::structured_reflection_pad3d_backward {
  void meta(const Tensor& grad, const Tensor& self, IntArrayRef padding) {
    structured_reflection_pad3d_backward::meta(grad, self, padding);
    set_output_raw_strided(0, self.sizes(), {}, like(self));
  }
};

// Of images and volumes, the CPU's kernels give an out= argument other strides: that is left to them.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  AE_OUT_FORMS(m, "reflection_pad1d", ".out", at::meta::structured_reflection_pad1d, kReflection1d, kTypes);
  AE_OUT_FORMS(m, "reflection_pad1d_backward", ".grad_input", at::meta::structured_reflection_pad1d_backward,
               kReflection1dBackward, kTypes);
  AE_OUT_FUNCTIONAL(m, "reflection_pad2d", Reflection2dShape, kReflection2d, kTypes);
  AE_OUT_FUNCTIONAL(m, "reflection_pad2d_backward", Reflection2dBackwardShape, kReflection2dBackward, kTypes);
  AE_OUT_FUNCTIONAL(m, "reflection_pad3d", Reflection3dShape, kReflection3d, kTypes);
  AE_OUT_FUNCTIONAL(m, "reflection_pad3d_backward", Reflection3dBackwardShape, kReflection3dBackward, kTypes);
  AE_OUT_FORMS(m, "replication_pad1d", ".out", at::meta::structured_replication_pad1d, kReplication1d, kTypes);
  AE_OUT_FORMS(m, "replication_pad1d_backward", ".grad_input", at::meta::structured_replication_pad1d_backward,
               kReplication1dBackward, kTypes);
  AE_OUT_FUNCTIONAL(m, "replication_pad2d", Replication2dShape, kReplication2d, kTypes);
  AE_OUT_FUNCTIONAL(m, "replication_pad2d_backward", Replication2dBackwardShape, kReplication2dBackward, kTypes);
  AE_OUT_FUNCTIONAL(m, "replication_pad3d", Replication3dShape, kReplication3d, kTypes);
  AE_OUT_FUNCTIONAL(m, "replication_pad3d_backward", Replication3dBackwardShape, kReplication3dBackward, kTypes);
}

}  // namespace
}  // namespace ae::engine
