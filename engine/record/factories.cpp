// Tensors made of numbers: linspace and eye, which are computed on the device, and rare ones, which are computed on the
// CPU at the call and copied, as a tensor that a program makes itself would be.
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/logspace_cpu_dispatch.h>
#include <ATen/ops/range_cpu_dispatch.h>
#include <ATen/ops/tril_indices_cpu_dispatch.h>
#include <ATen/ops/triu_indices_cpu_dispatch.h>

#include <cmath>

#include "engine/record/kernel.h"
#include "engine/record/result.h"

namespace ae::engine {
namespace {

using at::Scalar;
using at::Tensor;

/// Rounds a number to a half type, which PyTorch's CPU kernel computes in.
double rounded(double value, at::ScalarType type) {
  switch (type) {
    case at::kHalf: return static_cast<at::Half>(static_cast<float>(value));
    case at::kBFloat16: return static_cast<at::BFloat16>(static_cast<float>(value));
    case at::kFloat: return static_cast<float>(value);
    default: return value;
  }
}

/// The distance of neighbours in the arithmetic of the result's dtype; double for integers.
double step_of(double start, double end, int64_t steps, at::ScalarType type) {
  return rounded(rounded(end - start, type) / rounded(static_cast<double>(steps - 1), type), type);
}

/// An integral dtype can hold the number, cut off.
bool holds(const Scalar& number, at::ScalarType type) {
  if (number.isIntegral(/*includeBool=*/true)) return fits(number, type);
  constexpr double kLimit = 0x1p62;
  const double value = number.toDouble();
  return std::abs(value) < kLimit && fits(Scalar(static_cast<int64_t>(value)), type);
}

Tensor& linspace_out(const Scalar& start, const Scalar& end, int64_t steps, Tensor& out) {
  const at::ScalarType type = out.scalar_type();
  const bool whole = contains(kInts, type);
  const bool real = !start.isComplex() && !end.isComplex();
  if (!real || steps < 0 || !(contains(kFloats, type) || (whole && holds(start, type) && holds(end, type))) ||
      at::has_internal_overlap(out) != at::MemOverlap::No) {
    return Fallback<Tensor&(const Scalar&, const Scalar&, int64_t, Tensor&)>::call("linspace.out", start, end, steps,
                                                                                   out);
  }
  if (out.numel() != steps) out.resize_({steps});
  if (steps == 0) return out;
  const double from = whole ? static_cast<double>(start.to<int64_t>()) : rounded(start.toDouble(), type);
  const double to = whole ? static_cast<double>(end.to<int64_t>()) : rounded(end.toDouble(), type);
  const double step = steps == 1 ? 0 : step_of(from, to, steps, type);
  record_pointwise(Opcode::linspace, type,
                   {Input(from, at::kDouble), Input(steps == 1 ? from : to, at::kDouble), Input(step, at::kDouble),
                    Input(Scalar(steps), at::kLong)},
                   out);
  return out;
}

Tensor& eye_out(int64_t rows, int64_t columns, Tensor& out, const char* name) {
  if (rows < 0 || columns < 0 || !contains(kFloats | kInts | kBools, out.scalar_type()) ||
      at::has_internal_overlap(out) != at::MemOverlap::No) {
    return Fallback<Tensor&(c10::SymInt, c10::SymInt, Tensor&)>::call(name, rows, columns, out);
  }
  out.resize_({rows, columns});
  if (out.numel() != 0) record_pointwise(Opcode::eye, out.scalar_type(), {}, out);
  return out;
}

Tensor& eye_m_out(c10::SymInt rows, c10::SymInt columns, Tensor& out) {
  return eye_out(rows.expect_int(), columns.expect_int(), out, "eye.m_out");
}

Tensor& eye_square_out(c10::SymInt size, Tensor& out) {
  return eye_out(size.expect_int(), size.expect_int(), out, "eye.m_out");
}

/// Lets the CPU make `out` and copies it.
template <class Make>
Tensor& from_host(Tensor& out, Make make) {
  Tensor host = at::empty({0}, at::device(at::kCPU).dtype(out.scalar_type()));
  make(host);
  if (out.numel() != host.numel()) out.resize_(host.sizes());
  return out.copy_(host.view(out.sizes()));
}

Tensor& logspace_out(const Scalar& start, const Scalar& end, int64_t steps, double base, Tensor& out) {
  return from_host(out, [&](Tensor& host) { at::cpu::logspace_outf(start, end, steps, base, host); });
}

Tensor& range_out(const Scalar& start, const Scalar& end, const Scalar& step, Tensor& out) {
  return from_host(out, [&](Tensor& host) { at::cpu::range_outf(start, end, step, host); });
}

template <auto make>
Tensor triangle_indices(int64_t rows, int64_t columns, int64_t offset, std::optional<at::ScalarType> dtype,
                        std::optional<at::Layout> layout, std::optional<at::Device> device,
                        std::optional<bool> pin_memory) {
  const Tensor host = make(rows, columns, offset, dtype, layout, at::kCPU, std::nullopt);
  (void)pin_memory;
  return host.to(device.value_or(c10::Device(kDeviceType)));
}

using MakeIndices = Tensor (*)(int64_t, int64_t, int64_t, std::optional<at::ScalarType>, std::optional<at::Layout>,
                               std::optional<at::Device>, std::optional<bool>);
constexpr MakeIndices kTril = &at::cpu::tril_indices, kTriu = &at::cpu::triu_indices;

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("linspace.out", &linspace_out);
  m.impl("eye.m_out", &eye_m_out);
  m.impl("eye.out", &eye_square_out);
  m.impl("logspace.out", &logspace_out);
  m.impl("range.out", &range_out);
  m.impl("tril_indices", &triangle_indices<kTril>);
  m.impl("triu_indices", &triangle_indices<kTriu>);
}

}  // namespace
}  // namespace ae::engine
