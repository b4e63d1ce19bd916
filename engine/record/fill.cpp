// fill_, zero_ and arange.
#include <ATen/MemoryOverlap.h>

#include <cmath>

#include "engine/record/fill.h"
#include "engine/record/kernel.h"

namespace ae::engine {
namespace {

/// A view of `self` in which each element stands once: expanded dimensions are taken at one place. Undefined if `self`
/// overlaps itself in another way.
at::Tensor without_expansion(const at::Tensor& self) {
  if (at::has_internal_overlap(self) == at::MemOverlap::No) return self;
  at::DimVector sizes(self.sizes());
  for (int64_t d = 0; d < self.dim(); ++d)
    if (self.stride(d) == 0) sizes[d] = 1;
  at::Tensor view = self.as_strided(sizes, self.strides(), self.storage_offset());
  return view.is_non_overlapping_and_dense() ? view : at::Tensor();
}

/// Whole numbers that fill all of a Buffer are known from now on (see known.h).
void note_value(const at::Tensor& self, const at::Scalar& value) {
  if (self.scalar_type() != at::kLong || !self.is_non_overlapping_and_dense()) return;
  fusion::Buffer& buffer = *buffer_of(self);
  if (static_cast<int64_t>(self.nbytes()) != buffer.nbytes) return;
  buffer.low = buffer.high = value.to<int64_t>();
  buffer.known.store(fusion::Buffer::kRange, std::memory_order_relaxed);
}

/// Throws PyTorch's error where a number does not fit into a dtype.
void check_fits(const at::Scalar& value, at::ScalarType type) {
  switch (type) {
#define AE_CHECK(ctype, name) \
  case at::ScalarType::name: value.to<ctype>(); return;
    AT_FORALL_SCALAR_TYPES_AND7(Bool, Half, BFloat16, UInt16, UInt32, UInt64, ComplexHalf, AE_CHECK)
    AT_FORALL_COMPLEX_TYPES(AE_CHECK)
#undef AE_CHECK
    default: return;
  }
}

at::Tensor& fill_with(at::Tensor& self, const Input& value) {
  const at::Tensor target = without_expansion(self);
  record_pointwise(Opcode::fill, self.scalar_type(), value, target);
  return self;
}

bool is_fillable(const at::Tensor& self) {
  return is_neuron(self) && is_recordable(self.scalar_type()) && without_expansion(self).defined();
}

at::Tensor& fill_tensor(at::Tensor& self, const at::Tensor& value) {
  const bool loses_part = value.is_complex() && !self.is_complex();
  if (value.dim() == 0 && value.is_cpu() && !loses_part) return fill_scalar(self, value.item());
  if (value.dim() != 0 || loses_part || !is_fillable(self) || !is_neuron(value) ||
      !is_recordable(value.scalar_type())) {
    return Fallback<at::Tensor&(at::Tensor&, const at::Tensor&)>::call("fill_.Tensor", self, value);
  }
  return self.numel() == 0 ? self : fill_with(self, value);
}

// CPU eager keeps start and step in the accumulation type of the result: double, or int64.
struct Range {
  double size = -1;
  at::Scalar start, step;
};

/// The elements that arange makes; size -1 for arguments that PyTorch rejects.
Range range_of(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, at::ScalarType type) {
  Range range;
  const bool whole = !contains(kFloats, type);
  if (whole) {
    const int64_t from = start.to<int64_t>(), to = end.to<int64_t>(), by = step.to<int64_t>();
    if (by == 0 || (by > 0 ? to < from : to > from)) return range;
    range.start = from;
    range.step = by;
    if (type == at::kLong) {
      const int64_t sign = (by > 0) - (by < 0);
      range.size = std::ceil(static_cast<double>((to - from + by - sign) / by));
      return range;
    }
  } else {
    const double from = start.toDouble(), to = end.toDouble(), by = step.toDouble();
    if (by == 0 || !std::isfinite(from) || !std::isfinite(to) || (by > 0 ? to < from : to > from)) return range;
    range.start = from;
    range.step = by;
  }
  range.size = std::ceil((end.toDouble() - start.toDouble()) / step.toDouble());
  return range;
}

at::Tensor& arange_out(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, at::Tensor& out) {
  const at::ScalarType type = out.scalar_type();
  const bool plain = contains(kFloats | kInts, type) && !start.isComplex() && !end.isComplex() && !step.isComplex() &&
                     at::has_internal_overlap(out) == at::MemOverlap::No;
  const Range range = plain ? range_of(start, end, step, type) : Range{};
  constexpr double kMaxSize = 1e18;
  if (!(range.size >= 0 && range.size < kMaxSize)) {
    using Signature = at::Tensor&(const at::Scalar&, const at::Scalar&, const at::Scalar&, at::Tensor&);
    return Fallback<Signature>::call("arange.start_out", start, end, step, out);
  }
  const int64_t size = static_cast<int64_t>(range.size);
  if (out.numel() != size) {
    if (out.numel() > 0) {
      TORCH_WARN("The number of elements in the out tensor of shape ", out.sizes(), " is ", out.numel(),
                 " which does not match the computed number of elements ", size,
                 ". Note that this may occur as a result of rounding error. The out tensor will be resized to a tensor "
                 "of shape (",
                 size, ",).");
    }
    out.resize_({size});
  }
  if (size == 0) return out;
  const at::ScalarType number = contains(kFloats, type) ? at::kDouble : at::kLong;
  record_pointwise(Opcode::arange, type, {Input(range.start, number), Input(range.step, number)}, out);
  return out;
}

}  // namespace

at::Tensor& fill_scalar(at::Tensor& self, const at::Scalar& value) {
  if (!is_fillable(self) || (value.isComplex() && !self.is_complex())) {
    return Fallback<at::Tensor&(at::Tensor&, const at::Scalar&)>::call("fill_.Scalar", self, value);
  }
  const at::ScalarType type = self.scalar_type();
  check_fits(value, type);
  if (self.numel() == 0) return self;
  fill_with(self, contains(kAnyValue.types, type) ? number_input(value, type) : Input(value, type));
  note_value(self, value);
  return self;
}

at::Tensor& zero(at::Tensor& self) { return fill_scalar(self, 0); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("fill_.Scalar", &fill_scalar);
  m.impl("fill_.Tensor", &fill_tensor);
  m.impl("zero_", &zero);
  m.impl("arange.start_out", &arange_out);
}

}  // namespace ae::engine
