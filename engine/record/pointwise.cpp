// Arithmetic of two operands.
#include "engine/record/pointwise.h"

#include <ATen/ExpandUtils.h>
#include <ATen/native/TypeProperties.h>
#include <ATen/ops/scalar_tensor.h>

#include <limits>

#include "engine/library/operators.h"
#include "engine/record/kernel.h"
#include "engine/record/known.h"

namespace ae::engine {
namespace {

/// Whether the operands' types are all integral (bool included), so that zero divisors raise.
bool is_whole(const at::Tensor& self, const at::Tensor& other) {
  return c10::isIntegralType(self.scalar_type(), true) && c10::isIntegralType(other.scalar_type(), true);
}

bool is_bool(const at::Tensor& self, const at::Tensor& other) {
  return self.scalar_type() == at::kBool && other.scalar_type() == at::kBool;
}

/// An alpha that PyTorch accepts for these operands, of which one is bool or integral.
bool is_alpha(const at::Scalar& alpha, bool whole) { return !alpha.isBoolean() && (!whole || alpha.isIntegral(false)); }

bool is_one(const at::Scalar& alpha) {
  return alpha.isIntegral(false) ? alpha.toLong() == 1 : alpha.isFloatingPoint() && alpha.toDouble() == 1;
}

/// Raises, now or when it is computed, if integers are divided by zero. False where that, or something else that
/// PyTorch raises, is known now.
bool check_divisor(const Call& call, const at::Tensor& self, const at::Tensor& other) {
  if (!is_whole(self, other)) return true;
  if (is_cpu_scalar(other)) return read_cpu_scalar(other).toLong() != 0;
  const at::ScalarType type = at::native::result_type({self, other});
  if (!contains(kInts, type) || !at::are_expandable(self.sizes(), other.sizes())) return false;
  if (!is_neuron(other) || !(is_neuron(self) || is_cpu_scalar(self))) return false;
  if (!call.is_functional() && !c10::canCast(type, call.target().scalar_type())) return false;
  if (self.numel() == 0 || other.numel() == 0) return true;
  const auto fail = [](int64_t value) { TORCH_CHECK(value != 0, "ZeroDivisionError"); };
  if (!check_values(other, 1, std::numeric_limits<int64_t>::max(), fail))
    record_library(library::kCheckDivisor, {other}, {}, {}, {}, /*can_fail=*/true);
  return true;
}

enum class Rounding : uint8_t { kNone, kTrunc, kFloor, kUnknown };

Rounding rounding_of(std::optional<std::string_view> mode) {
  if (!mode) return Rounding::kNone;
  return *mode == "trunc" ? Rounding::kTrunc : *mode == "floor" ? Rounding::kFloor : Rounding::kUnknown;
}

/// PyTorch rounds a quotient of half types before it cuts it off, which can give the next whole number.
bool trunc_divide(Call& call, const at::Tensor& self, const at::Tensor& other) {
  const at::ScalarType type = at::native::result_type({self, other});
  if (type != at::kHalf && type != at::kBFloat16) return call.record(Opcode::trunc_div, kArithmetic, {self, other});
  Call quotient;
  return quotient.record(Opcode::div, kFloatOnly, {self, other}) &&
         call.record(Opcode::trunc, kFloatOnly, {quotient.result});
}

bool div_mode(Call& call, const at::Tensor& self, const at::Tensor& other, std::optional<std::string_view> mode) {
  const Rounding rounding = rounding_of(mode);
  if (rounding == Rounding::kNone) return div(call, self, other);
  if (rounding == Rounding::kUnknown || !check_divisor(call, self, other)) return false;
  switch (rounding) {
    case Rounding::kTrunc: return trunc_divide(call, self, other);
    default: return call.record(Opcode::floor_div, kArithmetic, {self, other});
  }
}

bool floor_divide(Call& call, const at::Tensor& self, const at::Tensor& other) {
  return check_divisor(call, self, other) && call.record(Opcode::floor_div, kArithmetic, {self, other});
}

template <Opcode opcode>
bool modulo(Call& call, const at::Tensor& self, const at::Tensor& other) {
  return check_divisor(call, self, other) && call.record(opcode, kArithmetic, {self, other});
}

/// A number as PyTorch wraps it for an operator of two tensors.
at::Tensor wrapped(const at::Scalar& number) {
  at::Tensor tensor = at::scalar_tensor(number, at::device(at::kCPU).dtype(number.type()));
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

bool remainder_of_number(Call& call, const at::Scalar& self, const at::Tensor& other) {
  return !self.isComplex() && modulo<Opcode::remainder>(call, wrapped(self), other);
}

bool rsub(Call& call, const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
  return sub(call, other, self, alpha);
}

bool heaviside(Call& call, const at::Tensor& self, const at::Tensor& values) {
  return self.scalar_type() == values.scalar_type() && call.record(Opcode::heaviside, kAnyType, {self, values});
}

template <Opcode opcode>
bool shift(Call& call, const at::Tensor& self, const at::Tensor& other) {
  static constexpr Rule kShift{Rule::kCommon, kInts};
  return call.record(opcode, kShift, {self, other});
}

template <Opcode opcode>
bool shift_scalar(Call& call, const at::Tensor& self, const at::Scalar& other) {
  return other.isIntegral(/*includeBool=*/false) && shift<opcode>(call, self, wrapped(other));
}

}  // namespace

bool add(Call& call, const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
  if (is_one(alpha)) [[likely]] {
    if (call.record(Opcode::add, kField, {self, other})) [[likely]]
      return true;
    return is_bool(self, other) && call.record(Opcode::bitwise_or, kWhole, {self, other});
  }
  if (!is_alpha(alpha, is_whole(self, other))) return false;
  return call.record(Opcode::add_scaled, kField, {self, other, Arg::parameter(alpha)});
}

bool sub(Call& call, const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
  if (self.scalar_type() == at::kBool || other.scalar_type() == at::kBool) return false;
  if (is_one(alpha)) [[likely]]
    return call.record(Opcode::sub, kField, {self, other});
  if (!is_alpha(alpha, is_whole(self, other))) return false;
  return call.record(Opcode::sub_scaled, kField, {self, other, Arg::parameter(alpha)});
}

bool mul(Call& call, const at::Tensor& self, const at::Tensor& other) {
  if (call.record(Opcode::mul, kField, {self, other})) [[likely]]
    return true;
  return is_bool(self, other) && call.record(Opcode::bitwise_and, kWhole, {self, other});
}

bool div(Call& call, const at::Tensor& self, const at::Tensor& other) {
  return call.record(Opcode::div, kToFloatField, {self, other});
}

bool add_scalar(Call& call, const at::Tensor& self, const at::Scalar& other, const at::Scalar& alpha) {
  return is_one(alpha) && call.record(Opcode::add, kField, {self, Arg::number(other)});
}

bool sub_scalar(Call& call, const at::Tensor& self, const at::Scalar& other, const at::Scalar& alpha) {
  if (self.scalar_type() == at::kBool || other.isBoolean()) return false;
  return is_one(alpha) && call.record(Opcode::sub, kField, {self, Arg::number(other)});
}

bool mul_scalar(Call& call, const at::Tensor& self, const at::Scalar& other) {
  return call.record(Opcode::mul, kField, {self, Arg::number(other)});
}

bool div_scalar(Call& call, const at::Tensor& self, const at::Scalar& other) {
  return call.record(Opcode::div, kToFloatField, {self, Arg::number(other)});
}

bool pow(Call& call, const at::Tensor& self, const at::Tensor& exponent) {
  return call.record(Opcode::pow, kField, {self, exponent});
}

/// Of complex numbers, exponents 0 and 1 give PyTorch's own special values.
static bool complex_pow_scalar(Call& call, const at::Tensor& self, const at::Scalar& exponent) {
  const c10::complex<double> p = exponent.toComplexDouble();
  if (p == 0.0 || p == 1.0) return false;
  if (self.is_complex() && p == 2.0) return call.record(Opcode::square, kFloatField, {self});
  if (self.is_complex() && p == 0.5) return call.record(Opcode::sqrt, kFloatField, {self});
  if (self.is_complex() && p == -0.5) return call.record(Opcode::rsqrt, kFloatField, {self});
  if (self.is_complex() && p == -1.0) return call.record(Opcode::reciprocal, kFloatField, {self});
  return call.record(Opcode::pow, kFloatField, {self, Arg::promoting(exponent)});
}

/// Exponents for which PyTorch's CPU kernel has a form of its own.
bool pow_scalar(Call& call, const at::Tensor& self, const at::Scalar& exponent) {
  if (exponent.isBoolean()) return false;
  if (exponent.isComplex() || self.is_complex()) return complex_pow_scalar(call, self, exponent);
  const double p = exponent.toDouble();
  const bool whole = c10::isIntegralType(self.scalar_type(), true) && exponent.isIntegral(false);
  if (whole && p < 0) return false;
  if (!contains(kFloats, self.scalar_type())) {
    return call.record(Opcode::pow, kArithmetic, {self, Arg::promoting(exponent)});
  }
  if (p == 2) return call.record(Opcode::square, kFloatOnly, {self});
  if (p == 0.5) return call.record(Opcode::sqrt, kFloatOnly, {self});
  if (p == -0.5) return call.record(Opcode::rsqrt, kFloatOnly, {self});
  if (p == -1) return call.record(Opcode::reciprocal, kFloatOnly, {self});
  return call.record(Opcode::pow, kFloatOnly, {self, Arg::parameter(exponent)});
}

bool scalar_pow(Call& call, const at::Scalar& self, const at::Tensor& exponent) {
  call.make_contiguous();
  return call.record(Opcode::pow, kField, {Arg::number(self), exponent});
}

bool maximum(Call& call, const at::Tensor& self, const at::Tensor& other) {
  return call.record(Opcode::maximum, kAnyType, {self, other});
}

bool minimum(Call& call, const at::Tensor& self, const at::Tensor& other) {
  return call.record(Opcode::minimum, kAnyType, {self, other});
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  AE_FORMS(m, "add", ".Tensor", ".out", add);
  AE_FORMS(m, "sub", ".Tensor", ".out", sub);
  AE_FORMS(m, "mul", ".Tensor", ".out", mul);
  AE_FORMS(m, "div", ".Tensor", ".out", div);
  AE_FORMS(m, "div", ".Tensor_mode", ".out_mode", div_mode);
  AE_FUNCTIONAL(m, "rsub.Tensor", rsub);
  AE_FUNCTIONAL(m, "add.Scalar", add_scalar);
  AE_IN_PLACE(m, "add_.Scalar", add_scalar);
  AE_FUNCTIONAL(m, "sub.Scalar", sub_scalar);
  AE_IN_PLACE(m, "sub_.Scalar", sub_scalar);
  AE_FUNCTIONAL(m, "mul.Scalar", mul_scalar);
  AE_IN_PLACE(m, "mul_.Scalar", mul_scalar);
  AE_FUNCTIONAL(m, "div.Scalar", div_scalar);
  AE_IN_PLACE(m, "div_.Scalar", div_scalar);

  AE_FUNCTIONAL(m, "floor_divide", floor_divide);
  AE_IN_PLACE(m, "floor_divide_.Tensor", floor_divide);
  AE_OUT(m, "floor_divide.out", floor_divide);
  AE_FORMS(m, "remainder", ".Tensor", ".Tensor_out", modulo<Opcode::remainder>);
  AE_FUNCTIONAL(m, "remainder.Scalar_Tensor", remainder_of_number);
  AE_FORMS(m, "fmod", ".Tensor", ".Tensor_out", modulo<Opcode::fmod>);

  AE_FUNCTIONAL(m, "pow.Tensor_Tensor", pow);
  AE_IN_PLACE(m, "pow_.Tensor", pow);
  AE_OUT(m, "pow.Tensor_Tensor_out", pow);
  AE_FUNCTIONAL(m, "pow.Tensor_Scalar", pow_scalar);
  AE_IN_PLACE(m, "pow_.Scalar", pow_scalar);
  AE_OUT(m, "pow.Tensor_Scalar_out", pow_scalar);
  AE_FUNCTIONAL(m, "pow.Scalar", scalar_pow);
  AE_OUT(m, "pow.Scalar_out", scalar_pow);

  AE_FORMS(m, "atan2", "", ".out", (binary<Opcode::atan2, kToFloat>));
  AE_FORMS(m, "copysign", ".Tensor", ".out", (binary<Opcode::copysign, kToFloat>));
  AE_FORMS(m, "hypot", "", ".out", (binary<Opcode::hypot, kFloatOnly>));
  AE_FUNCTIONAL(m, "maximum", maximum);
  AE_OUT(m, "maximum.out", maximum);
  AE_FUNCTIONAL(m, "minimum", minimum);
  AE_OUT(m, "minimum.out", minimum);
  AE_FUNCTIONAL(m, "fmax", (binary<Opcode::fmax, kAnyType>));
  AE_OUT(m, "fmax.out", (binary<Opcode::fmax, kAnyType>));
  AE_FUNCTIONAL(m, "fmin", (binary<Opcode::fmin, kAnyType>));
  AE_OUT(m, "fmin.out", (binary<Opcode::fmin, kAnyType>));

  AE_FORMS(m, "bitwise_and", ".Tensor", ".Tensor_out", (binary<Opcode::bitwise_and, kWhole>));
  AE_FORMS(m, "bitwise_or", ".Tensor", ".Tensor_out", (binary<Opcode::bitwise_or, kWhole>));
  AE_FORMS(m, "bitwise_xor", ".Tensor", ".Tensor_out", (binary<Opcode::bitwise_xor, kWhole>));
  AE_FORMS(m, "bitwise_left_shift", ".Tensor", ".Tensor_out", shift<Opcode::shift_left>);
  AE_FORMS(m, "bitwise_right_shift", ".Tensor", ".Tensor_out", shift<Opcode::shift_right>);
  AE_FUNCTIONAL(m, "__lshift__.Tensor", shift<Opcode::shift_left>);
  AE_FUNCTIONAL(m, "__rshift__.Tensor", shift<Opcode::shift_right>);
  AE_IN_PLACE(m, "__ilshift__.Tensor", shift<Opcode::shift_left>);
  AE_IN_PLACE(m, "__irshift__.Tensor", shift<Opcode::shift_right>);
  AE_FUNCTIONAL(m, "__lshift__.Scalar", shift_scalar<Opcode::shift_left>);
  AE_FUNCTIONAL(m, "__rshift__.Scalar", shift_scalar<Opcode::shift_right>);
  AE_IN_PLACE(m, "__ilshift__.Scalar", shift_scalar<Opcode::shift_left>);
  AE_IN_PLACE(m, "__irshift__.Scalar", shift_scalar<Opcode::shift_right>);

  AE_FORMS(m, "xlogy", ".Tensor", ".OutTensor", (binary<Opcode::xlogy, kToFloat>));
  AE_FUNCTIONAL(m, "special_xlog1py", (binary<Opcode::xlog1py, kToFloat>));
  AE_OUT(m, "special_xlog1py.out", (binary<Opcode::xlog1py, kToFloat>));
  AE_FUNCTIONAL(m, "logaddexp", (binary<Opcode::logaddexp, kFloatOnly>));
  AE_OUT(m, "logaddexp.out", (binary<Opcode::logaddexp, kFloatOnly>));
  AE_FUNCTIONAL(m, "logaddexp2", (binary<Opcode::logaddexp2, kFloatOnly>));
  AE_OUT(m, "logaddexp2.out", (binary<Opcode::logaddexp2, kFloatOnly>));
  AE_FORMS(m, "heaviside", "", ".out", heaviside);
}

}  // namespace ae::engine
