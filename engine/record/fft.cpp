// Fourier transforms, by MKL. Their results have the strides that ATen gives them: transformed dimensions last.
#include <ATen/ops/_fft_c2c_cpu_dispatch.h>
#include <ATen/ops/_fft_c2r_cpu_dispatch.h>
#include <ATen/ops/_fft_r2c_cpu_dispatch.h>

#include <algorithm>
#include <numeric>

#include "engine/record/out_kernel.h"

namespace ae::engine {
namespace {

using at::DimVector;
using at::IntArrayRef;
using at::Tensor;
using library::OutCall;
using library::Piece;

/// Groups of the first dimension that is not transformed: the attributes begin with the list of those that are.
std::vector<Piece> along_other(const Piece& all, std::span<const int64_t> attributes) {
  const auto transformed = attributes.subspan(1, static_cast<size_t>(attributes[0]));
  for (int64_t dim = 0; dim < all[0].dim(); ++dim)
    if (all[0].sizes[dim] > 1 && std::ranges::find(transformed, dim) == transformed.end())
      return library::cut_along(all, dim, library::pieces_for(all[0].numel()));
  return {all};
}

const OutCall<&at::cpu::_fft_c2c_outf, &along_other> kComplexToComplex("fft_c2c");
const OutCall<&at::cpu::_fft_r2c_outf, &along_other> kRealToComplex("fft_r2c");
const OutCall<&at::cpu::_fft_c2r_outf, &along_other> kComplexToReal("fft_c2r");

/// Sizes and strides of one step.
struct Geometry {
  DimVector sizes, strides;
};

/// One transform over `dims`, the last of which gets `last_size`: the others come first in the result, in the order of
/// their strides, then `dims` as they stand. Ties of strides are left as ATen's own sort leaves them.
Geometry transform(const Geometry& from, IntArrayRef dims, int64_t last_size) {
  const auto rank = static_cast<int64_t>(from.sizes.size());
  DimVector order(rank);
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto others = std::partition(order.begin(), order.end(),
                                     [&](int64_t d) { return std::find(dims.begin(), dims.end(), d) == dims.end(); });
  std::sort(order.begin(), others, [&](int64_t a, int64_t b) { return from.strides[a] > from.strides[b]; });
  std::copy(dims.begin(), dims.end(), others);
  Geometry to{from.sizes, DimVector(rank)};
  to.sizes[dims.back()] = last_size;
  int64_t stride = 1;
  for (int64_t i = rank - 1; i >= 0; --i) {
    to.strides[order[i]] = stride;
    stride *= to.sizes[order[i]];
  }
  return to;
}

/// The dimensions in the order in which they are transformed: by their strides, but for the last ones.
DimVector sorted(IntArrayRef dims, const Geometry& from, size_t fixed) {
  DimVector result(dims);
  std::sort(result.begin(), result.end() - static_cast<int64_t>(fixed),
            [&](int64_t a, int64_t b) { return from.strides[a] > from.strides[b]; });
  return result;
}

bool are_plain(IntArrayRef dims, const Tensor& self) {
  if (dims.empty()) return false;
  uint64_t seen = 0;
  for (const int64_t dim : dims) {
    if (dim < 0 || dim >= std::min<int64_t>(self.dim(), 64) || (seen >> dim & 1)) return false;
    seen |= uint64_t{1} << dim;
  }
  return true;
}

Geometry geometry_of(const Tensor& self) { return {DimVector(self.sizes()), DimVector(self.strides())}; }

struct ComplexToComplexShape : at::impl::MetaBase {
  void meta(const Tensor& self, IntArrayRef dim, int64_t, bool) {
    if (!are_plain(dim, self)) return;
    const Geometry from = geometry_of(self);
    const DimVector order = sorted(dim, from, 0);
    const Geometry to = transform(from, order, from.sizes[order.back()]);
    set_output_strided(0, to.sizes, to.strides, self.options());
  }
};

struct RealToComplexShape : at::impl::MetaBase {
  void meta(const Tensor& self, IntArrayRef dim, int64_t, bool onesided) {
    if (!are_plain(dim, self)) return;
    const Geometry from = geometry_of(self);
    const int64_t size = from.sizes[dim.back()];
    const Geometry to = transform(from, sorted(dim, from, 1), onesided ? size / 2 + 1 : size);
    set_output_strided(0, to.sizes, to.strides, self.options().dtype(c10::toComplexType(self.scalar_type())));
  }
};

struct ComplexToRealShape : at::impl::MetaBase {
  void meta(const Tensor& self, IntArrayRef dim, int64_t, int64_t last_dim_size) {
    if (!are_plain(dim, self) || last_dim_size < 1) return;
    Geometry from = geometry_of(self);
    if (from.sizes[dim.back()] != last_dim_size / 2 + 1) return;
    if (dim.size() > 1) {  // the other dimensions are transformed before, from complex to complex
      const DimVector order = sorted(dim.slice(0, dim.size() - 1), from, 0);
      from = transform(from, order, from.sizes[order.back()]);
    }
    const Geometry to = transform(from, dim.slice(dim.size() - 1), last_dim_size);
    set_output_strided(0, to.sizes, to.strides, self.options().dtype(c10::toRealValueType(self.scalar_type())));
  }
};

constexpr uint64_t kReals = type_bit(at::kFloat) | type_bit(at::kDouble);

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  AE_OUT_FORMS(m, "_fft_c2c", ".out", ComplexToComplexShape, kComplexToComplex, kComplexes);
  AE_OUT_FORMS(m, "_fft_r2c", ".out", RealToComplexShape, kRealToComplex, kReals);
  AE_OUT_FORMS(m, "_fft_c2r", ".out", ComplexToRealShape, kComplexToReal, kComplexes);
}

}  // namespace
}  // namespace ae::engine
