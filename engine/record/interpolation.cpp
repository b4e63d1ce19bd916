// Interpolation: the upsample operators of every kind, sampling on a grid, and image to columns and back.
#include <ATen/ops/_upsample_bicubic2d_aa_backward_cpu_dispatch.h>
#include <ATen/ops/_upsample_bicubic2d_aa_backward_meta.h>
#include <ATen/ops/_upsample_bicubic2d_aa_cpu_dispatch.h>
#include <ATen/ops/_upsample_bicubic2d_aa_meta.h>
#include <ATen/ops/_upsample_bilinear2d_aa_backward_cpu_dispatch.h>
#include <ATen/ops/_upsample_bilinear2d_aa_backward_meta.h>
#include <ATen/ops/_upsample_bilinear2d_aa_cpu_dispatch.h>
#include <ATen/ops/_upsample_bilinear2d_aa_meta.h>
#include <ATen/ops/_upsample_nearest_exact1d_backward_cpu_dispatch.h>
#include <ATen/ops/_upsample_nearest_exact1d_backward_meta.h>
#include <ATen/ops/_upsample_nearest_exact1d_cpu_dispatch.h>
#include <ATen/ops/_upsample_nearest_exact1d_meta.h>
#include <ATen/ops/_upsample_nearest_exact2d_backward_cpu_dispatch.h>
#include <ATen/ops/_upsample_nearest_exact2d_backward_meta.h>
#include <ATen/ops/_upsample_nearest_exact2d_cpu_dispatch.h>
#include <ATen/ops/_upsample_nearest_exact2d_meta.h>
#include <ATen/ops/_upsample_nearest_exact3d_backward_cpu_dispatch.h>
#include <ATen/ops/_upsample_nearest_exact3d_backward_meta.h>
#include <ATen/ops/_upsample_nearest_exact3d_cpu_dispatch.h>
#include <ATen/ops/_upsample_nearest_exact3d_meta.h>
#include <ATen/ops/col2im_cpu_dispatch.h>
#include <ATen/ops/grid_sampler_2d_backward_cpu_dispatch.h>
#include <ATen/ops/grid_sampler_2d_cpu_dispatch.h>
#include <ATen/ops/grid_sampler_3d_backward_cpu_dispatch.h>
#include <ATen/ops/grid_sampler_3d_cpu_dispatch.h>
#include <ATen/ops/im2col_cpu_dispatch.h>
#include <ATen/ops/upsample_bicubic2d_backward_cpu_dispatch.h>
#include <ATen/ops/upsample_bicubic2d_backward_meta.h>
#include <ATen/ops/upsample_bicubic2d_cpu_dispatch.h>
#include <ATen/ops/upsample_bicubic2d_meta.h>
#include <ATen/ops/upsample_bilinear2d_backward_cpu_dispatch.h>
#include <ATen/ops/upsample_bilinear2d_backward_meta.h>
#include <ATen/ops/upsample_bilinear2d_cpu_dispatch.h>
#include <ATen/ops/upsample_bilinear2d_meta.h>
#include <ATen/ops/upsample_linear1d_backward_cpu_dispatch.h>
#include <ATen/ops/upsample_linear1d_backward_meta.h>
#include <ATen/ops/upsample_linear1d_cpu_dispatch.h>
#include <ATen/ops/upsample_linear1d_meta.h>
#include <ATen/ops/upsample_nearest1d_backward_cpu_dispatch.h>
#include <ATen/ops/upsample_nearest1d_backward_meta.h>
#include <ATen/ops/upsample_nearest1d_cpu_dispatch.h>
#include <ATen/ops/upsample_nearest1d_meta.h>
#include <ATen/ops/upsample_nearest2d_backward_cpu_dispatch.h>
#include <ATen/ops/upsample_nearest2d_backward_meta.h>
#include <ATen/ops/upsample_nearest2d_cpu_dispatch.h>
#include <ATen/ops/upsample_nearest2d_meta.h>
#include <ATen/ops/upsample_nearest3d_backward_cpu_dispatch.h>
#include <ATen/ops/upsample_nearest3d_backward_meta.h>
#include <ATen/ops/upsample_nearest3d_cpu_dispatch.h>
#include <ATen/ops/upsample_nearest3d_meta.h>
#include <ATen/ops/upsample_trilinear3d_backward_cpu_dispatch.h>
#include <ATen/ops/upsample_trilinear3d_backward_meta.h>
#include <ATen/ops/upsample_trilinear3d_cpu_dispatch.h>
#include <ATen/ops/upsample_trilinear3d_meta.h>

#include "engine/record/out_kernel.h"

namespace ae::engine {
namespace {

using at::IntArrayRef;
using at::Tensor;
using library::along_batch;
using library::along_first;
using library::OutCall;
using Scale = std::optional<double>;

constexpr uint64_t kWideFloats = type_bit(at::kFloat) | type_bit(at::kDouble);
constexpr uint64_t kImages = kFloats | type_bit(at::kByte);

/// A backward function for a piece of the batch: the size of its own gradient stands for the input's size.
template <auto function, class... Rest>
struct OfPiece {
  static void call(const Tensor& grad, IntArrayRef output_size, IntArrayRef /*input_size*/, Rest... rest,
                   Tensor& grad_input) {
    function(grad, output_size, grad_input.sizes(), rest..., grad_input);
  }
};

const OutCall<&at::cpu::upsample_nearest1d_outf, &along_batch<1>> kUpsampleNearest1d("upsample_nearest1d");
const OutCall<&OfPiece<&at::cpu::upsample_nearest1d_backward_outf, Scale>::call, &along_batch<1>>
    kUpsampleNearest1dBackward("upsample_nearest1d_backward");
const OutCall<&at::cpu::_upsample_nearest_exact1d_outf, &along_batch<1>> kUpsampleNearestExact1d(
    "upsample_nearest_exact1d");
const OutCall<&OfPiece<&at::cpu::_upsample_nearest_exact1d_backward_outf, Scale>::call, &along_batch<1>>
    kUpsampleNearestExact1dBackward("upsample_nearest_exact1d_backward");
const OutCall<&at::cpu::upsample_nearest2d_outf, &along_batch<2>> kUpsampleNearest2d("upsample_nearest2d");
const OutCall<&OfPiece<&at::cpu::upsample_nearest2d_backward_outf, Scale, Scale>::call, &along_batch<2>>
    kUpsampleNearest2dBackward("upsample_nearest2d_backward");
const OutCall<&at::cpu::_upsample_nearest_exact2d_outf, &along_batch<2>> kUpsampleNearestExact2d(
    "upsample_nearest_exact2d");
const OutCall<&OfPiece<&at::cpu::_upsample_nearest_exact2d_backward_outf, Scale, Scale>::call, &along_batch<2>>
    kUpsampleNearestExact2dBackward("upsample_nearest_exact2d_backward");
const OutCall<&at::cpu::upsample_nearest3d_outf, &along_batch<3>> kUpsampleNearest3d("upsample_nearest3d");
const OutCall<&OfPiece<&at::cpu::upsample_nearest3d_backward_outf, Scale, Scale, Scale>::call, &along_batch<3>>
    kUpsampleNearest3dBackward("upsample_nearest3d_backward");
const OutCall<&at::cpu::_upsample_nearest_exact3d_outf, &along_batch<3>> kUpsampleNearestExact3d(
    "upsample_nearest_exact3d");
const OutCall<&OfPiece<&at::cpu::_upsample_nearest_exact3d_backward_outf, Scale, Scale, Scale>::call, &along_batch<3>>
    kUpsampleNearestExact3dBackward("upsample_nearest_exact3d_backward");
const OutCall<&at::cpu::upsample_linear1d_outf, &along_batch<1>> kUpsampleLinear1d("upsample_linear1d");
const OutCall<&OfPiece<&at::cpu::upsample_linear1d_backward_outf, bool, Scale>::call, &along_batch<1>>
    kUpsampleLinear1dBackward("upsample_linear1d_backward");
const OutCall<&at::cpu::upsample_bilinear2d_outf, &along_batch<2>> kUpsampleBilinear2d("upsample_bilinear2d");
const OutCall<&OfPiece<&at::cpu::upsample_bilinear2d_backward_outf, bool, Scale, Scale>::call, &along_batch<2>>
    kUpsampleBilinear2dBackward("upsample_bilinear2d_backward");
const OutCall<&at::cpu::upsample_bicubic2d_outf, &along_batch<2>> kUpsampleBicubic2d("upsample_bicubic2d");
const OutCall<&OfPiece<&at::cpu::upsample_bicubic2d_backward_outf, bool, Scale, Scale>::call, &along_batch<2>>
    kUpsampleBicubic2dBackward("upsample_bicubic2d_backward");
const OutCall<&at::cpu::upsample_trilinear3d_outf, &along_batch<3>> kUpsampleTrilinear3d("upsample_trilinear3d");
const OutCall<&OfPiece<&at::cpu::upsample_trilinear3d_backward_outf, bool, Scale, Scale, Scale>::call, &along_batch<3>>
    kUpsampleTrilinear3dBackward("upsample_trilinear3d_backward");
const OutCall<&at::cpu::_upsample_bilinear2d_aa_outf, &along_batch<2>> kUpsampleBilinear2dAa("upsample_bilinear2d_aa");
const OutCall<&OfPiece<&at::cpu::_upsample_bilinear2d_aa_backward_outf, bool, Scale, Scale>::call, &along_batch<2>>
    kUpsampleBilinear2dAaBackward("upsample_bilinear2d_aa_backward");
const OutCall<&at::cpu::_upsample_bicubic2d_aa_outf, &along_batch<2>> kUpsampleBicubic2dAa("upsample_bicubic2d_aa");
const OutCall<&OfPiece<&at::cpu::_upsample_bicubic2d_aa_backward_outf, bool, Scale, Scale>::call, &along_batch<2>>
    kUpsampleBicubic2dAaBackward("upsample_bicubic2d_aa_backward");

template <auto function>
struct GridSample {
  static void call(const Tensor& input, const Tensor& grid, int64_t interpolation, int64_t padding, bool align_corners,
                   Tensor& out) {
    out.copy_(function(input, grid, interpolation, padding, align_corners));
  }
};
const OutCall<&GridSample<&at::cpu::grid_sampler_2d>::call, &along_first> kGridSampler2d("grid_sampler_2d");
const OutCall<&GridSample<&at::cpu::grid_sampler_3d>::call, &along_first> kGridSampler3d("grid_sampler_3d");

/// Gradients of the input and the grid, or of the grid alone.
template <auto function>
struct GridBackward {
  static void both(const Tensor& grad, const Tensor& input, const Tensor& grid, int64_t interpolation, int64_t padding,
                   bool align_corners, Tensor& grad_input, Tensor& grad_grid) {
    const auto [of_input, of_grid] =
        function(grad, input, grid, interpolation, padding, align_corners, std::array{true, true});
    grad_input.copy_(of_input);
    grad_grid.copy_(of_grid);
  }
  static void of_grid(const Tensor& grad, const Tensor& input, const Tensor& grid, int64_t interpolation,
                      int64_t padding, bool align_corners, Tensor& grad_grid) {
    grad_grid.copy_(
        std::get<1>(function(grad, input, grid, interpolation, padding, align_corners, std::array{false, true})));
  }
};
using GridBackward2d = GridBackward<&at::cpu::grid_sampler_2d_backward>;
using GridBackward3d = GridBackward<&at::cpu::grid_sampler_3d_backward>;
const OutCall<&GridBackward2d::both, &along_first> kGridSampler2dBackward("grid_sampler_2d_backward");
const OutCall<&GridBackward2d::of_grid, &along_first> kGridSampler2dGrid("grid_sampler_2d_backward_grid");
const OutCall<&GridBackward3d::both, &along_first> kGridSampler3dBackward("grid_sampler_3d_backward");
const OutCall<&GridBackward3d::of_grid, &along_first> kGridSampler3dGrid("grid_sampler_3d_backward_grid");

const OutCall<&at::cpu::im2col_outf, &along_first> kIm2col("im2col");
const OutCall<&at::cpu::col2im_outf, &along_first> kCol2im("col2im");

bool is_grid_for(const Tensor& input, const Tensor& grid, int64_t interpolation, int dims) {
  return input.dim() == dims + 2 && grid.dim() == dims + 2 && input.sizes()[0] == grid.sizes()[0] &&
         grid.sizes().back() == dims && grid.scalar_type() == input.scalar_type() && interpolation >= 0 &&
         interpolation <= (dims == 2 ? 2 : 1);
}

at::DimVector sampled_sizes(const Tensor& input, const Tensor& grid) {
  at::DimVector sizes{input.sizes()[0], input.sizes()[1]};
  sizes.append(grid.sizes().begin() + 1, grid.sizes().end() - 1);
  return sizes;
}

template <int dims>
struct GridSamplerShape : at::impl::MetaBase {
  void meta(const Tensor& input, const Tensor& grid, int64_t interpolation, int64_t, bool) {
    if (is_grid_for(input, grid, interpolation, dims))
      set_output_raw_strided(0, sampled_sizes(input, grid), {}, input.options());
  }
};

template <OperatorName name, int dims, const auto& both, const auto& of_grid>
std::tuple<Tensor, Tensor> grid_sampler_backward(const Tensor& grad, const Tensor& input, const Tensor& grid,
                                                 int64_t interpolation, int64_t padding, bool align_corners,
                                                 std::array<bool, 2> mask) {
  detail::Operands operands(kWideFloats);
  if (!operands.fit(grad, input, grid) || !is_grid_for(input, grid, interpolation, dims) ||
      !grad.sizes().equals(sampled_sizes(input, grid))) {
    return Fallback<std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&, int64_t, int64_t, bool,
                                               std::array<bool, 2>)>::call(name.text, grad, input, grid, interpolation,
                                                                           padding, align_corners, mask);
  }
  const Tensor grad_grid = make_tensor(grid.sizes(), grid.scalar_type());
  if (!mask[0]) {
    of_grid.record(grad, input, grid, interpolation, padding, align_corners, grad_grid);
    return {Tensor(), grad_grid};
  }
  const Tensor grad_input = make_tensor(input.sizes(), input.scalar_type());
  both.record(grad, input, grid, interpolation, padding, align_corners, grad_input, grad_grid);
  return {grad_input, grad_grid};
}

/// Windows of two dimensions, as im2col and col2im take them.
struct Windows {
  IntArrayRef kernel, dilation, padding, stride;

  bool are_plain() const {
    for (const IntArrayRef list : {kernel, dilation, padding, stride})
      if (list.size() != 2) return false;
    for (int d = 0; d < 2; ++d)
      if (kernel[d] < 1 || dilation[d] < 1 || padding[d] < 0 || stride[d] < 1) return false;
    return true;
  }
  /// How many fit in an image, by dimension.
  int64_t count(int64_t size, int d) const {
    const int64_t room = size + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1;
    return room < 0 ? 0 : room / stride[d] + 1;
  }
  int64_t size() const { return kernel[0] * kernel[1]; }
};

struct Im2colShape : at::impl::MetaBase {
  void meta(const Tensor& self, IntArrayRef kernel, IntArrayRef dilation, IntArrayRef padding, IntArrayRef stride) {
    const Windows windows{kernel, dilation, padding, stride};
    if (self.dim() < 3 || self.dim() > 4 || !windows.are_plain()) return;
    const IntArrayRef image = self.sizes().slice(self.dim() - 3);
    const int64_t count = windows.count(image[1], 0) * windows.count(image[2], 1);
    if (count == 0) return;
    at::DimVector sizes(self.sizes().slice(0, self.dim() - 3));
    sizes.append({image[0] * windows.size(), count});
    set_output_raw_strided(0, sizes, {}, self.options());
  }
};

struct Col2imShape : at::impl::MetaBase {
  void meta(const Tensor& self, IntArrayRef output_size, IntArrayRef kernel, IntArrayRef dilation, IntArrayRef padding,
            IntArrayRef stride) {
    const Windows windows{kernel, dilation, padding, stride};
    if (self.dim() < 2 || self.dim() > 3 || output_size.size() != 2 || !windows.are_plain()) return;
    const IntArrayRef columns = self.sizes().slice(self.dim() - 2);
    const int64_t count = windows.count(output_size[0], 0) * windows.count(output_size[1], 1);
    if (columns[0] % windows.size() != 0 || count == 0 || columns[1] != count) return;
    at::DimVector sizes(self.sizes().slice(0, self.dim() - 2));
    sizes.append({columns[0] / windows.size(), output_size[0], output_size[1]});
    set_output_raw_strided(0, sizes, {}, self.options());
  }
};

// An upsample operator and its backward, in both forms.
#define AE_UPSAMPLE(m, name, meta_name, call, types, backward_types)                                            \
  AE_OUT_FORMS(m, name, ".out", at::meta::structured_##meta_name, call, types);                                 \
  AE_OUT_FORMS(m, name "_backward", ".grad_input", at::meta::structured_##meta_name##_backward, call##Backward, \
               backward_types)

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  AE_UPSAMPLE(m, "upsample_nearest1d", upsample_nearest1d, kUpsampleNearest1d, kImages, kFloats);
  AE_UPSAMPLE(m, "_upsample_nearest_exact1d", _upsample_nearest_exact1d, kUpsampleNearestExact1d, kImages, kFloats);
  AE_UPSAMPLE(m, "upsample_nearest2d", upsample_nearest2d, kUpsampleNearest2d, kImages, kFloats);
  AE_UPSAMPLE(m, "_upsample_nearest_exact2d", _upsample_nearest_exact2d, kUpsampleNearestExact2d, kImages, kFloats);
  AE_UPSAMPLE(m, "upsample_nearest3d", upsample_nearest3d, kUpsampleNearest3d, kImages, kFloats);
  AE_UPSAMPLE(m, "_upsample_nearest_exact3d", _upsample_nearest_exact3d, kUpsampleNearestExact3d, kImages, kFloats);
  AE_UPSAMPLE(m, "upsample_linear1d", upsample_linear1d, kUpsampleLinear1d, kFloats, kFloats);
  AE_UPSAMPLE(m, "upsample_bilinear2d", upsample_bilinear2d, kUpsampleBilinear2d, kImages, kFloats);
  AE_UPSAMPLE(m, "upsample_bicubic2d", upsample_bicubic2d, kUpsampleBicubic2d, kImages, kFloats);
  AE_UPSAMPLE(m, "upsample_trilinear3d", upsample_trilinear3d, kUpsampleTrilinear3d, kFloats, kFloats);
  AE_UPSAMPLE(m, "_upsample_bilinear2d_aa", _upsample_bilinear2d_aa, kUpsampleBilinear2dAa, kWideFloats, kWideFloats);
  AE_UPSAMPLE(m, "_upsample_bicubic2d_aa", _upsample_bicubic2d_aa, kUpsampleBicubic2dAa, kWideFloats, kWideFloats);
  AE_OUT_FUNCTIONAL(m, "grid_sampler_2d", GridSamplerShape<2>, kGridSampler2d, kWideFloats);
  AE_OUT_FUNCTIONAL(m, "grid_sampler_3d", GridSamplerShape<3>, kGridSampler3d, kWideFloats);
  m.impl("grid_sampler_2d_backward",
         &grid_sampler_backward<"grid_sampler_2d_backward", 2, kGridSampler2dBackward, kGridSampler2dGrid>);
  m.impl("grid_sampler_3d_backward",
         &grid_sampler_backward<"grid_sampler_3d_backward", 3, kGridSampler3dBackward, kGridSampler3dGrid>);
  AE_OUT_FORMS(m, "im2col", ".out", Im2colShape, kIm2col, kFloats);
  AE_OUT_FORMS(m, "col2im", ".out", Col2imShape, kCol2im, kFloats);
}

}  // namespace
}  // namespace ae::engine
