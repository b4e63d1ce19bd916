// Scans along one dimension: library nodes, cut along the other ones. Each line is scanned from its beginning by one
// thread, so that the pieces' bits are the whole's.
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/_cummax_helper_cpu_dispatch.h>
#include <ATen/ops/_cummin_helper_cpu_dispatch.h>
#include <ATen/ops/_logcumsumexp_cpu_dispatch.h>
#include <ATen/ops/cumprod_cpu_dispatch.h>
#include <ATen/ops/cumsum_cpu_dispatch.h>

#include "engine/library/beside.h"
#include "engine/library/out_call.h"
#include "engine/record/kernel.h"
#include "engine/record/reduce.h"
#include "engine/record/result.h"

namespace ae::engine {
namespace {

using at::Tensor;
using library::OutCall;

const OutCall<&at::cpu::cumsum_outf, library::beside_dim> kCumsum("cumsum");
const OutCall<&at::cpu::cumprod_outf, library::beside_dim> kCumprod("cumprod");
const OutCall<&at::cpu::_logcumsumexp_outf, library::beside_dim> kLogCumsumExp("logcumsumexp");
const OutCall<&at::cpu::_cummax_helper, library::beside_dim> kCummax("cummax");
const OutCall<&at::cpu::_cummin_helper, library::beside_dim> kCummin("cummin");

/// The dimension, counted from the front; nothing where PyTorch raises.
std::optional<int64_t> scanned(const Tensor& self, int64_t dim) {
  const int64_t limit = std::max<int64_t>(self.dim(), 1);
  if (dim < -limit || dim >= limit) return std::nullopt;
  return dim < 0 ? dim + limit : dim;
}

/// cumsum and cumprod.
template <const auto& node>
bool accumulate(Call& call, const Tensor& self, int64_t dim, std::optional<at::ScalarType> dtype) {
  check_devices({&self});
  const auto line = scanned(self, dim);
  const bool whole = c10::isIntegralType(self.scalar_type(), /*includeBool=*/true);
  const at::ScalarType type = dtype.value_or(whole ? at::kLong : self.scalar_type());
  if (!line || !is_plain(self) || !contains(kFloats | kInts, type)) return false;
  if (!prepare_result(call, self.sizes(), type, {&self}, {}, &self)) return false;
  if (self.numel() != 0) node.record(self, *line, type, result_of(call));
  return true;
}

bool log_cumsum_exp(Call& call, const Tensor& self, int64_t dim) {
  check_devices({&self});
  const auto line = scanned(self, dim);
  if (!line || !contains(kFloats, self.scalar_type())) return false;
  if (!prepare_result(call, self.sizes(), self.scalar_type(), {&self})) return false;
  if (self.numel() != 0) kLogCumsumExp.record(self, *line, result_of(call));
  return true;
}

/// Under cummax and cummin, which make the results.
template <const auto& node, OperatorName name>
void extreme_so_far(const Tensor& self, Tensor& values, Tensor& indices, int64_t dim) {
  check_devices({&self, &values, &indices});
  const auto line = scanned(self, dim);
  if (!line || !is_plain(self) || self.dim() == 0 || values.scalar_type() != self.scalar_type() ||
      !values.sizes().equals(self.sizes()) || !indices.sizes().equals(self.sizes())) {
    return Fallback<void(const Tensor&, Tensor&, Tensor&, int64_t)>::call(name.text, self, values, indices, dim);
  }
  if (self.numel() != 0) node.record(self, values, indices, *line);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  AE_FORMS(m, "cumsum", "", ".out", accumulate<kCumsum>);
  AE_FORMS(m, "cumprod", "", ".out", accumulate<kCumprod>);
  AE_FUNCTIONAL(m, "_logcumsumexp", log_cumsum_exp);
  AE_OUT(m, "_logcumsumexp.out", log_cumsum_exp);
  m.impl("_cummax_helper", &extreme_so_far<kCummax, "_cummax_helper">);
  m.impl("_cummin_helper", &extreme_so_far<kCummin, "_cummin_helper">);
}

}  // namespace
}  // namespace ae::engine
