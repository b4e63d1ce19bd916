// The number types that mathematical functions are written over: `Vec<T, N>` and plain scalars, with one set of free
// functions for both, so that a function is written once as `template <class V> V f(V x)` and gives the same bits for
// one number and for sixteen (a NaN's payload and sign are exempt).
//
// Vec<T, N> is N numbers held in GCC vectors of at most the machine's register size; wider ones are pairs of halves.
// Comparisons give a mask: `bool` for scalars, Vec<signed integer of the same size, N> of 0 and -1 for vectors. Masks
// are combined with & and |, negated with `mask_not`, used by `select`, `any` and `all`.
//
// Everything that includes this file is compiled with -ffp-contract=off: products and sums stay apart, and only `fma`
// fuses them. Without FMA hardware `fma` is a product and a sum, for scalars and vectors alike.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define AE_INLINE inline __attribute__((always_inline))

namespace ae::math {

#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#define AE_MATH_AVX512 1
inline constexpr int kRegisterBytes = 64;
#elif defined(__AVX__)
inline constexpr int kRegisterBytes = 32;
#else
inline constexpr int kRegisterBytes = 16;
#endif

/// The signed integer of a type's size.
template <int Bytes>
struct IntOfSize;
template <>
struct IntOfSize<1> {
  using type = int8_t;
};
template <>
struct IntOfSize<2> {
  using type = int16_t;
};
template <>
struct IntOfSize<4> {
  using type = int32_t;
};
template <>
struct IntOfSize<8> {
  using type = int64_t;
};
template <class T>
using int_like = typename IntOfSize<sizeof(T)>::type;

template <class T, int N, bool Leaf = (sizeof(T) * N <= kRegisterBytes)>
struct Vec;

/// What a type of the family is made of. Scalars are vectors of one lane. (device/host/native/compiler/ir_vec.h adds a
/// type that writes code instead of computing.)
template <class V>
struct VecTraits {
  using scalar = V;
  using mask = bool;
  template <class To>
  using rebind = To;
  static constexpr int lanes = 1;
};
template <class T, int N>
struct VecTraits<Vec<T, N>> {
  using scalar = T;
  using mask = Vec<int_like<T>, N>;
  template <class To>
  using rebind = Vec<To, N>;
  static constexpr int lanes = N;
};
template <class V>
using scalar_of = typename VecTraits<V>::scalar;
template <class V>
using mask_of = typename VecTraits<V>::mask;
template <class V>
inline constexpr int lanes_of = VecTraits<V>::lanes;

/// The type with as many lanes as V whose lanes are To.
template <class V, class To>
using rebind = typename VecTraits<V>::template rebind<To>;

/// One register.
template <class T, int N>
struct Vec<T, N, true> {
  typedef T Raw __attribute__((vector_size(sizeof(T) * N)));
  using Mask = Vec<int_like<T>, N>;
  using RawMask = typename Vec<int_like<T>, N>::Raw;
  Raw v;

  Vec() = default;
  AE_INLINE Vec(T x) : v(x - Raw{}) {}
  AE_INLINE explicit Vec(Raw raw, int) : v(raw) {}

  AE_INLINE T operator[](int lane) const { return v[lane]; }
  AE_INLINE void set(int lane, T x) { v[lane] = x; }

  static AE_INLINE Vec load(const T* from) {
    Vec r;
    std::memcpy(&r.v, from, sizeof(r.v));
    return r;
  }
  AE_INLINE void store(T* to) const { std::memcpy(to, &v, sizeof(v)); }

#define AE_BINARY(op) \
  friend AE_INLINE Vec operator op(Vec a, Vec b) { return Vec(a.v op b.v, 0); }
  AE_BINARY(+)
  AE_BINARY(-)
  AE_BINARY(*)
  AE_BINARY(/)
  AE_BINARY(&)
  AE_BINARY(|)
  AE_BINARY(^)
  AE_BINARY(<<)
  AE_BINARY(>>)
#undef AE_BINARY
  friend AE_INLINE Vec operator-(Vec a) { return Vec(-a.v, 0); }
  friend AE_INLINE Vec operator~(Vec a) { return Vec(~a.v, 0); }
  friend AE_INLINE Vec operator<<(Vec a, int n) { return Vec(a.v << n, 0); }
  friend AE_INLINE Vec operator>>(Vec a, int n) { return Vec(a.v >> n, 0); }
#define AE_COMPARE(op) \
  friend AE_INLINE Mask operator op(Vec a, Vec b) { return Mask(static_cast<RawMask>(a.v op b.v), 0); }
  AE_COMPARE(==)
  AE_COMPARE(!=)
  AE_COMPARE(<)
  AE_COMPARE(<=)
  AE_COMPARE(>)
  AE_COMPARE(>=)
#undef AE_COMPARE
};

/// Two halves.
template <class T, int N>
struct Vec<T, N, false> {
  using Half = Vec<T, N / 2>;
  using Mask = Vec<int_like<T>, N>;
  Half lo, hi;

  Vec() = default;
  AE_INLINE Vec(T x) : lo(x), hi(x) {}
  AE_INLINE Vec(Half low, Half high) : lo(low), hi(high) {}

  AE_INLINE T operator[](int lane) const { return lane < N / 2 ? lo[lane] : hi[lane - N / 2]; }
  AE_INLINE void set(int lane, T x) { lane < N / 2 ? lo.set(lane, x) : hi.set(lane - N / 2, x); }

  static AE_INLINE Vec load(const T* from) { return Vec(Half::load(from), Half::load(from + N / 2)); }
  AE_INLINE void store(T* to) const {
    lo.store(to);
    hi.store(to + N / 2);
  }

#define AE_BINARY(op) \
  friend AE_INLINE Vec operator op(Vec a, Vec b) { return Vec(a.lo op b.lo, a.hi op b.hi); }
  AE_BINARY(+)
  AE_BINARY(-)
  AE_BINARY(*)
  AE_BINARY(/)
  AE_BINARY(&)
  AE_BINARY(|)
  AE_BINARY(^)
  AE_BINARY(<<)
  AE_BINARY(>>)
#undef AE_BINARY
  friend AE_INLINE Vec operator-(Vec a) { return Vec(-a.lo, -a.hi); }
  friend AE_INLINE Vec operator~(Vec a) { return Vec(~a.lo, ~a.hi); }
  friend AE_INLINE Vec operator<<(Vec a, int n) { return Vec(a.lo << n, a.hi << n); }
  friend AE_INLINE Vec operator>>(Vec a, int n) { return Vec(a.lo >> n, a.hi >> n); }
#define AE_COMPARE(op) \
  friend AE_INLINE Mask operator op(Vec a, Vec b) { return Mask(a.lo op b.lo, a.hi op b.hi); }
  AE_COMPARE(==)
  AE_COMPARE(!=)
  AE_COMPARE(<)
  AE_COMPARE(<=)
  AE_COMPARE(>)
  AE_COMPARE(>=)
#undef AE_COMPARE
};

template <class V>
inline constexpr bool is_scalar = std::is_arithmetic_v<V>;
template <class V>
inline constexpr bool is_leaf = false;
template <class T, int N>
inline constexpr bool is_leaf<Vec<T, N, true>> = true;

// --- Masks ---

AE_INLINE bool mask_not(bool m) { return !m; }
template <class T, int N>
AE_INLINE Vec<T, N> mask_not(Vec<T, N> m) {
  return ~m;
}

AE_INLINE bool any(bool m) { return m; }
template <class T, int N>
AE_INLINE bool any(Vec<T, N> m) {
  if constexpr (!is_leaf<Vec<T, N>>) {
    return any(m.lo | m.hi);
#ifdef AE_MATH_AVX512
  } else if constexpr (sizeof(m) == 64) {
    return _mm512_test_epi64_mask((__m512i)m.v, (__m512i)m.v) != 0;
#endif
  } else {
    T bits = 0;
    for (int i = 0; i < N; ++i) bits |= m.v[i];
    return bits != 0;
  }
}
template <class M>
AE_INLINE bool all(M m) {
  return !any(mask_not(m));
}

/// m ? a : b, lane by lane.
template <class V>
AE_INLINE V select(mask_of<V> m, std::type_identity_t<V> a, V b) {
  if constexpr (is_scalar<V>) {
    return m ? a : b;
  } else if constexpr (is_leaf<V>) {
    return V(m.v ? a.v : b.v, 0);
  } else {
    return V(select(m.lo, a.lo, b.lo), select(m.hi, a.hi, b.hi));
  }
}

// --- Bits, loads and conversions ---

/// The same bits as lanes of another type of the same size.
template <class To, class V>
AE_INLINE rebind<V, To> bit_cast(V x) {
  static_assert(sizeof(To) == sizeof(scalar_of<V>));
  if constexpr (is_scalar<V>) {
    return __builtin_bit_cast(To, x);
  } else if constexpr (is_leaf<V>) {
    return rebind<V, To>((typename rebind<V, To>::Raw)x.v, 0);
  } else {
    return rebind<V, To>(bit_cast<To>(x.lo), bit_cast<To>(x.hi));
  }
}

template <class V>
AE_INLINE V load(const scalar_of<V>* from) {
  if constexpr (is_scalar<V>) {
    return *from;
  } else {
    return V::load(from);
  }
}
template <class V>
AE_INLINE void store(scalar_of<V>* to, V x) {
  if constexpr (is_scalar<V>) {
    *to = x;
  } else {
    x.store(to);
  }
}

template <class T, int N>
AE_INLINE Vec<T, N / 2> low_half(Vec<T, N> x) {
  if constexpr (!is_leaf<Vec<T, N>>) {
    return x.lo;
  } else {
    return [&]<int... I>(std::integer_sequence<int, I...>) {
      return Vec<T, N / 2>(__builtin_shufflevector(x.v, x.v, I...), 0);
    }(std::make_integer_sequence<int, N / 2>{});
  }
}
template <class T, int N>
AE_INLINE Vec<T, N / 2> high_half(Vec<T, N> x) {
  if constexpr (!is_leaf<Vec<T, N>>) {
    return x.hi;
  } else {
    return [&]<int... I>(std::integer_sequence<int, I...>) {
      return Vec<T, N / 2>(__builtin_shufflevector(x.v, x.v, (I + N / 2)...), 0);
    }(std::make_integer_sequence<int, N / 2>{});
  }
}
template <class T, int H>
AE_INLINE Vec<T, 2 * H> join(Vec<T, H> a, Vec<T, H> b) {
  if constexpr (!is_leaf<Vec<T, 2 * H>>) {
    return Vec<T, 2 * H>(a, b);
  } else {
    return [&]<int... I>(std::integer_sequence<int, I...>) {
      return Vec<T, 2 * H>(__builtin_shufflevector(a.v, b.v, I...), 0);
    }(std::make_integer_sequence<int, 2 * H>{});
  }
}

}  // namespace ae::math
