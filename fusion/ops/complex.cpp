// Operators of complex operands, as pairs of reals; inputs as in opcode.h. A real operand among complex ones stands for
// a number without imaginary part. Sums are computed in the order in which PyTorch's CPU kernels compute theirs.
#include "fusion/ops/complex.h"

namespace ae::fusion {

Complex operator/(Complex a, Complex b) {
  const Expr c = abs(b.re), d = abs(b.im);
  const Expr real_is_larger = c >= d, is_zero = (c == 0.0) & (d == 0.0);
  const Expr larger = select(real_is_larger, b.re, b.im), smaller = select(real_is_larger, b.im, b.re);
  const Expr ratio = smaller / larger, scale = 1.0 / (larger + smaller * ratio);
  const Expr re = select(real_is_larger, a.re + a.im * ratio, a.re * ratio + a.im);
  const Expr im = select(real_is_larger, a.im - a.re * ratio, a.im * ratio - a.re);
  return {select(is_zero, a.re / c, re * scale), select(is_zero, a.im / d, im * scale)};
}

Complex complex_input(OpContext& context, int i) {
  const DType type = real_type(context.common_type());
  const Expr re = Expr{&context, context.load_part(i, Part::real)}.as(type);
  if (!is_complex(context.input_type(i))) return {re, re.constant(0)};
  return {re, Expr{&context, context.load_part(i, Part::imaginary)}.as(type)};
}

void finish(OpContext& context, Complex result) {
  const DType type = real_type(context.output_type(0));
  context.store_part(0, Part::real, result.re.as(type).id);
  context.store_part(0, Part::imaginary, result.im.as(type).id);
}

namespace {

Complex at(OpContext& context, int i) { return complex_input(context, i); }

// ------------------------------------------------------------------------------------------------------ Data movement

/// From complex to complex, real to complex, and complex to real, which drops the imaginary part.
void copy(OpContext& context) {
  const DType from = context.input_type(0), to = context.output_type(0);
  const bool negated = (context.attribute(0) & kCopyNegated) != 0;
  const bool conjugated = (context.attribute(0) & kCopyConjugated) != 0;
  const Expr re = converted(raw_input(context, 0), real_type(to), negated);
  if (!is_complex(from)) return finish(context, Complex{re, re.constant(0)});
  const Expr im{&context, context.load_part(0, Part::imaginary)};
  if (is_complex(to)) return finish(context, Complex{re, converted(im, real_type(to), negated != conjugated)});
  finish(context, to == DType::kBool ? truth(Complex{raw_input(context, 0), im}) : re);
}

void where(OpContext& context) {
  const Expr condition = raw_input(context, 0).as(DType::kBool);
  finish(context, select(condition, at(context, 1), at(context, 2)));
}

template <Primitive kept_side>
void triangle(OpContext& context) {
  const Complex a = at(context, 0);
  const Expr keep = triangle_mask(context, kept_side);
  finish(context, Complex{select(keep, a.re, 0.0), select(keep, a.im, 0.0)});
}

// --------------------------------------------------------------------------------------------------------- Arithmetic

void add(OpContext& context) { finish(context, at(context, 0) + at(context, 1)); }
void sub(OpContext& context) { finish(context, at(context, 0) - at(context, 1)); }
void mul(OpContext& context) { finish(context, at(context, 0) * at(context, 1)); }
void div(OpContext& context) { finish(context, at(context, 0) / at(context, 1)); }
void add_scaled(OpContext& context) { finish(context, at(context, 0) + at(context, 2) * at(context, 1)); }
void sub_scaled(OpContext& context) { finish(context, at(context, 0) - at(context, 2) * at(context, 1)); }
void neg(OpContext& context) { finish(context, -at(context, 0)); }
void square(OpContext& context) { finish(context, at(context, 0) * at(context, 0)); }
void reciprocal_of(OpContext& context) { finish(context, reciprocal(at(context, 0))); }
void addcmul(OpContext& context) { finish(context, at(context, 0) + at(context, 3) * at(context, 1) * at(context, 2)); }
void addcdiv(OpContext& context) { finish(context, at(context, 0) + at(context, 3) * at(context, 1) / at(context, 2)); }

void lerp(OpContext& context) {
  const Complex a = at(context, 0), b = at(context, 1), weight = at(context, 2);
  const auto from_a = [&] { return a + weight * (b - a); };
  const auto from_b = [&] { return b - (b - a) * (one_like(weight) - weight); };
  switch (context.attribute(0)) {
    case 1: return finish(context, from_a());
    case 2: return finish(context, from_b());
    default: finish(context, select(weight.re * weight.re + weight.im * weight.im < 0.25, from_a(), from_b()));
  }
}

void tanh_backward(OpContext& context) {
  const Complex out = at(context, 1);
  finish(context, at(context, 0) * conj(one_like(out) - out * out));
}

void sigmoid_backward(OpContext& context) {
  const Complex out = at(context, 1);
  finish(context, at(context, 0) * conj((one_like(out) - out) * out));
}

// ---------------------------------------------------------------------------------------------------- Parts and tests

void abs_of(OpContext& context) { finish(context, abs(at(context, 0))); }
void angle_of(OpContext& context) { finish(context, angle(at(context, 0))); }

/// The number of size 1 in the same direction.
void direction(OpContext& context) {
  const Complex a = at(context, 0);
  const Expr size = abs(a);
  const Complex quotient = a / Complex{size, size.constant(0)};
  finish(context, Complex{select(size == 0.0, 0.0, quotient.re), select(size == 0.0, 0.0, quotient.im)});
}

template <bool wanted>
void equality(OpContext& context) {
  const Complex a = at(context, 0), b = at(context, 1);
  finish(context, wanted ? (a.re == b.re) & (a.im == b.im) : (a.re != b.re) | (a.im != b.im));
}

template <Primitive test>
void part_test(OpContext& context) {
  const Complex a = at(context, 0);
  finish(context, apply(test, a.re) | apply(test, a.im));
}

template <Primitive op>
void logical(OpContext& context) {
  finish(context, apply(op, truth(at(context, 0)), truth(at(context, 1))));
}

void logical_not(OpContext& context) { finish(context, apply(Primitive::logical_not, truth(at(context, 0)))); }

// --------------------------------------------------------------------------------------------------------- Reductions

Complex sum_of(Complex a) { return {reduce_sum(a.re), reduce_sum(a.im)}; }

void sum(OpContext& context) { finish(context, sum_of(at(context, 0))); }

void mean(OpContext& context) {
  const Complex total = sum_of(at(context, 0));
  const Expr count = real_parameter(context, 1);
  finish(context, Complex{total.re / count, total.im / count});
}

template <Primitive op>
void truth_of_all(OpContext& context) {
  finish(context, reduce(op, truth(at(context, 0))));
}

void count_nonzero(OpContext& context) { finish(context, reduce_sum(truth(at(context, 0)).as(DType::kI64))); }

void norm(OpContext& context) {
  const Complex a = at(context, 0);
  switch (context.attribute(0)) {
    case 0: return finish(context, sqrt(reduce_sum(a.re * a.re + a.im * a.im)));
    case 1: return finish(context, reduce_sum(abs(a)));
    case 2: return finish(context, reduce_max(abs(a)));
    case 3: return finish(context, reduce(Primitive::reduce_min, abs(a)));
    case 4: return finish(context, reduce_sum(truth(a).as(a.re.type())));
    default: {
      const Expr p = real_parameter(context, 1);
      finish(context, pow(reduce_sum(pow(abs(a), p)), reciprocal(p)));
    }
  }
}

constexpr BuilderEntry kBuilders[] = {
    {Opcode::copy, copy},
    {Opcode::fill, copy},
    {Opcode::where, where},
    {Opcode::tril, triangle<Primitive::le>},
    {Opcode::triu, triangle<Primitive::ge>},
    {Opcode::add, add},
    {Opcode::sub, sub},
    {Opcode::mul, mul},
    {Opcode::div, div},
    {Opcode::add_scaled, add_scaled},
    {Opcode::sub_scaled, sub_scaled},
    {Opcode::neg, neg},
    {Opcode::square, square},
    {Opcode::reciprocal, reciprocal_of},
    {Opcode::addcmul, addcmul},
    {Opcode::addcdiv, addcdiv},
    {Opcode::lerp, lerp},
    {Opcode::tanh_backward, tanh_backward},
    {Opcode::sigmoid_backward, sigmoid_backward},
    {Opcode::abs, abs_of},
    {Opcode::angle, angle_of},
    {Opcode::sign, direction},
    {Opcode::eq, equality<true>},
    {Opcode::ne, equality<false>},
    {Opcode::isnan, part_test<Primitive::is_nan>},
    {Opcode::isinf, part_test<Primitive::is_inf>},
    {Opcode::logical_and, logical<Primitive::bitwise_and>},
    {Opcode::logical_or, logical<Primitive::bitwise_or>},
    {Opcode::logical_xor, logical<Primitive::bitwise_xor>},
    {Opcode::logical_not, logical_not},
    {Opcode::sum, sum},
    {Opcode::mean, mean},
    {Opcode::any, truth_of_all<Primitive::reduce_any>},
    {Opcode::all, truth_of_all<Primitive::reduce_all>},
    {Opcode::count_nonzero, count_nonzero},
    {Opcode::norm, norm},
};

}  // namespace

std::span<const BuilderEntry> complex_builders() { return kBuilders; }

}  // namespace ae::fusion
