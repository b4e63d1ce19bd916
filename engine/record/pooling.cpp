// Pooling: max and average, over windows and adaptive, in two and three dimensions (one dimension arrives as two).
#include <ATen/native/Pool.h>
#include <ATen/ops/_adaptive_avg_pool2d_backward_cpu_dispatch.h>
#include <ATen/ops/_adaptive_avg_pool2d_cpu_dispatch.h>
#include <ATen/ops/_adaptive_avg_pool3d_backward_cpu_dispatch.h>
#include <ATen/ops/_adaptive_avg_pool3d_cpu_dispatch.h>
#include <ATen/ops/adaptive_avg_pool2d_cpu_dispatch.h>
#include <ATen/ops/adaptive_avg_pool3d_backward_cpu_dispatch.h>
#include <ATen/ops/adaptive_avg_pool3d_cpu_dispatch.h>
#include <ATen/ops/adaptive_max_pool2d_backward_cpu_dispatch.h>
#include <ATen/ops/adaptive_max_pool2d_backward_meta.h>
#include <ATen/ops/adaptive_max_pool2d_cpu_dispatch.h>
#include <ATen/ops/adaptive_max_pool2d_meta.h>
#include <ATen/ops/adaptive_max_pool3d_backward_cpu_dispatch.h>
#include <ATen/ops/adaptive_max_pool3d_backward_meta.h>
#include <ATen/ops/adaptive_max_pool3d_cpu_dispatch.h>
#include <ATen/ops/adaptive_max_pool3d_meta.h>
#include <ATen/ops/avg_pool2d_backward_cpu_dispatch.h>
#include <ATen/ops/avg_pool2d_backward_meta.h>
#include <ATen/ops/avg_pool2d_cpu_dispatch.h>
#include <ATen/ops/avg_pool2d_meta.h>
#include <ATen/ops/avg_pool3d_backward_cpu_dispatch.h>
#include <ATen/ops/avg_pool3d_backward_meta.h>
#include <ATen/ops/avg_pool3d_cpu_dispatch.h>
#include <ATen/ops/avg_pool3d_meta.h>
#include <ATen/ops/max_pool2d_with_indices_backward_cpu_dispatch.h>
#include <ATen/ops/max_pool2d_with_indices_backward_meta.h>
#include <ATen/ops/max_pool2d_with_indices_cpu_dispatch.h>
#include <ATen/ops/max_pool2d_with_indices_meta.h>
#include <ATen/ops/max_pool3d_with_indices_backward_cpu_dispatch.h>
#include <ATen/ops/max_pool3d_with_indices_cpu_dispatch.h>

#include "engine/record/out_kernel.h"

namespace ae::engine {
namespace {

using at::IntArrayRef;
using at::Tensor;
using library::along_batch;
using library::OutCall;

const OutCall<&at::cpu::max_pool2d_with_indices_outf, &along_batch<2>> kMaxPool2d("max_pool2d");
const OutCall<&at::cpu::max_pool2d_with_indices_backward_outf, &along_batch<2>> kMaxPool2dBackward(
    "max_pool2d_backward");
const OutCall<&at::cpu::max_pool3d_with_indices_outf, &along_batch<3>> kMaxPool3d("max_pool3d");
const OutCall<&at::cpu::max_pool3d_with_indices_backward_outf, &along_batch<3>> kMaxPool3dBackward(
    "max_pool3d_backward");
const OutCall<&at::cpu::avg_pool2d_outf, &along_batch<2>> kAvgPool2d("avg_pool2d");
const OutCall<&at::cpu::avg_pool2d_backward_outf, &along_batch<2>> kAvgPool2dBackward("avg_pool2d_backward");
const OutCall<&at::cpu::avg_pool3d_outf, &along_batch<3>> kAvgPool3d("avg_pool3d");
const OutCall<&at::cpu::avg_pool3d_backward_outf, &along_batch<3>> kAvgPool3dBackward("avg_pool3d_backward");
const OutCall<&at::cpu::adaptive_max_pool2d_outf, &along_batch<2>> kAdaptiveMaxPool2d("adaptive_max_pool2d");
const OutCall<&at::cpu::adaptive_max_pool2d_backward_outf, &along_batch<2>> kAdaptiveMaxPool2dBackward(
    "adaptive_max_pool2d_backward");
const OutCall<&at::cpu::adaptive_max_pool3d_outf, &along_batch<3>> kAdaptiveMaxPool3d("adaptive_max_pool3d");
const OutCall<&at::cpu::adaptive_max_pool3d_backward_outf, &along_batch<3>> kAdaptiveMaxPool3dBackward(
    "adaptive_max_pool3d_backward");
const OutCall<&at::cpu::adaptive_avg_pool2d_outf, &along_batch<2>> kAdaptiveAvgPool2d("adaptive_avg_pool2d");
const OutCall<&at::cpu::adaptive_avg_pool3d_outf, &along_batch<3>> kAdaptiveAvgPool3d("adaptive_avg_pool3d");
const OutCall<&at::cpu::adaptive_avg_pool3d_backward_outf, &along_batch<3>> kAdaptiveAvgPool3dBackward(
    "adaptive_avg_pool3d_backward");
const OutCall<[](const Tensor& grad, const Tensor& self, Tensor& out) {
  out.copy_(at::cpu::_adaptive_avg_pool2d_backward(grad, self));
},
              &along_batch<2>>
    kAdaptiveAvgPool2dBackward("adaptive_avg_pool2d_backward");

bool is_image(const Tensor& tensor, int64_t dims) { return tensor.dim() == dims + 1 || tensor.dim() == dims + 2; }

/// The list's value for dimension d: one value stands for all.
int64_t value_at(IntArrayRef list, int64_t d) { return list.size() == 1 ? list[0] : list[d]; }

/// Sizes of the pooled volume, if the arguments are as they have to be.
std::optional<at::DimVector> max_pool3d_sizes(const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                                              IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {
  if (!is_image(self, 3) || (stride.size() != 0 && stride.size() != 1 && stride.size() != 3)) return std::nullopt;
  for (const IntArrayRef list : {kernel, padding, dilation})
    if (list.size() != 1 && list.size() != 3) return std::nullopt;
  at::DimVector sizes(self.sizes());
  for (int64_t d = 0; d < 3; ++d) {
    const int64_t window = value_at(kernel, d), pad = value_at(padding, d), dilate = value_at(dilation, d);
    const int64_t step = stride.empty() ? window : value_at(stride, d);
    int64_t& size = sizes[self.dim() - 3 + d];
    if (window < 1 || step < 1 || dilate < 1 || pad < 0 || pad > window / 2) return std::nullopt;
    size = at::native::pooling_output_shape<int64_t>(size, window, pad, step, dilate, ceil_mode);
    if (size < 1) return std::nullopt;
  }
  return sizes;
}

struct MaxPool3dShape : at::impl::MetaBase {
  void meta(const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
            bool ceil_mode) {
    const auto sizes = max_pool3d_sizes(self, kernel, stride, padding, dilation, ceil_mode);
    if (!sizes) return;
    set_output_raw_strided(0, *sizes, {}, like(self));
    set_output_raw_strided(1, *sizes, {}, like(self).dtype(at::kLong));
  }
};

struct MaxPool3dBackwardShape : at::impl::MetaBase {
  void meta(const Tensor& grad, const Tensor& self, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
            IntArrayRef dilation, bool ceil_mode, const Tensor& indices) {
    const auto sizes = max_pool3d_sizes(self, kernel, stride, padding, dilation, ceil_mode);
    if (!sizes || !grad.sizes().equals(*sizes) || !indices.sizes().equals(*sizes)) return;
    set_output_raw_strided(0, self.sizes(), {}, like(self));
  }
};

/// The two-dimensional kernels keep the memory format, the three-dimensional ones do not.
at::TensorOptions adaptive_options(const Tensor& self, int64_t dims) { return dims == 2 ? like(self) : self.options(); }

template <int dims>
struct AdaptiveAvgPoolShape : at::impl::MetaBase {
  void meta(const Tensor& self, IntArrayRef output_size) {
    if (!is_image(self, dims) || output_size.size() != dims) return;
    at::DimVector sizes(self.sizes());
    for (int d = 0; d < dims; ++d) {
      if (output_size[d] < 1) return;
      sizes[self.dim() - dims + d] = output_size[d];
    }
    set_output_raw_strided(0, sizes, {}, adaptive_options(self, dims));
  }
};

template <int dims>
struct AdaptiveAvgPoolBackwardShape : at::impl::MetaBase {
  void meta(const Tensor& grad, const Tensor& self) {
    if (!is_image(self, dims) || grad.dim() != self.dim()) return;
    for (int64_t d = 0; d < self.dim() - dims; ++d)
      if (grad.sizes()[d] != self.sizes()[d]) return;
    set_output_raw_strided(0, self.sizes(), {}, adaptive_options(self, dims));
  }
};

/// What CPU has average pooling of volumes for.
constexpr uint64_t kWideFloats = type_bit(at::kFloat) | type_bit(at::kDouble);

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  AE_OUT_FUNCTIONAL(m, "max_pool2d_with_indices", at::meta::structured_max_pool2d_with_indices, kMaxPool2d, kFloats);
  AE_OUT_FORMS(m, "max_pool2d_with_indices_backward", ".grad_input",
               Indexed<at::meta::structured_max_pool2d_with_indices_backward>, kMaxPool2dBackward, kFloats);
  AE_OUT_FUNCTIONAL(m, "max_pool3d_with_indices", MaxPool3dShape, kMaxPool3d, kFloats);
  AE_OUT_FUNCTIONAL(m, "max_pool3d_with_indices_backward", Indexed<MaxPool3dBackwardShape>, kMaxPool3dBackward,
                    kFloats);
  AE_OUT_FORMS(m, "avg_pool2d", ".out", at::meta::structured_avg_pool2d, kAvgPool2d, kFloats);
  AE_OUT_FORMS(m, "avg_pool2d_backward", ".grad_input", at::meta::structured_avg_pool2d_backward, kAvgPool2dBackward,
               kFloats);
  AE_OUT_FORMS(m, "avg_pool3d", ".out", at::meta::structured_avg_pool3d, kAvgPool3d, kWideFloats);
  AE_OUT_FORMS(m, "avg_pool3d_backward", ".grad_input", at::meta::structured_avg_pool3d_backward, kAvgPool3dBackward,
               kWideFloats);
  AE_OUT_FUNCTIONAL(m, "adaptive_max_pool2d", at::meta::structured_adaptive_max_pool2d, kAdaptiveMaxPool2d, kFloats);
  AE_OUT_FORMS(m, "adaptive_max_pool2d_backward", ".grad_input",
               Indexed<at::meta::structured_adaptive_max_pool2d_backward>, kAdaptiveMaxPool2dBackward, kFloats);
  AE_OUT_FUNCTIONAL(m, "adaptive_max_pool3d", at::meta::structured_adaptive_max_pool3d, kAdaptiveMaxPool3d, kFloats);
  AE_OUT_FORMS(m, "adaptive_max_pool3d_backward", ".grad_input",
               Indexed<at::meta::structured_adaptive_max_pool3d_backward>, kAdaptiveMaxPool3dBackward, kFloats);
  AE_OUT_FUNCTIONAL(m, "_adaptive_avg_pool2d", AdaptiveAvgPoolShape<2>, kAdaptiveAvgPool2d, kFloats);
  AE_OUT_FUNCTIONAL(m, "_adaptive_avg_pool2d_backward", AdaptiveAvgPoolBackwardShape<2>, kAdaptiveAvgPool2dBackward,
                    kFloats);
  AE_OUT_FUNCTIONAL(m, "_adaptive_avg_pool3d", AdaptiveAvgPoolShape<3>, kAdaptiveAvgPool3d, kFloats);
  AE_OUT_FUNCTIONAL(m, "_adaptive_avg_pool3d_backward", AdaptiveAvgPoolBackwardShape<3>, kAdaptiveAvgPool3dBackward,
                    kFloats);
}

}  // namespace
}  // namespace ae::engine
