// Functions of complex numbers from those of reals, with C's special values where they come at little cost.
#include <limits>
#include <numbers>

#include "fusion/ops/complex.h"

namespace ae::fusion {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Expr copysign(Expr a, Expr b) { return apply(Primitive::copysign, a, b); }
Expr sin(Expr a) { return apply(Primitive::sin, a); }
Expr sinh(Expr a) { return apply(Primitive::sinh, a); }
Expr cosh(Expr a) { return apply(Primitive::cosh, a); }

/// a * b, where zero times infinity or NaN is zero.
Expr product(Expr a, Expr b) {
  const Expr plain = a * b;
  return select(is_nan(plain) & ((a == 0.0) | (b == 0.0)), 0.0, plain);
}

/// log of the size. The size itself could overflow, and loses too much near 1.
Expr log_of_size(Complex a) {
  const Expr re = abs(a.re), im = abs(a.im);
  const Expr larger = maximum(re, im), smaller = minimum(re, im);
  const Expr near_one = (larger > 0.5) & (larger < 2.0);
  const Expr ratio = smaller / select(larger == 0.0, 1.0, larger);
  const Expr beyond_one = select(near_one, (larger - 1.0) * (larger + 1.0) + smaller * smaller, ratio * ratio);
  const Expr result = select(near_one, 0.0, log(larger)) + 0.5 * log1p(beyond_one);
  return select(is_inf(re) | is_inf(im), kInfinity, result);
}

/// Kahan's formula; far from the imaginary axis, where its squares would overflow, their limit.
Complex tanh(Complex a) {
  constexpr double kFar = 20;  // 1 - tanh(20) < 2^-56
  const Expr tangent = apply(Primitive::tan, a.im), sine = sinh(a.re), size = abs(a.re);
  const Expr beta = 1.0 + tangent * tangent, rho = sqrt(1.0 + sine * sine);
  const Expr divisor = 1.0 + beta * sine * sine, far = size > kFar;
  const Expr far_imaginary = product(4.0 * (tangent / beta), exp(-2.0 * size));
  return {select(far, copysign(a.re.constant(1), a.re), beta * rho * sine / divisor),
          select(far, far_imaginary, tangent / divisor)};
}

Complex times_i(Complex a) { return {-a.im, a.re}; }
Complex over_i(Complex a) { return {a.im, -a.re}; }

Complex tan(Complex a) { return over_i(tanh(times_i(a))); }
Complex sinh(Complex a) { return {product(sinh(a.re), cos(a.im)), product(cosh(a.re), sin(a.im))}; }
Complex cosh(Complex a) { return {product(cosh(a.re), cos(a.im)), product(sinh(a.re), sin(a.im))}; }
Complex sin(Complex a) { return over_i(sinh(times_i(a))); }
Complex cos(Complex a) { return cosh(times_i(a)); }
Complex rsqrt(Complex a) { return reciprocal(sqrt(a)); }
Complex log2(Complex a) { return log(a) * (1.0 / std::numbers::ln2); }
Complex log10(Complex a) { return log(a) * (1.0 / std::numbers::ln10); }
Complex sigmoid(Complex a) { return reciprocal(one_like(a) + exp(-a)); }

/// exp(b * log(a)) multiplies the logarithm's error by the power, so it is computed in double.
void power(OpContext& context) {
  const auto wide = [&](int i) {
    const Complex x = complex_input(context, i);
    return Complex{x.re.as(DType::kF64), x.im.as(DType::kF64)};
  };
  finish(context, exp(wide(1) * log(wide(0))));
}

template <Complex (*function)(Complex)>
void unary(OpContext& context) {
  finish(context, function(complex_input(context, 0)));
}

constexpr BuilderEntry kBuilders[] = {
    {Opcode::exp, unary<exp>},         {Opcode::log, unary<log>},   {Opcode::log2, unary<log2>},
    {Opcode::log10, unary<log10>},     {Opcode::sqrt, unary<sqrt>}, {Opcode::rsqrt, unary<rsqrt>},
    {Opcode::sin, unary<sin>},         {Opcode::cos, unary<cos>},   {Opcode::tan, unary<tan>},
    {Opcode::sinh, unary<sinh>},       {Opcode::cosh, unary<cosh>}, {Opcode::tanh, unary<tanh>},
    {Opcode::sigmoid, unary<sigmoid>}, {Opcode::pow, power},
};

}  // namespace

/// In two halves, so that a large power overflows only where the result does.
Complex exp(Complex a) {
  const Expr half = exp(0.5 * a.re), cosine = cos(a.im), sine = sin(a.im);
  const Expr is_nothing = a.re == -kInfinity;
  const Expr re = select((a.re == kInfinity) & is_nan(cosine), kInfinity, half * cosine * half);
  const Expr im = select(a.im == 0.0, a.im, half * sine * half);
  return {select(is_nothing, 0.0, re), select(is_nothing, 0.0, im)};
}

Complex log(Complex a) { return {log_of_size(a), angle(a)}; }

/// An eighth of the number is taken, so that its size does not overflow.
Complex sqrt(Complex a) {
  const Expr root = 2.0 * sqrt(abs(a * 0.125) + 0.125 * abs(a.re));
  const Expr other = a.im / (2.0 * root), to_the_right = a.re >= 0.0;
  const Expr re = select(to_the_right, root, abs(other)), im = select(to_the_right, other, copysign(root, a.im));
  return {select(is_inf(a.im), kInfinity, select(root == 0.0, 0.0, re)),
          select(is_inf(a.im) | (root == 0.0), a.im, im)};
}

std::span<const BuilderEntry> complex_function_builders() { return kBuilders; }

}  // namespace ae::fusion
