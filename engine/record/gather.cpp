// Reading elements by index: gather, index_select, take, repeat_interleave with a known size, and unfold's backward.
#include <ATen/ops/gather_cpu_dispatch.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/repeat_interleave_cpu_dispatch.h>
#include <ATen/ops/take_cpu_dispatch.h>
#include <ATen/ops/unfold_backward_cpu_dispatch.h>

#include "engine/library/operators.h"
#include "engine/library/out_call.h"
#include "engine/record/data_shape.h"
#include "engine/record/update.h"

namespace ae::engine {
namespace {

using at::Tensor;
using library::OutCall;

constexpr auto gather_into = [](const Tensor& self, const Tensor& index, int64_t dim, Tensor& out) {
  at::cpu::gather_outf(self, dim, index, /*sparse_grad=*/false, out);
};
constexpr auto unfold_backward_into = [](const Tensor& grad, at::IntArrayRef sizes, int64_t dim, int64_t size,
                                         int64_t step, Tensor& out) {
  out.copy_(at::cpu::unfold_backward(grad, sizes, dim, size, step));
};
constexpr auto repeat_into = [](const Tensor& repeats, Tensor& out) {
  out.copy_(at::cpu::repeat_interleave(repeats, out.size(0)));
};

/// Stretches of the index's first dimension.
std::vector<library::Piece> rows_of_index(const library::Piece& all, std::span<const int64_t> attributes) {
  const library::Operand &self = all[0], &index = all[1], &out = all[2];
  if (index.dim() == 0 || self.dim() == 0) return {all};
  const library::Cut rows = library::cut(index.sizes[0], library::pieces_for(index.numel()));
  std::vector<library::Piece> pieces;
  for (int p = 0; p < rows.count; ++p) {
    const auto part = [&](const library::Operand& operand) { return operand.narrow(0, rows.start(p), rows.length(p)); };
    pieces.push_back({attributes[0] == 0 ? self : part(self), part(index), part(out)});
  }
  return pieces;
}

const OutCall<gather_into, rows_of_index> kGather("gather");
const OutCall<&at::cpu::take_outf> kTake("take");
const OutCall<unfold_backward_into> kUnfoldBackward("unfold_backward");
const OutCall<repeat_into> kRepeatInterleave("repeat_interleave");

/// Shapes and dtypes that the CPU accepts.
bool is_gatherable(const Tensor& self, int64_t dim, const Tensor& index) {
  if (dim < 0 || !contains(kIndexed, self.scalar_type())) return false;
  if (index.numel() == 0) return true;
  if (!is_index(index)) return false;
  const int64_t rank = std::max<int64_t>(self.dim(), 1);
  if (self.numel() == 0 || std::max<int64_t>(index.dim(), 1) != rank) return false;
  for (int64_t d = 0; d < rank; ++d)
    if (d != dim && extent_of(index, d) > extent_of(self, d)) return false;
  return true;
}

bool gather(Call& call, const Tensor& self, int64_t dim, const Tensor& index, bool /*sparse_grad*/) {
  check_devices({&self, &index});
  dim = valid_dim(self, dim);
  if (!is_gatherable(self, dim, index)) return false;
  const Known known = known_range(index, 0, extent_of(self, dim) - 1);
  if (known == Known::outside || !prepare_result(call, index.sizes(), self.scalar_type(), {&self, &index}))
    return false;
  if (index.numel() != 0) kGather.record_fence(known == Known::unknown, self, index, dim, result_of(call));
  return true;
}

bool index_select(Call& call, const Tensor& self, int64_t dim, const Tensor& index) {
  check_devices({&self, &index});
  dim = valid_dim(self, dim);
  if (dim < 0 || index.dim() > 1 || !is_index(index) || !is_recordable(self.scalar_type())) return false;
  if (self.dim() == 0 ? index.numel() != 1 : self.numel() == 0 && index.numel() != 0) return false;
  const Known known = known_range(index, 0, extent_of(self, dim) - 1);
  at::DimVector sizes(self.sizes());
  if (!sizes.empty()) sizes[dim] = index.numel();
  if (known == Known::outside || !prepare_result(call, sizes, self.scalar_type(), {&self, &index})) return false;
  const Tensor& result = result_of(call);
  if (result.numel() != 0)
    record_library(library::kIndexSelect, {self, index}, {result}, {dim}, {}, /*can_fail=*/known == Known::unknown);
  return true;
}

bool take(Call& call, const Tensor& self, const Tensor& index) {
  check_devices({&self, &index});
  if (index.scalar_type() != at::kLong || !contains(kIndexed, self.scalar_type())) return false;
  if (self.numel() == 0 && index.numel() != 0) return false;
  const Known known = known_range(index, -self.numel(), self.numel() - 1);
  if (known == Known::outside || !prepare_result(call, index.sizes(), self.scalar_type(), {&self, &index}))
    return false;
  if (index.numel() != 0) kTake.record_fence(known == Known::unknown, self, index, result_of(call));
  return true;
}

Tensor unfold_backward(const Tensor& grad, c10::SymIntArrayRef symbolic_sizes, int64_t dim, int64_t size,
                       int64_t step) {
  check_devices({&grad});
  const auto sizes = C10_AS_INTARRAYREF_SLOW(symbolic_sizes);
  if (!contains(kIndexed, grad.scalar_type()))
    return Fallback<Tensor(const Tensor&, c10::SymIntArrayRef, int64_t, int64_t, int64_t)>::call(
        "unfold_backward", grad, symbolic_sizes, dim, size, step);
  const Tensor result = make_tensor(sizes, grad.scalar_type());
  if (grad.numel() == 0) return result.zero_();
  kUnfoldBackward.record(grad, sizes, dim, size, step, result);
  return result;
}

/// Position i of `repeats` repeats[i] times. The result's size is known, or waited for.
Tensor repeat_interleave(const Tensor& repeats, std::optional<c10::SymInt> output_size) {
  check_devices({&repeats});
  const bool plain = repeats.dim() == 1 && is_index(repeats) && repeats.numel() != 0;
  Tensor result;
  if (!output_size || !plain) {
    result = on_host(repeats, [&](const Tensor& host) { return at::repeat_interleave_symint(host, output_size); });
  } else {
    result = make_tensor({output_size->expect_int()}, repeats.scalar_type());
    kRepeatInterleave.record_fence(/*can_fail=*/true, repeats, result);
  }
  mark_range(result, 0, std::max<int64_t>(repeats.numel(), 1) - 1);
  return result;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  AE_FUNCTIONAL(m, "gather", gather);
  AE_OUT(m, "gather.out", gather);
  AE_FUNCTIONAL(m, "index_select", index_select);
  AE_OUT(m, "index_select.out", index_select);
  AE_FUNCTIONAL(m, "take", take);
  AE_OUT(m, "take.out", take);
  m.impl("unfold_backward", &unfold_backward);
  m.impl("repeat_interleave.Tensor", &repeat_interleave);
}

}  // namespace
}  // namespace ae::engine
