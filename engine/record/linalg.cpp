// Linear algebra, by LAPACK. The `_ex` operators report what went wrong in a tensor; eigh and svd throw where they do
// not converge, so they are fences.
#include <ATen/native/LinearAlgebraUtils.h>
#include <ATen/ops/_cholesky_solve_helper_cpu_dispatch.h>
#include <ATen/ops/_linalg_det_cpu_dispatch.h>
#include <ATen/ops/_linalg_det_meta.h>
#include <ATen/ops/_linalg_eigh_cpu_dispatch.h>
#include <ATen/ops/_linalg_eigh_meta.h>
#include <ATen/ops/_linalg_slogdet_cpu_dispatch.h>
#include <ATen/ops/_linalg_slogdet_meta.h>
#include <ATen/ops/_linalg_solve_ex_cpu_dispatch.h>
#include <ATen/ops/_linalg_solve_ex_meta.h>
#include <ATen/ops/_linalg_svd_cpu_dispatch.h>
#include <ATen/ops/_linalg_svd_meta.h>
#include <ATen/ops/cholesky_inverse_cpu_dispatch.h>
#include <ATen/ops/linalg_cholesky_ex_cpu_dispatch.h>
#include <ATen/ops/linalg_cholesky_ex_meta.h>
#include <ATen/ops/linalg_cross_cpu_dispatch.h>
#include <ATen/ops/linalg_cross_meta.h>
#include <ATen/ops/linalg_inv_ex_cpu_dispatch.h>
#include <ATen/ops/linalg_inv_ex_meta.h>
#include <ATen/ops/linalg_lu_cpu_dispatch.h>
#include <ATen/ops/linalg_lu_factor_ex_cpu_dispatch.h>
#include <ATen/ops/linalg_lu_factor_ex_meta.h>
#include <ATen/ops/linalg_lu_meta.h>
#include <ATen/ops/linalg_lu_solve_cpu_dispatch.h>
#include <ATen/ops/linalg_lu_solve_meta.h>
#include <ATen/ops/linalg_qr_cpu_dispatch.h>
#include <ATen/ops/linalg_qr_meta.h>
#include <ATen/ops/linalg_solve_triangular_cpu_dispatch.h>
#include <ATen/ops/lu_unpack_cpu_dispatch.h>
#include <ATen/ops/lu_unpack_meta.h>
#include <ATen/ops/triangular_solve_cpu_dispatch.h>
#include <ATen/ops/triangular_solve_meta.h>

#include "engine/record/out_kernel.h"

namespace ae::engine {
namespace {

using at::DimVector;
using at::IntArrayRef;
using at::Tensor;
using library::OutCall;
using library::Piece;

/// Groups of a batch of matrices, if the operands all have it: the inputs are of one rank, and have more than a matrix.
template <size_t inputs>
std::vector<Piece> along_matrices(const Piece& all, std::span<const int64_t> attributes) {
  for (size_t i = 0; i < inputs; ++i)
    if (all[i].dim() < 3 || all[i].dim() != all[0].dim()) return {all};
  return library::along_first(all, attributes);
}
constexpr library::Cutter kOne = &along_matrices<1>;
constexpr library::Cutter kTwo = &along_matrices<2>;

const OutCall<&at::cpu::linalg_cholesky_ex_outf, kOne> kCholesky("linalg_cholesky");
const OutCall<&at::cpu::linalg_inv_ex_outf, kOne> kInverse("linalg_inv");
const OutCall<&at::cpu::_linalg_solve_ex_outf, kTwo> kSolve("linalg_solve");
const OutCall<&at::cpu::linalg_lu_factor_ex_outf, kOne> kLuFactor("linalg_lu_factor");
const OutCall<&at::cpu::linalg_lu_outf, kOne> kLu("linalg_lu");
const OutCall<&at::cpu::linalg_lu_solve_outf> kLuSolve("linalg_lu_solve");
const OutCall<&at::cpu::lu_unpack_outf, kOne> kLuUnpack("lu_unpack");
const OutCall<&at::cpu::linalg_qr_outf, kOne> kQr("linalg_qr");
const OutCall<&at::cpu::_linalg_eigh_outf, kOne> kEigh("linalg_eigh", /*can_fail=*/true);
const OutCall<&at::cpu::_linalg_svd_outf, kOne> kSvd("linalg_svd", /*can_fail=*/true);
const OutCall<&at::cpu::_linalg_det_outf, kOne> kDet("linalg_det");
const OutCall<&at::cpu::_linalg_slogdet_outf, kOne> kSlogdet("linalg_slogdet");
const OutCall<&at::cpu::linalg_cross_outf> kCross("linalg_cross");
const OutCall<&at::cpu::triangular_solve_outf, kTwo> kTriangularSolve("triangular_solve");
const OutCall<&at::cpu::linalg_solve_triangular_outf, kTwo> kSolveTriangular("linalg_solve_triangular");
const OutCall<&at::cpu::cholesky_inverse_outf, kOne> kCholeskyInverse("cholesky_inverse");
const OutCall<[](const Tensor& self, const Tensor& factor, bool upper, Tensor& out) {
  out.copy_(at::cpu::_cholesky_solve_helper(self, factor, upper));
},
              kTwo>
    kCholeskySolve("cholesky_solve");

/// The rule of an operator whose last argument asks it to throw for what it finds in the data: that is left to the
/// fallback, which throws at the call.
template <class Rule>
struct Unchecked : Rule {
  template <class... Args>
  void meta(const Args&... args) {
    if (!std::get<sizeof...(Args) - 1>(std::tie(args...))) Rule::meta(args...);
  }
};

/// From the right, ATen solves for complex numbers by way of a conjugate view of the result.
struct SolveShape : Unchecked<at::meta::structured__linalg_solve_ex> {
  void meta(const Tensor& self, const Tensor& b, bool left, bool check_errors) {
    if (left || !self.is_complex()) Unchecked::meta(self, b, left, check_errors);
  }
};

// CPU has no factorization without pivoting, and says so in its kernel.
struct LuFactorShape : Unchecked<at::meta::structured_linalg_lu_factor_ex> {
  void meta(const Tensor& self, bool pivot, bool check_errors) {
    if (pivot) Unchecked::meta(self, pivot, check_errors);
  }
};
struct LuShape : at::meta::structured_linalg_lu {
  void meta(const Tensor& self, bool pivot) {
    if (pivot) structured_linalg_lu::meta(self, pivot);
  }
};

struct SvdShape : at::meta::structured__linalg_svd {
  void meta(const Tensor& self, bool full_matrices, bool compute_uv, std::optional<c10::string_view> driver) {
    if (!driver) structured__linalg_svd::meta(self, full_matrices, compute_uv, driver);  // CPU has no drivers
  }
};

template <class Rule>
using Pivoted = Indexed<Rule, at::kInt>;

bool is_square(const Tensor& tensor) {
  return tensor.dim() >= 2 && tensor.sizes()[tensor.dim() - 1] == tensor.sizes()[tensor.dim() - 2];
}

IntArrayRef batch_of(const Tensor& matrices) { return matrices.sizes().slice(0, matrices.dim() - 2); }

DimVector column_major(IntArrayRef sizes) { return at::native::batched_matrix_contiguous_strides(sizes, true); }

struct SolveTriangularShape : at::impl::MetaBase {
  void meta(const Tensor& self, const Tensor& b, bool, bool left, bool) {
    if (!is_square(self) || b.dim() < 2 || !batch_of(self).equals(batch_of(b)) ||
        b.sizes()[b.dim() - (left ? 2 : 1)] != self.sizes().back()) {
      return;
    }
    set_output_strided(0, b.sizes(), column_major(b.sizes()), b.options());
  }
};

struct CholeskyInverseShape : at::impl::MetaBase {
  void meta(const Tensor& self, bool) {
    if (is_square(self)) set_output_strided(0, self.sizes(), column_major(self.sizes()), self.options());
  }
};

struct CholeskySolveShape : at::impl::MetaBase {
  void meta(const Tensor& self, const Tensor& factor, bool) {
    if (is_square(factor) && self.dim() >= 2 && batch_of(self).equals(batch_of(factor)) &&
        self.sizes()[self.dim() - 2] == factor.sizes().back()) {
      set_output_strided(0, self.sizes(), column_major(self.sizes()), self.options());
    }
  }
};

constexpr uint64_t kReals = type_bit(at::kFloat) | type_bit(at::kDouble);

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  AE_OUT_FUNCTIONAL(m, "linalg_cholesky_ex", Unchecked<at::meta::structured_linalg_cholesky_ex>, kCholesky,
                    kLapackTypes);
  AE_OUT_FUNCTIONAL(m, "linalg_inv_ex", Unchecked<at::meta::structured_linalg_inv_ex>, kInverse, kLapackTypes);
  AE_OUT_FUNCTIONAL(m, "_linalg_solve_ex", SolveShape, kSolve, kLapackTypes);
  AE_OUT_FUNCTIONAL(m, "linalg_lu_factor_ex", LuFactorShape, kLuFactor, kLapackTypes);
  AE_OUT_FUNCTIONAL(m, "linalg_lu", LuShape, kLu, kLapackTypes);
  AE_OUT_FORMS(m, "linalg_lu_solve", ".out", Pivoted<at::meta::structured_linalg_lu_solve>, kLuSolve,
               kReals);  // complex ones may answer with a conjugate view
  AE_OUT_FUNCTIONAL(m, "lu_unpack", Pivoted<at::meta::structured_lu_unpack>, kLuUnpack, kLapackTypes);
  AE_OUT_FUNCTIONAL(m, "linalg_qr", at::meta::structured_linalg_qr, kQr, kLapackTypes);
  AE_OUT_FUNCTIONAL(m, "_linalg_eigh", at::meta::structured__linalg_eigh, kEigh, kLapackTypes);
  AE_OUT_FUNCTIONAL(m, "_linalg_svd", SvdShape, kSvd, kLapackTypes);
  AE_OUT_FUNCTIONAL(m, "_linalg_det", at::meta::structured__linalg_det, kDet, kLapackTypes);
  AE_OUT_FUNCTIONAL(m, "_linalg_slogdet", at::meta::structured__linalg_slogdet, kSlogdet, kLapackTypes);
  AE_OUT_FORMS(m, "linalg_cross", ".out", at::meta::structured_linalg_cross, kCross, kLapackTypes | kFloats);
  AE_OUT_FUNCTIONAL(m, "triangular_solve", at::meta::structured_triangular_solve, kTriangularSolve, kLapackTypes);
  AE_OUT_FORMS(m, "linalg_solve_triangular", ".out", SolveTriangularShape, kSolveTriangular, kLapackTypes);
  AE_OUT_FORMS(m, "cholesky_inverse", ".out", CholeskyInverseShape, kCholeskyInverse, kLapackTypes);
  AE_OUT_FUNCTIONAL(m, "_cholesky_solve_helper", CholeskySolveShape, kCholeskySolve, kLapackTypes);
}

}  // namespace
}  // namespace ae::engine
