// The primitive computations that kernels are made of. Kernel IR (fusion/ir), the tile machine (device/host) and every
// other code generator name them by this one list, so a primitive has one meaning everywhere.
//
// Unless said otherwise a primitive takes operands of one dtype and gives the same dtype. Comparisons give bool.
// Half types (f16, bf16) are never computed with: kernels cast to f32 first (see `compute_type`) and back at the end of
// each operator. Complex numbers are computed with as pairs of reals (fusion/ops/complex.h).
#pragma once

#include <cstdint>

namespace ae {

// X(name, arity)
// clang-format off: one entry of the list after the other, as they belong together
#define AE_PRIMITIVES(X)                                                                                              \
  /* Data movement. `load`, `store` and `iota` name an operand of the launch. */                                      \
  X(load, 0)   /* element of an operand */                                                                            \
  X(store, 1)  /* a -> element of an operand (same dtype) */                                                          \
  X(iota, 0)   /* i64: the operand's offset + sum(index * stride): a position, no memory is read */                   \
  X(scalar, 0) /* launch scalar: floating types are passed as double bits, others as int64 bits */                    \
  X(cast, 1)   /* C++ conversion; to bool: != 0; float -> int of an unrepresentable value as x86's cvtt does it */    \
  X(broadcast, 1) /* kept level -> full level */                                                                      \
  /* Unary, float and int unless said. */                                                                             \
  X(neg, 1)                                                                                                           \
  X(abs, 1)                                                                                                           \
  X(sign, 1)        /* -1, 0, 1; NaN -> NaN as torch.sgn does for floats: (0 < x) - (x < 0), so NaN -> 0 */           \
  X(floor, 1)                                                                                                         \
  X(ceil, 1)                                                                                                          \
  X(trunc, 1)                                                                                                         \
  X(round, 1)       /* half to even */                                                                                \
  X(sqrt, 1)                                                                                                          \
  X(reciprocal, 1)  /* 1 / x */                                                                                       \
  X(rsqrt, 1)       /* 1 / sqrt(x), two roundings */                                                                  \
  X(exp, 1)                                                                                                           \
  X(exp2, 1)                                                                                                          \
  X(expm1, 1)                                                                                                         \
  X(log, 1)                                                                                                           \
  X(log2, 1)                                                                                                          \
  X(log10, 1)                                                                                                         \
  X(log1p, 1)                                                                                                         \
  X(sin, 1)                                                                                                           \
  X(cos, 1)                                                                                                           \
  X(tan, 1)                                                                                                           \
  X(asin, 1)                                                                                                          \
  X(acos, 1)                                                                                                          \
  X(atan, 1)                                                                                                          \
  X(sinh, 1)                                                                                                          \
  X(cosh, 1)                                                                                                          \
  X(tanh, 1)                                                                                                          \
  X(erf, 1)                                                                                                           \
  X(erfc, 1)                                                                                                          \
  X(asinh, 1)                                                                                                         \
  X(acosh, 1)                                                                                                         \
  X(atanh, 1)                                                                                                         \
  X(erfinv, 1)                                                                                                        \
  X(erfcx, 1)                                                                                                         \
  X(lgamma, 1)                                                                                                        \
  X(digamma, 1)                                                                                                       \
  X(trigamma, 1)                                                                                                      \
  X(i0, 1)                                                                                                            \
  X(i0e, 1)                                                                                                           \
  X(i1, 1)                                                                                                            \
  X(i1e, 1)                                                                                                           \
  X(ndtri, 1)                                                                                                         \
  X(log_ndtr, 1)                                                                                                      \
  X(sigmoid, 1)     /* 1 / (1 + exp(-x)); the last of the functions that are for floats only */                       \
  X(logical_not, 1) /* any dtype -> bool */                                                                           \
  X(bitwise_not, 1) /* ints and bool (bool: logical) */                                                               \
  X(is_nan, 1)      /* float -> bool */                                                                               \
  X(is_inf, 1)      /* float -> bool */                                                                               \
  /* Binary. */                                                                                                       \
  X(add, 2)   /* bool: or */                                                                                          \
  X(sub, 2)                                                                                                           \
  X(mul, 2)   /* bool: and */                                                                                         \
  X(div, 2)   /* floats only */                                                                                       \
  X(floor_div, 2) /* torch's floor_divide: floats c10::div_floor_floating; ints round to -inf, x/0 -> 0 (checked before) */ \
  X(trunc_div, 2) /* div(rounding_mode="trunc"); ints x/0 -> 0 (checked before) */                                    \
  X(remainder, 2) /* Python's %, sign of the divisor; ints x%0 -> 0 (checked before) */                               \
  X(fmod, 2)      /* C's fmod */                                                                                      \
  X(pow, 2)                                                                                                           \
  X(atan2, 2)                                                                                                         \
  X(hypot, 2)                                                                                                         \
  X(maximum, 2) /* NaN wins */                                                                                        \
  X(minimum, 2) /* NaN wins */                                                                                        \
  X(fmax, 2)    /* NaN loses */                                                                                       \
  X(fmin, 2)    /* NaN loses */                                                                                       \
  X(eq, 2)                                                                                                            \
  X(ne, 2)                                                                                                            \
  X(lt, 2)                                                                                                            \
  X(le, 2)                                                                                                            \
  X(gt, 2)                                                                                                            \
  X(ge, 2)                                                                                                            \
  X(bitwise_and, 2) /* ints and bool */                                                                               \
  X(bitwise_or, 2)                                                                                                    \
  X(bitwise_xor, 2)                                                                                                   \
  X(shift_left, 2)                                                                                                    \
  X(shift_right, 2)                                                                                                   \
  X(copysign, 2)                                                                                                      \
  /* Ternary. */                                                                                                      \
  X(select, 3)      /* a (bool) ? b : c */                                                                            \
  /* Random bits: a = i64 position (from iota), b = i64 seed, c = i64 offset; gives u32 as i64 in [0, 2^32).          \
     Philox 4x32-10 with key = seed and 128-bit counter {group, offset}: position p belongs to                        \
     group = (p / 64) * 16 + p % 16 and takes output word (p % 64) / 16. */                                           \
  X(random_bits, 3)                                                                                                   \
  /* Reductions: full level -> kept level, in the canonical order (see device/host/tile_program.h). */                \
  X(reduce_sum, 1)                                                                                                    \
  X(reduce_prod, 1)                                                                                                   \
  X(reduce_max, 1) /* NaN wins */                                                                                     \
  X(reduce_min, 1) /* NaN wins */                                                                                     \
  X(reduce_any, 1) /* bool */                                                                                         \
  X(reduce_all, 1) /* bool */
// clang-format on

enum class Primitive : uint8_t {
#define AE_X(name, arity) name,
  AE_PRIMITIVES(AE_X)
#undef AE_X
};

inline constexpr int kPrimitiveCount = 0
#define AE_X(name, arity) +1
    AE_PRIMITIVES(AE_X)
#undef AE_X
    ;

/// Number of value operands (loads, iotas and scalars have none).
constexpr int arity_of(Primitive primitive) {
  constexpr int kArity[] = {
#define AE_X(name, arity) arity,
      AE_PRIMITIVES(AE_X)
#undef AE_X
  };
  return kArity[static_cast<int>(primitive)];
}

constexpr const char* name_of(Primitive primitive) {
  constexpr const char* kNames[] = {
#define AE_X(name, arity) #name,
      AE_PRIMITIVES(AE_X)
#undef AE_X
  };
  return kNames[static_cast<int>(primitive)];
}

constexpr bool is_reduction(Primitive primitive) { return primitive >= Primitive::reduce_sum; }
constexpr bool is_comparison(Primitive primitive) { return primitive >= Primitive::eq && primitive <= Primitive::ge; }

}  // namespace ae
