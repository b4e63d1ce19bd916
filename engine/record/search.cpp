// Finding values: searchsorted, bucketize, isin, histc, nonzero_static.
#include <ATen/ops/bucketize_cpu_dispatch.h>
#include <ATen/ops/histc_cpu_dispatch.h>
#include <ATen/ops/isin_cpu_dispatch.h>
#include <ATen/ops/nonzero_static_cpu_dispatch.h>
#include <ATen/ops/searchsorted_cpu_dispatch.h>

#include <cmath>
#include <string_view>

#include "engine/library/out_call.h"
#include "engine/record/update.h"

namespace ae::engine {
namespace {

using at::Scalar;
using at::Tensor;
using library::OutCall;
using OptionalTensor = std::optional<Tensor>;
using Side = std::optional<std::string_view>;

constexpr auto search_into = [](const Tensor& sorted, const Tensor& values, const OptionalTensor& sorter, bool right,
                                Tensor& out) {
  const bool narrow = out.scalar_type() == at::kInt;
  at::cpu::searchsorted_outf(sorted, values, narrow, right, std::nullopt, sorter, out);
};
constexpr auto search_number_into = [](const Tensor& sorted, const Scalar& value, const OptionalTensor& sorter,
                                       bool right, Tensor& out) {
  const bool narrow = out.scalar_type() == at::kInt;
  at::cpu::searchsorted_outf(sorted, value, narrow, right, std::nullopt, sorter, out);
};
constexpr auto isin_into = [](const Tensor& elements, const Tensor& test, bool unique, bool invert, Tensor& out) {
  at::cpu::isin_outf(elements, test, unique, invert, out);
};
constexpr auto isin_number_into = [](const Tensor& elements, const Scalar& test, bool unique, bool invert,
                                     Tensor& out) { at::cpu::isin_outf(elements, test, unique, invert, out); };
constexpr auto number_isin_into = [](const Scalar& element, const Tensor& test, bool unique, bool invert, Tensor& out) {
  at::cpu::isin_outf(element, test, unique, invert, out);
};

/// Stretches of the searched values, where all are searched in one sequence.
std::vector<library::Piece> values_apart(const library::Piece& all, std::span<const int64_t>) {
  if (all[0].dim() != 1 || all.back().dim() == 0) return {all};
  const library::Cut stretches = library::cut(all.back().sizes[0], library::pieces_for(all.back().numel()));
  std::vector<library::Piece> pieces(stretches.count, all);
  for (int p = 0; p < stretches.count; ++p) {
    pieces[p][1] = all[1].narrow(0, stretches.start(p), stretches.length(p));
    pieces[p].back() = all.back().narrow(0, stretches.start(p), stretches.length(p));
  }
  return pieces;
}

const OutCall<search_into, values_apart> kSearch("searchsorted");
const OutCall<search_number_into> kSearchNumber("searchsorted");
const OutCall<isin_into> kIsin("isin");
const OutCall<isin_number_into> kIsinNumber("isin");
const OutCall<number_isin_into> kNumberIsin("isin");
const OutCall<&at::cpu::histc_outf> kHistc("histc");
const OutCall<&at::cpu::nonzero_static_outf> kNonzeroStatic("nonzero_static");

constexpr uint64_t kSearched = kFloats | kInts;

/// A sequence to search in, and a side that does not contradict `right`.
bool is_searchable(const Tensor& sorted, bool right, const Side& side, const OptionalTensor& sorter) {
  if (side && *side != "left" && *side != "right") return false;
  if (side && *side == "left" && right) return false;
  if (has(sorter) &&
      (!is_neuron(*sorter) || sorter->scalar_type() != at::kLong || !sorter->sizes().equals(sorted.sizes()))) {
    return false;
  }
  return contains(kSearched, sorted.scalar_type()) && sorted.dim() != 0;
}

/// Whether the sorter's values are known; unknown ones are checked when the node runs.
Known known_sorter(const Tensor& sorted, const OptionalTensor& sorter) {
  return has(sorter) ? known_range(*sorter, 0, sorted.sizes().back() - 1) : Known::inside;
}

/// Contiguous operands are what the kernel wants.
OptionalTensor packed(const OptionalTensor& sorter) {
  return has(sorter) ? OptionalTensor(sorter->contiguous()) : std::nullopt;
}

bool searchsorted(Call& call, const Tensor& sorted, const Tensor& self, bool narrow, bool right, Side side,
                  const OptionalTensor& sorter) {
  check_devices({&sorted, &self});
  if (!is_searchable(sorted, right, side, sorter) || self.scalar_type() != sorted.scalar_type()) return false;
  const bool one_sequence = sorted.dim() == 1;
  if (!one_sequence) {
    if (self.dim() != sorted.dim()) return false;
    for (int64_t d = 0; d + 1 < self.dim(); ++d)
      if (self.sizes()[d] != sorted.sizes()[d]) return false;
  }
  const Known known = known_sorter(sorted, sorter);
  if (known == Known::outside || !prepare_result(call, self.sizes(), narrow ? at::kInt : at::kLong,
                                                 {&sorted, &self, has(sorter) ? &*sorter : &self})) {
    return false;
  }
  if (self.numel() != 0)
    kSearch.record_fence(known == Known::unknown, sorted.contiguous(), self.contiguous(), packed(sorter),
                         right || side == "right", result_of(call));
  return true;
}

bool searchsorted_number(Call& call, const Tensor& sorted, const Scalar& self, bool narrow, bool right, Side side,
                         const OptionalTensor& sorter) {
  check_devices({&sorted});
  if (!is_searchable(sorted, right, side, sorter) || sorted.dim() != 1 || self.isComplex()) return false;
  const Known known = known_sorter(sorted, sorter);
  if (known == Known::outside || !prepare_result(call, {}, narrow ? at::kInt : at::kLong, {&sorted})) return false;
  kSearchNumber.record_fence(known == Known::unknown, sorted.contiguous(), self, packed(sorter),
                             right || side == "right", result_of(call));
  return true;
}

bool bucketize(Call& call, const Tensor& self, const Tensor& boundaries, bool narrow, bool right) {
  return boundaries.dim() == 1 && searchsorted(call, boundaries, self, narrow, right, std::nullopt, std::nullopt);
}

bool bucketize_number(Call& call, const Scalar& self, const Tensor& boundaries, bool narrow, bool right) {
  return searchsorted_number(call, boundaries, self, narrow, right, std::nullopt, std::nullopt);
}

bool isin(Call& call, const Tensor& elements, const Tensor& test, bool unique, bool invert) {
  check_devices({&elements, &test});
  if (!contains(kSearched, elements.scalar_type()) || test.scalar_type() != elements.scalar_type() ||
      !prepare_result(call, elements.sizes(), at::kBool, {&elements, &test})) {
    return false;
  }
  if (elements.numel() != 0) kIsin.record(elements, test, unique, invert, result_of(call));
  return true;
}

bool isin_number(Call& call, const Tensor& elements, const Scalar& test, bool unique, bool invert) {
  check_devices({&elements});
  if (!contains(kSearched, elements.scalar_type()) || test.isComplex() ||
      !prepare_result(call, elements.sizes(), at::kBool, {&elements})) {
    return false;
  }
  if (elements.numel() != 0) kIsinNumber.record(elements, test, unique, invert, result_of(call));
  return true;
}

bool number_isin(Call& call, const Scalar& element, const Tensor& test, bool unique, bool invert) {
  check_devices({&test});
  if (!contains(kSearched, test.scalar_type()) || element.isComplex() ||
      !prepare_result(call, {}, at::kBool, {&test})) {
    return false;
  }
  kNumberIsin.record(element, test, unique, invert, result_of(call));
  return true;
}

bool histc(Call& call, const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max) {
  check_devices({&self});
  if (!contains(kFloats, self.scalar_type()) || bins <= 0 || min.isComplex() || max.isComplex()) return false;
  const double low = min.toDouble(), high = max.toDouble();
  if (!std::isfinite(low) || !std::isfinite(high) || low > high) return false;
  if (!prepare_result(call, {bins}, self.scalar_type(), {&self})) return false;
  // Equal bounds stand for those of the data, which may not be finite.
  kHistc.record_fence(/*can_fail=*/low == high, self, bins, min, max, result_of(call));
  return true;
}

bool nonzero_static(Call& call, const Tensor& self, c10::SymInt symbolic_size, int64_t fill) {
  check_devices({&self});
  const int64_t size = symbolic_size.expect_int();
  if (size < 0 || !contains(kIndexed, self.scalar_type()) ||
      !prepare_result(call, {size, self.dim()}, at::kLong, {&self})) {
    return false;
  }
  if (result_of(call).numel() != 0) kNonzeroStatic.record(self, size, fill, result_of(call));
  return true;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  AE_FUNCTIONAL(m, "searchsorted.Tensor", searchsorted);
  AE_OUT(m, "searchsorted.Tensor_out", searchsorted);
  AE_FUNCTIONAL(m, "searchsorted.Scalar", searchsorted_number);
  AE_OUT(m, "searchsorted.Scalar_out", searchsorted_number);
  AE_FUNCTIONAL(m, "bucketize.Tensor", bucketize);
  AE_OUT(m, "bucketize.Tensor_out", bucketize);
  AE_FUNCTIONAL(m, "bucketize.Scalar", bucketize_number);
  AE_FUNCTIONAL(m, "isin.Tensor_Tensor", isin);
  AE_OUT(m, "isin.Tensor_Tensor_out", isin);
  AE_FUNCTIONAL(m, "isin.Tensor_Scalar", isin_number);
  AE_OUT(m, "isin.Tensor_Scalar_out", isin_number);
  AE_FUNCTIONAL(m, "isin.Scalar_Tensor", number_isin);
  AE_OUT(m, "isin.Scalar_Tensor_out", number_isin);
  AE_FUNCTIONAL(m, "histc", histc);
  AE_OUT(m, "histc.out", histc);
  AE_FUNCTIONAL(m, "nonzero_static", nonzero_static);
  AE_OUT(m, "nonzero_static.out", nonzero_static);
}

}  // namespace
}  // namespace ae::engine
