#include "fusion/ir/element.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "device/math/math.h"
#include "device/math/special.h"
#include "device/tile_program.h"

namespace ae::fusion {
namespace {

using P = Primitive;

[[noreturn]] void undefined(Primitive op) {
  throw std::logic_error(std::string("primitive ") + name_of(op) + " is not defined on this dtype");
}

/// Unsigned and at least 32 bits wide, so that arithmetic wraps.
template <class T>
using Wrapping = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class T>
T float_unary(Primitive op, T x) {
  switch (op) {
    case P::neg: return -x;
    case P::abs: return std::fabs(x);
    case P::sign: return static_cast<T>((T(0) < x) - (x < T(0)));
    case P::floor: return std::floor(x);
    case P::ceil: return std::ceil(x);
    case P::trunc: return std::trunc(x);
    case P::round: return std::nearbyint(x);
    case P::sqrt: return std::sqrt(x);
    case P::reciprocal: return T(1) / x;
    case P::rsqrt: return T(1) / std::sqrt(x);
#define AE_CASE(name) \
  case P::name: return math::name(x)
      AE_CASE(exp);
      AE_CASE(exp2);
      AE_CASE(expm1);
      AE_CASE(log);
      AE_CASE(log2);
      AE_CASE(log10);
      AE_CASE(log1p);
      AE_CASE(sin);
      AE_CASE(cos);
      AE_CASE(tan);
      AE_CASE(asin);
      AE_CASE(acos);
      AE_CASE(atan);
      AE_CASE(sinh);
      AE_CASE(cosh);
      AE_CASE(tanh);
      AE_CASE(erf);
      AE_CASE(erfc);
      AE_CASE(sigmoid);
      AE_CASE(asinh);
      AE_CASE(acosh);
      AE_CASE(atanh);
      AE_CASE(erfinv);
      AE_CASE(erfcx);
      AE_CASE(lgamma);
      AE_CASE(digamma);
      AE_CASE(trigamma);
      AE_CASE(i0);
      AE_CASE(i0e);
      AE_CASE(i1);
      AE_CASE(i1e);
      AE_CASE(ndtri);
      AE_CASE(log_ndtr);
#undef AE_CASE
    default: undefined(op);
  }
}

template <class T>
T int_unary(Primitive op, T x) {
  const T negated = static_cast<T>(Wrapping<T>(0) - static_cast<Wrapping<T>>(x));
  switch (op) {
    case P::neg: return negated;
    case P::abs: return x < 0 ? negated : x;
    case P::sign: return static_cast<T>((0 < x) - (x < 0));
    case P::floor:
    case P::ceil:
    case P::trunc:
    case P::round: return x;
    case P::bitwise_not: return static_cast<T>(~x);
    default: undefined(op);
  }
}

/// Rounds the exact quotient down: the remainder is taken off first. As c10::div_floor_floating.
template <class T>
T float_floor_div(T x, T y) {
  if (y == 0) return x / y;
  const T rest = std::fmod(x, y);
  T quotient = (x - rest) / y;
  if (rest != 0 && (y < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(T(0), x / y);
  const T down = std::floor(quotient);
  return quotient - down > T(0.5) ? down + 1 : down;
}

template <class T>
T float_binary(Primitive op, T x, T y) {
  const bool unordered = std::isnan(x) || std::isnan(y);
  switch (op) {
    case P::add: return x + y;
    case P::sub: return x - y;
    case P::mul: return x * y;
    case P::div: return x / y;
    case P::floor_div: return float_floor_div(x, y);
    case P::trunc_div: return std::trunc(x / y);
    case P::remainder: {
      const T rest = std::fmod(x, y);
      return rest != 0 && (y < 0) != (rest < 0) ? rest + y : rest;
    }
    case P::fmod: return std::fmod(x, y);
    case P::pow: return math::pow(x, y);
    case P::atan2: return math::atan2(x, y);
    case P::hypot: return math::hypot(x, y);
    case P::maximum:
    case P::reduce_max:
      if (unordered) return std::numeric_limits<T>::quiet_NaN();
      return x < y ? y : x;
    case P::minimum:
    case P::reduce_min:
      if (unordered) return std::numeric_limits<T>::quiet_NaN();
      return y < x ? y : x;
    case P::fmax:
      if (unordered) return std::isnan(x) ? y : x;
      return x < y ? y : x;
    case P::fmin:
      if (unordered) return std::isnan(x) ? y : x;
      return y < x ? y : x;
    case P::copysign: return std::copysign(x, y);
    case P::reduce_sum: return x + y;
    case P::reduce_prod: return x * y;
    default: undefined(op);
  }
}

template <class T>
T int_pow(T base, T exponent) {
  if (exponent < 0) {  // 1 / base^|exponent|, towards zero
    if (base == 1) return 1;
    if (base == static_cast<T>(-1)) return exponent % 2 == 0 ? 1 : static_cast<T>(-1);
    return 0;
  }
  Wrapping<T> result = 1, square = static_cast<Wrapping<T>>(base);
  for (auto rest = static_cast<Wrapping<T>>(exponent); rest != 0; rest /= 2) {
    if (rest % 2 == 1) result *= square;
    square *= square;
  }
  return static_cast<T>(result);
}

/// Quotient towards zero and remainder; 0 and 0 for a divisor of 0; the lowest number by -1 wraps.
template <class T>
struct Division {
  Division(T x, T y) {
    if (y == 0) return;
    if (std::is_signed_v<T> && y == static_cast<T>(-1)) {
      quotient = static_cast<T>(Wrapping<T>(0) - static_cast<Wrapping<T>>(x));
    } else {
      quotient = static_cast<T>(x / y);
      rest = static_cast<T>(x % y);
    }
    crosses_zero = rest != 0 && (rest < 0) != (y < 0);
  }
  T quotient = 0, rest = 0;
  bool crosses_zero = false;  // rounding down gives another quotient
};

template <class T>
T int_binary(Primitive op, T x, T y) {
  const auto wide_x = static_cast<Wrapping<T>>(x), wide_y = static_cast<Wrapping<T>>(y);
  const Division<T> division(x, y);
  const bool in_width = y >= 0 && wide_y < sizeof(T) * 8;
  switch (op) {
    case P::add:
    case P::reduce_sum: return static_cast<T>(wide_x + wide_y);
    case P::sub: return static_cast<T>(wide_x - wide_y);
    case P::mul:
    case P::reduce_prod: return static_cast<T>(wide_x * wide_y);
    case P::floor_div: return static_cast<T>(division.quotient - (division.crosses_zero ? 1 : 0));
    case P::trunc_div: return division.quotient;
    case P::remainder: return static_cast<T>(division.rest + (division.crosses_zero ? y : 0));
    case P::fmod: return division.rest;
    case P::pow: return int_pow(x, y);
    case P::maximum:
    case P::fmax:
    case P::reduce_max: return x < y ? y : x;
    case P::minimum:
    case P::fmin:
    case P::reduce_min: return y < x ? y : x;
    case P::bitwise_and: return static_cast<T>(x & y);
    case P::bitwise_or: return static_cast<T>(x | y);
    case P::bitwise_xor: return static_cast<T>(x ^ y);
    // Shifts by the width and more, or by less than 0, shift everything out.
    case P::shift_left: return in_width ? static_cast<T>(wide_x << wide_y) : T(0);
    case P::shift_right: return in_width ? static_cast<T>(x >> y) : x < 0 ? static_cast<T>(-1) : T(0);
    default: undefined(op);
  }
}

bool bool_binary(Primitive op, bool x, bool y) {
  switch (op) {
    case P::add:
    case P::bitwise_or:
    case P::reduce_any: return x || y;
    case P::mul:
    case P::bitwise_and:
    case P::reduce_all: return x && y;
    case P::bitwise_xor: return x != y;
    default: undefined(op);
  }
}

template <class T>
bool compare(Primitive op, T x, T y) {
  switch (op) {
    case P::eq: return x == y;
    case P::ne: return x != y;
    case P::lt: return x < y;
    case P::le: return x <= y;
    case P::gt: return x > y;
    default: return x >= y;
  }
}

template <class T>
Element evaluate_as(Primitive op, Element a, Element b, Element c) {
  if (op == P::select) return a.get<bool>() ? b : c;
  const T x = a.get<T>();
  if (op == P::logical_not) return Element::of(x == T(0));
  if (is_comparison(op)) return Element::of(compare(op, x, b.get<T>()));
  const bool binary = arity_of(op) == 2 || is_reduction(op);
  if constexpr (std::is_same_v<T, bool>) {
    if (op == P::bitwise_not) return Element::of(!x);
    return Element::of(bool_binary(op, x, b.get<T>()));
  } else if constexpr (std::is_floating_point_v<T>) {
    if (op == P::is_nan) return Element::of(std::isnan(x));
    if (op == P::is_inf) return Element::of(std::isinf(x));
    return Element::of(binary ? float_binary(op, x, b.get<T>()) : float_unary(op, x));
  } else {
    return Element::of(binary ? int_binary(op, x, b.get<T>()) : int_unary(op, x));
  }
}

float half_to_float(uint16_t half) {
  const int exponent = half >> 10 & 31, mantissa = half & 1023;
  const float sign = half & 0x8000 ? -1.0f : 1.0f;
  if (exponent == 31) return mantissa ? std::numeric_limits<float>::quiet_NaN() : sign * INFINITY;
  return sign * (exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                               : std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25));
}

uint16_t float_to_half(float x) {
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  const float magnitude = std::fabs(x);
  if (std::isnan(x)) return sign | 0x7e00;
  if (magnitude == 0) return sign;
  if (magnitude >= 65520.0f) return sign | 0x7c00;  // half way between the largest number and the next step
  int exponent;
  std::frexp(magnitude, &exponent);  // magnitude < 2^exponent
  const int step = std::max(exponent - 11, -24);
  const int steps = static_cast<int>(std::nearbyint(std::ldexp(magnitude, -step)));
  // The exponent field counts from step -24; a carry out of the mantissa moves into it by itself.
  return static_cast<uint16_t>(sign | (((step + 24) << 10) + steps));
}

float bfloat_to_float(uint16_t bits) { return Element::of(static_cast<uint32_t>(bits) << 16).get<float>(); }

uint16_t float_to_bfloat(float x) {
  if (std::isnan(x)) return 0x7fc0;
  const uint32_t bits = Element::of(x).get<uint32_t>();
  const uint32_t rest = bits & 0xffff, up = rest > 0x8000 || (rest == 0x8000 && (bits >> 16) % 2 == 1);
  return static_cast<uint16_t>((bits >> 16) + up);
}

template <class T>
Element from_number(T x, DType to) {
  switch (to) {
    case DType::kBool: return Element::of(x != T(0));
    case DType::kU8: return Element::of(math::convert<uint8_t>(x));
    case DType::kI8: return Element::of(math::convert<int8_t>(x));
    case DType::kI16: return Element::of(math::convert<int16_t>(x));
    case DType::kI32: return Element::of(math::convert<int32_t>(x));
    case DType::kI64: return Element::of(math::convert<int64_t>(x));
    case DType::kU16: return Element::of(math::convert<uint16_t>(x));
    case DType::kU32: return Element::of(math::convert<uint32_t>(x));
    case DType::kU64: return Element::of(math::convert<uint64_t>(x));
    case DType::kF16: return Element::of(float_to_half(static_cast<float>(x)));
    case DType::kBF16: return Element::of(float_to_bfloat(static_cast<float>(x)));
    case DType::kF32: return Element::of(static_cast<float>(x));
    case DType::kF64: return Element::of(static_cast<double>(x));
    default: undefined(P::cast);
  }
}

/// Calls f.operator()<T>() with the C++ type that computes for a dtype.
template <class F>
Element dispatch(DType type, Primitive op, F f) {
  switch (type) {
    case DType::kBool: return f.template operator()<bool>();
    case DType::kU8: return f.template operator()<uint8_t>();
    case DType::kI8: return f.template operator()<int8_t>();
    case DType::kI16: return f.template operator()<int16_t>();
    case DType::kI32: return f.template operator()<int32_t>();
    case DType::kI64: return f.template operator()<int64_t>();
    case DType::kU16: return f.template operator()<uint16_t>();
    case DType::kU32: return f.template operator()<uint32_t>();
    case DType::kU64: return f.template operator()<uint64_t>();
    case DType::kF32: return f.template operator()<float>();
    case DType::kF64: return f.template operator()<double>();
    default: undefined(op);
  }
}

template <class T>
Element identity_of(Primitive op) {
  using Limits = std::numeric_limits<T>;
  switch (op) {
    case P::reduce_prod: return Element::of(T(1));
    case P::reduce_all: return Element::of(true);
    case P::reduce_max: return Element::of(Limits::has_infinity ? -Limits::infinity() : Limits::lowest());
    case P::reduce_min: return Element::of(Limits::has_infinity ? Limits::infinity() : Limits::max());
    default: return Element::of(T(0));
  }
}

}  // namespace

Element evaluate(Primitive op, DType type, Element a, Element b, Element c) {
  return dispatch(type, op, [&]<class T>() { return evaluate_as<T>(op, a, b, c); });
}

Element convert(Element value, DType from, DType to) {
  if (from == DType::kF16) return from_number(half_to_float(value.get<uint16_t>()), to);
  if (from == DType::kBF16) return from_number(bfloat_to_float(value.get<uint16_t>()), to);
  return dispatch(from, P::cast, [&]<class T>() {
    using Number = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
    return from_number(static_cast<Number>(value.get<T>()), to);
  });
}

Element scalar_element(uint64_t word, DType type) {
  return convert(Element::of(word), is_floating(type) ? DType::kF64 : DType::kI64, type);
}

int64_t random_bits(int64_t position, int64_t seed, int64_t offset) {
  const auto p = static_cast<uint64_t>(position), key = static_cast<uint64_t>(seed);
  // Arithmetic, not logical: positions below zero belong to groups below zero.
  const auto group = static_cast<uint64_t>((position >> 6) * 16 + static_cast<int64_t>(p % 16));
  uint32_t counter[4] = {static_cast<uint32_t>(group), static_cast<uint32_t>(group >> 32),
                         static_cast<uint32_t>(offset), static_cast<uint32_t>(static_cast<uint64_t>(offset) >> 32)};
  uint32_t key_low = static_cast<uint32_t>(key), key_high = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = uint64_t{0xD2511F53} * counter[0], second = uint64_t{0xCD9E8D57} * counter[2];
    const uint32_t next[4] = {static_cast<uint32_t>(second >> 32) ^ counter[1] ^ key_low, static_cast<uint32_t>(second),
                              static_cast<uint32_t>(first >> 32) ^ counter[3] ^ key_high, static_cast<uint32_t>(first)};
    std::copy(next, next + 4, counter);
    key_low += 0x9E3779B9;
    key_high += 0xBB67AE85;
  }
  return counter[p % 64 / 16];
}

Element reduce(Primitive op, DType type, std::span<const Element> elements) {
  constexpr size_t kLanes = device::kReductionLanes, kChunk = device::kReductionChunk;
  if (elements.size() > kChunk) {
    std::vector<Element> chunks;
    for (size_t i = 0; i < elements.size(); i += kChunk) {
      chunks.push_back(reduce(op, type, elements.subspan(i, std::min(kChunk, elements.size() - i))));
    }
    return reduce(op, type, chunks);
  }
  Element lanes[kLanes];
  std::fill(lanes, lanes + kLanes, dispatch(type, op, [&]<class T>() { return identity_of<T>(op); }));
  for (size_t i = 0; i < elements.size(); ++i) {
    lanes[i % kLanes] = evaluate(op, type, lanes[i % kLanes], elements[i], {});
  }
  for (size_t step = kLanes / 2; step >= 1; step /= 2) {
    for (size_t lane = 0; lane < step; ++lane) {
      lanes[lane] = evaluate(op, type, lanes[lane], lanes[lane + step], {});
    }
  }
  return lanes[0];
}

}  // namespace ae::fusion
