// Complex numbers of a kernel under construction: pairs of real expressions.
#pragma once

#include "fusion/ops/expression.h"

namespace ae::fusion {

struct Complex {
  Expr re, im;
  Expr constant(double value) const { return re.constant(value); }
};

inline Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
inline Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
inline Complex operator-(Complex a) { return {-a.re, -a.im}; }
inline Complex operator*(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
inline Complex operator*(Complex a, double b) { return {a.re * b, a.im * b}; }
inline Complex conj(Complex a) { return {a.re, -a.im}; }
inline Complex select(Expr condition, Complex a, Complex b) {
  return {select(condition, a.re, b.re), select(condition, a.im, b.im)};
}
/// The number 1 beside another one.
inline Complex one_like(Complex a) { return {a.constant(1), a.constant(0)}; }
inline Expr abs(Complex a) { return apply(Primitive::hypot, a.re, a.im); }
inline Expr angle(Complex a) { return apply(Primitive::atan2, a.im, a.re); }
/// Not zero; NaN is not.
inline Expr truth(Complex a) { return (a.re != 0.0) | (a.im != 0.0); }

/// Smith's quotient, as PyTorch's CPU has it: zeros and infinities come out the same.
Complex operator/(Complex a, Complex b);
inline Complex reciprocal(Complex a) { return one_like(a) / a; }
Complex exp(Complex a);
Complex log(Complex a);
Complex sqrt(Complex a);

/// Input i in the common dtype's precision; a real one has no imaginary part.
Complex complex_input(OpContext& context, int i);
/// Input i, a real parameter.
inline Expr real_parameter(OpContext& context, int i) {
  return raw_input(context, i).as(real_type(context.common_type()));
}

/// Stores a complex result, a real one, or the answer to a question, in the output's precision.
void finish(OpContext& context, Complex result);
inline void finish(OpContext& context, Expr result) { context.store(0, result.as(context.output_type(0)).id); }

}  // namespace ae::fusion
