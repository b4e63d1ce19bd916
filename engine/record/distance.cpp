// Distances between all pairs of rows of two matrices.
#include <ATen/ops/_cdist_backward_cpu_dispatch.h>
#include <ATen/ops/_cdist_forward_cpu_dispatch.h>

#include "engine/record/out_kernel.h"

namespace ae::engine {
namespace {

using at::IntArrayRef;
using at::Tensor;
using library::Cut;
using library::Operand;
using library::OutCall;
using library::Piece;

/// Groups of the batch, or stretches of the first matrix' rows; `other` is the place of the second matrix.
template <size_t other>
std::vector<Piece> along_rows(const Piece& all, std::span<const int64_t> attributes) {
  if (all[0].dim() > 2) return library::along_first(all, attributes);
  const int64_t pairs = all[other].sizes[0] * all.back().sizes[0];
  const Cut rows = library::cut(all.back().sizes[0], library::pieces_for(pairs));
  std::vector<Piece> pieces(rows.count, all);
  for (int p = 0; p < rows.count; ++p)
    for (size_t i = 0; i < all.size(); ++i)
      if (i != other) pieces[p][i] = all[i].narrow(0, rows.start(p), rows.length(p));
  return pieces;
}

// From 26 rows on, ATen takes matrix products for Euclidean distances: pieces of what is cut have more than that.
const OutCall<[](const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> mode, Tensor& out) {
  out.copy_(at::cpu::_cdist_forward(x1, x2, p, mode));
},
              &along_rows<1>>
    kDistance("cdist");
const OutCall<[](const Tensor& grad, const Tensor& x1, const Tensor& x2, double p, const Tensor& distances,
                 Tensor& out) { out.copy_(at::cpu::_cdist_backward(grad, x1, x2, p, distances)); },
              &along_rows<2>>
    kDistanceBackward("cdist_backward");

std::optional<at::DimVector> distance_sizes(const Tensor& x1, const Tensor& x2) {
  const int64_t dim = x1.dim();
  if (dim < 2 || x2.dim() != dim || x1.sizes().back() != x2.sizes().back() ||
      !x1.sizes().slice(0, dim - 2).equals(x2.sizes().slice(0, dim - 2))) {
    return std::nullopt;
  }
  at::DimVector sizes(x1.sizes());
  sizes.back() = x2.sizes()[dim - 2];
  return sizes;
}

struct DistanceShape : at::impl::MetaBase {
  void meta(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> mode) {
    const auto sizes = distance_sizes(x1, x2);
    if (sizes && p >= 0 && (!mode || (*mode >= 0 && *mode <= 2))) set_output_raw_strided(0, *sizes, {}, x1.options());
  }
};

struct DistanceBackwardShape : at::impl::MetaBase {
  void meta(const Tensor& grad, const Tensor& x1, const Tensor& x2, double p, const Tensor& distances) {
    const auto sizes = distance_sizes(x1, x2);
    if (sizes && p >= 0 && grad.sizes().equals(*sizes) && distances.sizes().equals(*sizes))
      set_output_raw_strided(0, x1.sizes(), {}, x1.options());
  }
};

constexpr uint64_t kTypes = type_bit(at::kFloat) | type_bit(at::kDouble);

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  AE_OUT_FUNCTIONAL(m, "_cdist_forward", DistanceShape, kDistance, kTypes);
  AE_OUT_FUNCTIONAL(m, "_cdist_backward", DistanceBackwardShape, kDistanceBackward, kTypes);
}

}  // namespace
}  // namespace ae::engine
