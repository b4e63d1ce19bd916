// Matrix products: library nodes for the floating dtypes; others, and whatever ATen rejects, go to the CPU fallback.
#include "engine/library/operators.h"
#include "engine/record/kernel.h"
#include "engine/record/result.h"

namespace ae::engine {
namespace {

bool is_product(const at::Tensor& a, const at::Tensor& b, int64_t dims) {
  check_devices({&a, &b});
  return a.dim() == dims && b.dim() == dims && a.scalar_type() == b.scalar_type() &&
         contains(kFloats, a.scalar_type()) && a.sizes()[dims - 1] == b.sizes()[dims - 2] &&
         (dims == 2 || a.sizes()[0] == b.sizes()[0]) && a.numel() != 0 && b.numel() != 0;
}

/// True if `from` can be broadcast to `to` (which has no zeros).
bool is_expandable(at::IntArrayRef from, at::IntArrayRef to) {
  if (from.size() > to.size()) return false;
  const size_t missing = to.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d)
    if (from[d] != 1 && from[d] != to[missing + d]) return false;
  return true;
}

bool is_real(const at::Scalar& beta, const at::Scalar& alpha) { return !beta.isComplex() && !alpha.isComplex(); }

/// out = beta * self + alpha * product, where `self` is broadcast to `sizes`.
bool record_with_self(Call& call, int id, const at::Tensor& self, const at::Tensor& a, const at::Tensor& b,
                      const at::Scalar& beta, const at::Scalar& alpha, at::IntArrayRef sizes) {
  check_devices({&self});
  if (self.scalar_type() != a.scalar_type() || !is_real(beta, alpha) || !is_expandable(self.sizes(), sizes))
    return false;
  if (!prepare_result(call, sizes, a.scalar_type(), {&self, &a, &b}, {}, &self)) return false;
  record_library(id, {self, a, b}, {result_of(call)}, {}, {beta.toDouble(), alpha.toDouble()});
  return true;
}

bool mm(Call& call, const at::Tensor& self, const at::Tensor& mat2) {
  if (!is_product(self, mat2, 2)) return false;
  if (!prepare_result(call, {self.sizes()[0], mat2.sizes()[1]}, self.scalar_type(), {&self, &mat2})) return false;
  record_library(library::kMm, {self, mat2}, {result_of(call)});
  return true;
}

bool addmm(Call& call, const at::Tensor& self, const at::Tensor& mat1, const at::Tensor& mat2, const at::Scalar& beta,
           const at::Scalar& alpha) {
  if (!is_product(mat1, mat2, 2)) return false;
  return record_with_self(call, library::kAddmm, self, mat1, mat2, beta, alpha, {mat1.sizes()[0], mat2.sizes()[1]});
}

bool bmm(Call& call, const at::Tensor& self, const at::Tensor& mat2) {
  if (!is_product(self, mat2, 3)) return false;
  const int64_t sizes[] = {self.sizes()[0], self.sizes()[1], mat2.sizes()[2]};
  if (!prepare_result(call, sizes, self.scalar_type(), {&self, &mat2})) return false;
  record_library(library::kBmm, {self, mat2}, {result_of(call)});
  return true;
}

bool baddbmm(Call& call, const at::Tensor& self, const at::Tensor& batch1, const at::Tensor& batch2,
             const at::Scalar& beta, const at::Scalar& alpha) {
  if (!is_product(batch1, batch2, 3)) return false;
  const int64_t sizes[] = {batch1.sizes()[0], batch1.sizes()[1], batch2.sizes()[2]};
  return record_with_self(call, library::kBaddbmm, self, batch1, batch2, beta, alpha, sizes);
}

bool is_matrix_vector(const at::Tensor& mat, const at::Tensor& vec) {
  check_devices({&mat, &vec});
  return mat.dim() == 2 && vec.dim() == 1 && mat.sizes()[1] == vec.sizes()[0] && mat.numel() != 0 &&
         mat.scalar_type() == vec.scalar_type() && contains(kFloats, mat.scalar_type());
}

bool mv(Call& call, const at::Tensor& self, const at::Tensor& vec) {
  if (!is_matrix_vector(self, vec)) return false;
  if (!prepare_result(call, {self.sizes()[0]}, self.scalar_type(), {&self, &vec})) return false;
  record_library(library::kAddmv, {self, vec}, {result_of(call)}, {0}, {0.0, 1.0});
  return true;
}

bool addmv(Call& call, const at::Tensor& self, const at::Tensor& mat, const at::Tensor& vec, const at::Scalar& beta,
           const at::Scalar& alpha) {
  if (!is_matrix_vector(mat, vec)) return false;
  check_devices({&self});
  const int64_t rows = mat.sizes()[0];
  if (self.scalar_type() != mat.scalar_type() || !is_real(beta, alpha) || !is_expandable(self.sizes(), {rows}))
    return false;
  if (!prepare_result(call, {rows}, mat.scalar_type(), {&self, &mat, &vec}, {}, &self)) return false;
  record_library(library::kAddmv, {self, mat, vec}, {result_of(call)}, {1}, {beta.toDouble(), alpha.toDouble()});
  return true;
}

bool dot(Call& call, const at::Tensor& self, const at::Tensor& tensor) {
  check_devices({&self, &tensor});
  if (self.dim() != 1 || tensor.dim() != 1 || self.numel() != tensor.numel() || self.numel() == 0 ||
      self.scalar_type() != tensor.scalar_type() || !contains(kFloats, self.scalar_type())) {
    return false;
  }
  if (!prepare_result(call, {}, self.scalar_type(), {&self, &tensor})) return false;
  record_library(library::kDot, {self, tensor}, {result_of(call)});
  return true;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  AE_FUNCTIONAL(m, "mm", mm);
  AE_OUT(m, "mm.out", mm);
  AE_FORMS(m, "addmm", "", ".out", addmm);
  AE_FUNCTIONAL(m, "bmm", bmm);
  AE_OUT(m, "bmm.out", bmm);
  AE_FORMS(m, "baddbmm", "", ".out", baddbmm);
  AE_FUNCTIONAL(m, "mv", mv);
  AE_FORMS(m, "addmv", "", ".out", addmv);
  AE_FUNCTIONAL(m, "dot", dot);
}

}  // namespace
}  // namespace ae::engine
