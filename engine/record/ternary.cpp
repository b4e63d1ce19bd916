// Operators of three and more operands: where, masked_fill, clamp, lerp, addcmul, addcdiv, nan_to_num, tril, triu.
#include <ATen/MemoryOverlap.h>
#include <ATen/native/TypeProperties.h>

#include <cmath>
#include <limits>

#include "engine/record/kernel.h"
#include "engine/record/pointwise.h"

namespace ae::engine {
namespace {

bool where(Call& call, const at::Tensor& condition, const at::Tensor& self, const at::Tensor& other) {
  if (condition.scalar_type() != at::kBool) return false;
  if (!call.is_functional() && call.target().scalar_type() != at::native::result_type({self, other})) return false;
  return call.record(Opcode::where, kAnyValue, {Arg::condition(condition), self, other});
}

/// A number that can be written to a tensor of this dtype without PyTorch having something to say.
bool is_storable(const at::Scalar& value, at::ScalarType type) {
  if (contains(kComplexes, type)) return true;
  if (value.isComplex()) return false;
  return contains(kFloats, type) || (value.isIntegral(/*includeBool=*/true) && fits(value, type));
}

/// CPU kernels that are not TensorIterator's write to tensors that overlap themselves, where we would refuse.
bool overlaps_itself(const Call& call) {
  return call.is_in_place() && at::has_internal_overlap(call.target()) == at::MemOverlap::Yes;
}

bool masked_fill_scalar(Call& call, const at::Tensor& self, const at::Tensor& mask, const at::Scalar& value) {
  if (mask.scalar_type() != at::kBool || !is_neuron(self) || !is_storable(value, self.scalar_type())) return false;
  if (overlaps_itself(call)) return false;
  call.make_contiguous();
  return call.record(Opcode::where, kAnyValue, {Arg::condition(mask), Arg::parameter(value), self});
}

bool masked_fill_tensor(Call& call, const at::Tensor& self, const at::Tensor& mask, const at::Tensor& value) {
  if (value.dim() != 0 || overlaps_itself(call)) return false;
  if (is_cpu_scalar(value)) return masked_fill_scalar(call, self, mask, read_cpu_scalar(value));
  if (mask.scalar_type() != at::kBool || !is_neuron(self)) return false;
  call.make_contiguous();
  if (value.scalar_type() == self.scalar_type())
    return call.record(Opcode::where, kAnyValue, {Arg::condition(mask), value, self});
  // The value is converted, and has no say about the result's dtype.
  if (!contains(kFloats, self.scalar_type()) || !contains(kFloats | kInts | kBools, value.scalar_type())) return false;
  return call.record(Opcode::where, kFloatOnly, {Arg::condition(mask), Arg::condition(value), self});
}

bool clamp(Call& call, const at::Tensor& self, const std::optional<at::Scalar>& low,
           const std::optional<at::Scalar>& high) {
  if (low && high) {
    return call.record(Opcode::clamp, kArithmetic, {self, Arg::promoting(*low), Arg::promoting(*high)});
  }
  if (low) return clamp_min(call, self, *low);
  return high && clamp_max(call, self, *high);
}

bool clamp_min_tensor(Call& call, const at::Tensor& self, const at::Tensor& low) {
  return call.record(Opcode::clamp_min, kAnyType, {self, low});
}

bool clamp_max_tensor(Call& call, const at::Tensor& self, const at::Tensor& high) {
  return call.record(Opcode::clamp_max, kAnyType, {self, high});
}

bool clamp_tensor(Call& call, const at::Tensor& self, const std::optional<at::Tensor>& low,
                  const std::optional<at::Tensor>& high) {
  const bool has_low = low && low->defined(), has_high = high && high->defined();
  if (has_low && has_high) return call.record(Opcode::clamp, kArithmetic, {self, *low, *high});
  if (has_low) return clamp_min_tensor(call, self, *low);
  return has_high && clamp_max_tensor(call, self, *high);
}

bool nan_to_num(Call& call, const at::Tensor& self, std::optional<double> nan, std::optional<double> posinf,
                std::optional<double> neginf) {
  double largest = 0;
  switch (self.scalar_type()) {
    case at::kDouble: largest = std::numeric_limits<double>::max(); break;
    case at::kFloat: largest = std::numeric_limits<float>::max(); break;
    case at::kHalf: largest = std::numeric_limits<at::Half>::max(); break;
    case at::kBFloat16: largest = std::numeric_limits<at::BFloat16>::max(); break;
    default: break;
  }
  const at::Scalar for_nan(nan.value_or(0));
  const at::Scalar for_posinf(posinf.value_or(largest)), for_neginf(neginf.value_or(-largest));
  if (!contains(kFloats, self.scalar_type())) return call.record(Opcode::copy, kAnyType, {self});
  return call.record(Opcode::nan_to_num, kFloatOnly,
                     {self, Arg::parameter(for_nan), Arg::parameter(for_posinf), Arg::parameter(for_neginf)});
}

template <Opcode opcode>
bool triangle(Call& call, const at::Tensor& self, int64_t diagonal) {
  if (self.dim() < 2 || overlaps_itself(call)) return false;
  if (!call.is_functional() && call.target().scalar_type() != self.scalar_type()) return false;
  call.make_contiguous();
  return call.record(opcode, kAnyValue, {self}, {diagonal});
}

bool all_whole(const at::Tensor& a, const at::Tensor& b) {
  return c10::isIntegralType(a.scalar_type(), true) && c10::isIntegralType(b.scalar_type(), true);
}

// What is known of lerp's weight (attribute 0).
constexpr int64_t kAnyWeight = 0, kSmallWeight = 1, kLargeWeight = 2;

}  // namespace

bool clamp_min(Call& call, const at::Tensor& self, const at::Scalar& low) {
  return call.record(Opcode::clamp_min, kArithmetic, {self, Arg::promoting(low)});
}

bool clamp_max(Call& call, const at::Tensor& self, const at::Scalar& high) {
  return call.record(Opcode::clamp_max, kArithmetic, {self, Arg::promoting(high)});
}

bool lerp(Call& call, const at::Tensor& self, const at::Tensor& end, const at::Tensor& weight) {
  if (self.scalar_type() != end.scalar_type() || self.scalar_type() != weight.scalar_type()) return false;
  return call.record(Opcode::lerp, kFloatField, {self, end, weight}, {kAnyWeight});
}

bool lerp_scalar(Call& call, const at::Tensor& self, const at::Tensor& end, const at::Scalar& weight) {
  if (self.scalar_type() != end.scalar_type()) return false;
  if (self.is_complex())
    return call.record(Opcode::lerp, kFloatField, {self, end, Arg::parameter(weight)}, {kAnyWeight});
  if (weight.isComplex()) return false;
  // As the kernel sees the weight: rounded to fp32 where it computes in fp32.
  double value = weight.toDouble();
  if (self.scalar_type() != at::kDouble) value = static_cast<float>(value);
  const int64_t known = std::abs(value) < 0.5 ? kSmallWeight : kLargeWeight;
  return call.record(Opcode::lerp, kFloatOnly, {self, end, Arg::parameter(weight)}, {known});
}

bool addcmul(Call& call, const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, const at::Scalar& value) {
  if (all_whole(self, a) && all_whole(a, b) && !value.isIntegral(/*includeBool=*/false)) return false;
  return call.record(Opcode::addcmul, kField, {self, a, b, Arg::parameter(value)});
}

bool addcdiv(Call& call, const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, const at::Scalar& value) {
  if (all_whole(a, b)) return false;
  return call.record(Opcode::addcdiv, kFloatField, {self, a, b, Arg::parameter(value)});
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  AE_FUNCTIONAL(m, "where.self", where);
  AE_OUT(m, "where.self_out", where);
  AE_FUNCTIONAL(m, "masked_fill.Scalar", masked_fill_scalar);
  AE_IN_PLACE(m, "masked_fill_.Scalar", masked_fill_scalar);
  AE_FUNCTIONAL(m, "masked_fill.Tensor", masked_fill_tensor);
  AE_IN_PLACE(m, "masked_fill_.Tensor", masked_fill_tensor);

  AE_FORMS(m, "clamp", "", ".out", clamp);
  AE_FORMS(m, "clamp", ".Tensor", ".Tensor_out", clamp_tensor);
  AE_FORMS(m, "clamp_min", "", ".out", clamp_min);
  AE_FORMS(m, "clamp_min", ".Tensor", ".Tensor_out", clamp_min_tensor);
  AE_FORMS(m, "clamp_max", "", ".out", clamp_max);
  AE_FORMS(m, "clamp_max", ".Tensor", ".Tensor_out", clamp_max_tensor);
  AE_FORMS(m, "lerp", ".Tensor", ".Tensor_out", lerp);
  AE_FORMS(m, "lerp", ".Scalar", ".Scalar_out", lerp_scalar);
  AE_FORMS(m, "addcmul", "", ".out", addcmul);
  AE_FORMS(m, "addcdiv", "", ".out", addcdiv);
  AE_FORMS(m, "nan_to_num", "", ".out", nan_to_num);
  AE_FORMS(m, "tril", "", ".out", triangle<Opcode::tril>);
  AE_FORMS(m, "triu", "", ".out", triangle<Opcode::triu>);
}

}  // namespace ae::engine
