// A number type of device/math whose operations write LLVM IR instead of computing: IrVec<T> is a value of 16 lanes in
// a function that is being built. So the functions of device/math, which are written once, also make native code, with
// the same operations in the same order and thereby the same bits.
#pragma once

#include <llvm-c/Core.h>

#include <cstdint>
#include <type_traits>

#include "device/math/vec.h"

namespace ae::device::host::native {

inline constexpr unsigned kLanes = 16;

/// Where the operations on IrVec and IrMask write, on this thread; set while a function is built.
struct IrTarget {
  LLVMContextRef context = nullptr;
  LLVMModuleRef module = nullptr;
  LLVMBuilderRef builder = nullptr;
};
IrTarget& ir_target();

/// <16 x element of T>.
LLVMTypeRef vector_type(LLVMTypeRef element);
LLVMTypeRef int_type(unsigned bits);
LLVMTypeRef float_type(unsigned bytes);
/// The same constant in all lanes.
LLVMValueRef splat(LLVMValueRef constant);
/// A call of an intrinsic that is overloaded on its operands' type.
LLVMValueRef call_intrinsic(const char* name, LLVMTypeRef overload, std::initializer_list<LLVMValueRef> operands);
/// x * 2^n of floats by AVX-512's instruction.
LLVMValueRef scale_floats(LLVMValueRef x, LLVMValueRef n);

template <class T>
LLVMTypeRef element_type() {
  if constexpr (std::is_floating_point_v<T>) {
    return float_type(sizeof(T));
  } else {
    return int_type(sizeof(T) * 8);
  }
}

/// A truth value in each lane: <16 x i1>.
struct IrMask {
  LLVMValueRef v;
  friend IrMask operator&(IrMask a, IrMask b) { return {LLVMBuildAnd(ir_target().builder, a.v, b.v, "")}; }
  friend IrMask operator|(IrMask a, IrMask b) { return {LLVMBuildOr(ir_target().builder, a.v, b.v, "")}; }
  friend IrMask operator^(IrMask a, IrMask b) { return {LLVMBuildXor(ir_target().builder, a.v, b.v, "")}; }
};
inline IrMask mask_not(IrMask m) { return {LLVMBuildNot(ir_target().builder, m.v, "")}; }

template <class T>
struct IrVec {
  LLVMValueRef v = nullptr;

  IrVec() = default;
  IrVec(T x) {
    if constexpr (std::is_floating_point_v<T>) {
      // Through the bits, so that a NaN keeps its own.
      using I = math::int_like<T>;
      const auto bits = static_cast<std::make_unsigned_t<I>>(__builtin_bit_cast(I, x));
      v = splat(LLVMConstBitCast(LLVMConstInt(element_type<I>(), bits, false), element_type<T>()));
    } else {
      v = splat(LLVMConstInt(element_type<T>(), static_cast<uint64_t>(x), std::is_signed_v<T>));
    }
  }
  explicit IrVec(LLVMValueRef value, int) : v(value) {}

  static constexpr bool kFloat = std::is_floating_point_v<T>;
  static constexpr bool kSigned = std::is_signed_v<T>;

#define AE_BINARY(op, Float, Int)                                                                     \
  friend IrVec operator op(IrVec a, IrVec b) {                                                        \
    return IrVec((kFloat ? LLVMBuild##Float : LLVMBuild##Int)(ir_target().builder, a.v, b.v, ""), 0); \
  }
  AE_BINARY(+, FAdd, Add)
  AE_BINARY(-, FSub, Sub)
  AE_BINARY(*, FMul, Mul)
#undef AE_BINARY
  friend IrVec operator/(IrVec a, IrVec b)
    requires(kFloat)
  {
    return IrVec(LLVMBuildFDiv(ir_target().builder, a.v, b.v, ""), 0);
  }
#define AE_BITWISE(op, Int)                                             \
  friend IrVec operator op(IrVec a, IrVec b)                            \
    requires(!kFloat)                                                   \
  {                                                                     \
    return IrVec(LLVMBuild##Int(ir_target().builder, a.v, b.v, ""), 0); \
  }
  AE_BITWISE(&, And)
  AE_BITWISE(|, Or)
  AE_BITWISE(^, Xor)
#undef AE_BITWISE
  friend IrVec operator-(IrVec a) {
    return IrVec((kFloat ? LLVMBuildFNeg : LLVMBuildNeg)(ir_target().builder, a.v, ""), 0);
  }
  friend IrVec operator~(IrVec a)
    requires(!kFloat)
  {
    return IrVec(LLVMBuildNot(ir_target().builder, a.v, ""), 0);
  }
  friend IrVec operator<<(IrVec a, int n)
    requires(!kFloat)
  {
    return IrVec(LLVMBuildShl(ir_target().builder, a.v, IrVec(static_cast<T>(n)).v, ""), 0);
  }
  friend IrVec operator>>(IrVec a, int n)
    requires(!kFloat)
  {
    return IrVec((kSigned ? LLVMBuildAShr : LLVMBuildLShr)(ir_target().builder, a.v, IrVec(static_cast<T>(n)).v, ""),
                 0);
  }

#define AE_COMPARE(op, Float, Signed, Unsigned)                                                                 \
  friend IrMask operator op(IrVec a, IrVec b) {                                                                 \
    if constexpr (kFloat) {                                                                                     \
      return {LLVMBuildFCmp(ir_target().builder, LLVMReal##Float, a.v, b.v, "")};                               \
    } else {                                                                                                    \
      return {LLVMBuildICmp(ir_target().builder, kSigned ? LLVMInt##Signed : LLVMInt##Unsigned, a.v, b.v, "")}; \
    }                                                                                                           \
  }
  AE_COMPARE(==, OEQ, EQ, EQ)
  AE_COMPARE(!=, UNE, NE, NE)
  AE_COMPARE(<, OLT, SLT, ULT)
  AE_COMPARE(<=, OLE, SLE, ULE)
  AE_COMPARE(>, OGT, SGT, UGT)
  AE_COMPARE(>=, OGE, SGE, UGE)
#undef AE_COMPARE
};

template <class T>
IrVec<T> select(IrMask m, std::type_identity_t<IrVec<T>> a, IrVec<T> b) {
  return IrVec<T>(LLVMBuildSelect(ir_target().builder, m.v, a.v, b.v, ""), 0);
}

template <class To, class T>
IrVec<To> bit_cast(IrVec<T> x) {
  static_assert(sizeof(To) == sizeof(T));
  return IrVec<To>(LLVMBuildBitCast(ir_target().builder, x.v, vector_type(element_type<To>()), ""), 0);
}

#define AE_INTRINSIC(name, text)                                                     \
  template <class T>                                                                 \
  IrVec<T> name(IrVec<T> x) {                                                        \
    return IrVec<T>(call_intrinsic(text, vector_type(element_type<T>()), {x.v}), 0); \
  }
AE_INTRINSIC(sqrt, "llvm.sqrt")
AE_INTRINSIC(floor, "llvm.floor")
AE_INTRINSIC(ceil, "llvm.ceil")
AE_INTRINSIC(trunc, "llvm.trunc")
AE_INTRINSIC(rint, "llvm.rint")
#undef AE_INTRINSIC

template <class T>
IrVec<T> fma(IrVec<T> a, IrVec<T> b, std::type_identity_t<IrVec<T>> c) {
#ifdef __FMA__
  return IrVec<T>(call_intrinsic("llvm.fma", vector_type(element_type<T>()), {a.v, b.v, c.v}), 0);
#else
  return a * b + c;
#endif
}

/// As math::convert. The machine's instruction decides what a float becomes that does not fit; `freeze` keeps LLVM from
/// assuming that it fits.
template <class To, class T>
IrVec<To> convert(IrVec<T> x) {
  const LLVMBuilderRef builder = ir_target().builder;
  const LLVMTypeRef to = vector_type(element_type<To>());
  if constexpr (std::is_same_v<To, T>) {
    return x;
  } else if constexpr (std::is_floating_point_v<T> && std::is_floating_point_v<To>) {
    return IrVec<To>((sizeof(To) > sizeof(T) ? LLVMBuildFPExt : LLVMBuildFPTrunc)(builder, x.v, to, ""), 0);
  } else if constexpr (std::is_floating_point_v<T>) {
    static_assert(!(sizeof(To) == 8 && std::is_unsigned_v<To>), "has no instruction of its own");
    if constexpr (sizeof(To) < 4) {
      return convert<To>(convert<int32_t>(x));
    } else if constexpr (std::is_same_v<To, uint32_t>) {
      return convert<To>(convert<int64_t>(x));
    } else {
      return IrVec<To>(LLVMBuildFreeze(builder, LLVMBuildFPToSI(builder, x.v, to, ""), ""), 0);
    }
  } else if constexpr (std::is_floating_point_v<To>) {
    return IrVec<To>((std::is_signed_v<T> ? LLVMBuildSIToFP : LLVMBuildUIToFP)(builder, x.v, to, ""), 0);
  } else {
    return IrVec<To>(LLVMBuildIntCast2(builder, x.v, to, std::is_signed_v<T>, ""), 0);
  }
}
template <class To, class T>
IrVec<To> convert_lanes(IrVec<T> x) {
  return convert<To>(x);
}

}  // namespace ae::device::host::native

namespace ae::math {

template <class T>
struct VecTraits<device::host::native::IrVec<T>> {
  using scalar = T;
  using mask = device::host::native::IrMask;
  template <class To>
  using rebind = device::host::native::IrVec<To>;
  static constexpr int lanes = device::host::native::kLanes;
};

}  // namespace ae::math

namespace ae::device::host::native {

/// As math::scale_by_power_of_two.
template <class T>
IrVec<T> scale_by_power_of_two(IrVec<T> x, IrVec<T> n) {
#ifdef AE_MATH_AVX512
  if constexpr (sizeof(T) == 4) return IrVec<T>(scale_floats(x.v, n.v), 0);
#endif
  using I = math::int_like<T>;
  constexpr int kMantissa = std::numeric_limits<T>::digits - 1;
  constexpr I kBias = std::numeric_limits<T>::max_exponent - 1;
  const IrVec<I> whole = convert<I>(n);
  const IrVec<I> half = whole >> 1;
  const IrVec<T> first = bit_cast<T>((half + IrVec<I>(kBias)) << kMantissa);
  const IrVec<T> second = bit_cast<T>((whole - half + IrVec<I>(kBias)) << kMantissa);
  return x * first * second;
}

}  // namespace ae::device::host::native
