// _foreach_*: loops that record the single operator for each tensor, as PyTorch's own slow path runs it, without a
// dispatch for each. What they become is the planner's matter.
#include <ATen/native/ForeachUtils.h>

#include "engine/record/fill.h"
#include "engine/record/kernel.h"
#include "engine/record/pointwise.h"
#include "engine/record/reduce.h"

namespace ae::engine {
namespace {

using at::Scalar;
using at::Tensor;
using at::TensorList;
using at::native::check_foreach_api_restrictions;
using Scalars = at::ArrayRef<Scalar>;
using Tensors = std::vector<Tensor>;

/// Results of `make(i)` for each tensor of a list.
template <class F>
Tensors collect(size_t count, F&& make) {
  Tensors results;
  results.reserve(count);
  for (size_t i = 0; i < count; ++i) results.push_back(make(i));
  return results;
}

/// A tensor of a list that is about to be written. PyTorch's signatures have lists of const tensors there too, and its
/// layers above count a new version for single operators only.
Tensor& writable(const Tensor& tensor) {
  tensor.unsafeGetTensorImpl()->bump_version();
  return const_cast<Tensor&>(tensor);
}

void check_scalar_tensor(const Tensor& scalar) {
  TORCH_CHECK(scalar.dim() == 0 && scalar.numel() == 1, "scalar tensor expected to be 0 dim but it has ", scalar.dim(),
              " dimensions and ", scalar.numel(), " elements.");
}

// One struct a shape of operator; `name` and `describe` are those of the single operator's functional form, `name_` is
// that of its in-place form.

template <OperatorName name, OperatorName name_, auto describe>
struct ForeachUnary {
  static Tensors functional(TensorList self) {
    check_foreach_api_restrictions(self);
    return collect(self.size(), [&](size_t i) { return Kernel<name, describe>::functional(self[i]); });
  }
  static void in_place(TensorList self) {
    check_foreach_api_restrictions(self);
    for (const Tensor& tensor : self) InPlaceKernel<name_, describe>::in_place(writable(tensor));
  }
};

/// Operators of a tensor and a number, the same for all or one each; `more` follows in the single operator's arguments.
template <OperatorName name, OperatorName name_, auto describe, auto... more>
struct ForeachScalar {
  static Tensors functional(TensorList self, const Scalar& scalar) {
    check_foreach_api_restrictions(self);
    return collect(self.size(), [&](size_t i) { return Kernel<name, describe>::functional(self[i], scalar, more...); });
  }
  static void in_place(TensorList self, const Scalar& scalar) {
    check_foreach_api_restrictions(self);
    for (const Tensor& tensor : self) InPlaceKernel<name_, describe>::in_place(writable(tensor), scalar, more...);
  }
  static Tensors list_functional(TensorList self, Scalars scalars) {
    check_foreach_api_restrictions(self, scalars);
    return collect(self.size(),
                   [&](size_t i) { return Kernel<name, describe>::functional(self[i], scalars[i], more...); });
  }
  static void list_in_place(TensorList self, Scalars scalars) {
    check_foreach_api_restrictions(self, scalars);
    for (size_t i = 0; i < self.size(); ++i)
      InPlaceKernel<name_, describe>::in_place(writable(self[i]), scalars[i], more...);
  }
};

/// Operators of two tensors: the other one from a list, or one for all. `Alpha` is empty or a Scalar.
template <OperatorName name, OperatorName name_, auto describe, class... Alpha>
struct ForeachList {
  static Tensors functional(TensorList self, TensorList other, const Alpha&... alpha) {
    check_foreach_api_restrictions(self, other);
    return collect(self.size(),
                   [&](size_t i) { return Kernel<name, describe>::functional(self[i], other[i], alpha...); });
  }
  static void in_place(TensorList self, TensorList other, const Alpha&... alpha) {
    check_foreach_api_restrictions(self, other);
    for (size_t i = 0; i < self.size(); ++i)
      InPlaceKernel<name_, describe>::in_place(writable(self[i]), other[i], alpha...);
  }
  static Tensors one_functional(TensorList self, const Tensor& other, const Alpha&... alpha) {
    check_scalar_tensor(other);
    check_foreach_api_restrictions(self);
    return collect(self.size(), [&](size_t i) { return Kernel<name, describe>::functional(self[i], other, alpha...); });
  }
  static void one_in_place(TensorList self, const Tensor& other, const Alpha&... alpha) {
    check_scalar_tensor(other);
    check_foreach_api_restrictions(self);
    for (const Tensor& tensor : self) InPlaceKernel<name_, describe>::in_place(writable(tensor), other, alpha...);
  }
};

/// addcmul and addcdiv.
template <OperatorName name, OperatorName name_, auto describe>
struct ForeachTernary {
  static Tensors functional(TensorList self, TensorList a, TensorList b, const Scalar& value) {
    check_foreach_api_restrictions(self, a, b);
    return collect(self.size(),
                   [&](size_t i) { return Kernel<name, describe>::functional(self[i], a[i], b[i], value); });
  }
  static void in_place(TensorList self, TensorList a, TensorList b, const Scalar& value) {
    check_foreach_api_restrictions(self, a, b);
    for (size_t i = 0; i < self.size(); ++i)
      InPlaceKernel<name_, describe>::in_place(writable(self[i]), a[i], b[i], value);
  }
  static Tensors list_functional(TensorList self, TensorList a, TensorList b, Scalars values) {
    check_foreach_api_restrictions(self, a, b, values);
    return collect(self.size(),
                   [&](size_t i) { return Kernel<name, describe>::functional(self[i], a[i], b[i], values[i]); });
  }
  static void list_in_place(TensorList self, TensorList a, TensorList b, Scalars values) {
    check_foreach_api_restrictions(self, a, b, values);
    for (size_t i = 0; i < self.size(); ++i)
      InPlaceKernel<name_, describe>::in_place(writable(self[i]), a[i], b[i], values[i]);
  }
  static Tensors packed_functional(TensorList self, TensorList a, TensorList b, const Tensor& values) {
    return list_functional(self, a, b,
                           at::native::convert_tensor_to_scalar_list(values, static_cast<int64_t>(self.size())));
  }
  static void packed_in_place(TensorList self, TensorList a, TensorList b, const Tensor& values) {
    list_in_place(self, a, b, at::native::convert_tensor_to_scalar_list(values, static_cast<int64_t>(self.size())));
  }
};

struct ForeachLerp {
  static Tensors functional(TensorList self, TensorList end, const Scalar& weight) {
    check_foreach_api_restrictions(self, end);
    return collect(self.size(),
                   [&](size_t i) { return Kernel<"lerp.Scalar", &lerp_scalar>::functional(self[i], end[i], weight); });
  }
  static void in_place(TensorList self, TensorList end, const Scalar& weight) {
    check_foreach_api_restrictions(self, end);
    for (size_t i = 0; i < self.size(); ++i)
      InPlaceKernel<"lerp_.Scalar", &lerp_scalar>::in_place(writable(self[i]), end[i], weight);
  }
  static Tensors scalars_functional(TensorList self, TensorList end, Scalars weights) {
    check_foreach_api_restrictions(self, end, weights);
    return collect(self.size(), [&](size_t i) {
      return Kernel<"lerp.Scalar", &lerp_scalar>::functional(self[i], end[i], weights[i]);
    });
  }
  static void scalars_in_place(TensorList self, TensorList end, Scalars weights) {
    check_foreach_api_restrictions(self, end, weights);
    for (size_t i = 0; i < self.size(); ++i)
      InPlaceKernel<"lerp_.Scalar", &lerp_scalar>::in_place(writable(self[i]), end[i], weights[i]);
  }
  static Tensors list_functional(TensorList self, TensorList end, TensorList weights) {
    check_foreach_api_restrictions(self, end, weights);
    return collect(self.size(),
                   [&](size_t i) { return Kernel<"lerp.Tensor", &lerp>::functional(self[i], end[i], weights[i]); });
  }
  static void list_in_place(TensorList self, TensorList end, TensorList weights) {
    check_foreach_api_restrictions(self, end, weights);
    for (size_t i = 0; i < self.size(); ++i)
      InPlaceKernel<"lerp_.Tensor", &lerp>::in_place(writable(self[i]), end[i], weights[i]);
  }
};

Tensors foreach_scalar_pow(const Scalar& self, TensorList exponents) {
  check_foreach_api_restrictions(exponents);
  return collect(exponents.size(),
                 [&](size_t i) { return Kernel<"pow.Scalar", &scalar_pow>::functional(self, exponents[i]); });
}

Tensors foreach_norm(TensorList self, const Scalar& ord, std::optional<at::ScalarType> dtype) {
  check_foreach_api_restrictions(self);
  return collect(self.size(), [&](size_t i) {
    return Kernel<"linalg_vector_norm", &vector_norm>::functional(self[i], ord, std::nullopt, false, dtype);
  });
}

Tensors foreach_max(TensorList self) {
  check_foreach_api_restrictions(self);
  for (const Tensor& tensor : self) {
    TORCH_CHECK(tensor.numel() != 0,
                "_foreach_max cannot compute the maximum of an empty tensor; max over zero elements is "
                "undefined.");
  }
  return collect(self.size(), [&](size_t i) { return Kernel<"max", &max_of_all>::functional(self[i]); });
}

void foreach_zero(TensorList self) {
  check_foreach_api_restrictions(self);
  for (const Tensor& tensor : self) zero(writable(tensor));
}

void foreach_copy(TensorList self, TensorList source, bool non_blocking) {
  check_foreach_api_restrictions(self, source);
  for (size_t i = 0; i < self.size(); ++i) self[i].copy_(source[i], non_blocking);  // counts a version itself
}

#define AE_FOREACH_UNARY(name, rule)                                                                  \
  m.impl("_foreach_" #name, &ForeachUnary<#name, #name "_", &unary<Opcode::name, rule>>::functional); \
  m.impl("_foreach_" #name "_", &ForeachUnary<#name, #name "_", &unary<Opcode::name, rule>>::in_place)

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  AE_FOREACH_UNARY(abs, kMagnitude);
  AE_FOREACH_UNARY(neg, kField);
  AE_FOREACH_UNARY(sign, kAnyType);
  AE_FOREACH_UNARY(floor, kArithmetic);
  AE_FOREACH_UNARY(ceil, kArithmetic);
  AE_FOREACH_UNARY(trunc, kArithmetic);
  AE_FOREACH_UNARY(round, kArithmetic);
  AE_FOREACH_UNARY(frac, kFloatOnly);
  AE_FOREACH_UNARY(sqrt, kToFloatField);
  AE_FOREACH_UNARY(rsqrt, kToFloatField);
  AE_FOREACH_UNARY(reciprocal, kToFloatField);
  AE_FOREACH_UNARY(exp, kToFloatField);
  AE_FOREACH_UNARY(expm1, kToFloat);
  AE_FOREACH_UNARY(log, kToFloatField);
  AE_FOREACH_UNARY(log2, kToFloatField);
  AE_FOREACH_UNARY(log10, kToFloatField);
  AE_FOREACH_UNARY(log1p, kToFloat);
  AE_FOREACH_UNARY(sin, kToFloatField);
  AE_FOREACH_UNARY(cos, kToFloatField);
  AE_FOREACH_UNARY(tan, kToFloatField);
  AE_FOREACH_UNARY(asin, kToFloat);
  AE_FOREACH_UNARY(acos, kToFloat);
  AE_FOREACH_UNARY(atan, kToFloat);
  AE_FOREACH_UNARY(sinh, kToFloatField);
  AE_FOREACH_UNARY(cosh, kToFloatField);
  AE_FOREACH_UNARY(tanh, kToFloatField);
  AE_FOREACH_UNARY(erf, kToFloat);
  AE_FOREACH_UNARY(erfc, kToFloat);
  AE_FOREACH_UNARY(sigmoid, kToFloatField);
}

#define AE_FOREACH_SCALAR(name, ...)                                     \
  m.impl("_foreach_" name ".Scalar", &__VA_ARGS__::functional);          \
  m.impl("_foreach_" name "_.Scalar", &__VA_ARGS__::in_place);           \
  m.impl("_foreach_" name ".ScalarList", &__VA_ARGS__::list_functional); \
  m.impl("_foreach_" name "_.ScalarList", &__VA_ARGS__::list_in_place)
#define AE_FOREACH_LIST(name, ...)                            \
  m.impl("_foreach_" name ".List", &__VA_ARGS__::functional); \
  m.impl("_foreach_" name "_.List", &__VA_ARGS__::in_place)
#define AE_FOREACH_TENSOR(name, ...)                                \
  m.impl("_foreach_" name ".Tensor", &__VA_ARGS__::one_functional); \
  m.impl("_foreach_" name "_.Tensor", &__VA_ARGS__::one_in_place)
#define AE_FOREACH_TERNARY(name, ...)                                  \
  AE_FOREACH_SCALAR(name, __VA_ARGS__);                                \
  m.impl("_foreach_" name ".Tensor", &__VA_ARGS__::packed_functional); \
  m.impl("_foreach_" name "_.Tensor", &__VA_ARGS__::packed_in_place)

using AddList = ForeachList<"add.Tensor", "add_.Tensor", &add, Scalar>;
using SubList = ForeachList<"sub.Tensor", "sub_.Tensor", &sub, Scalar>;
using MulList = ForeachList<"mul.Tensor", "mul_.Tensor", &mul>;
using DivList = ForeachList<"div.Tensor", "div_.Tensor", &div>;
using MinimumScalar = ForeachScalar<"clamp_max", "clamp_max_", &clamp_max>;
using MaximumScalar = ForeachScalar<"clamp_min", "clamp_min_", &clamp_min>;
using MinimumList = ForeachList<"clamp_max.Tensor", "clamp_max_.Tensor", &minimum>;
using MaximumList = ForeachList<"clamp_min.Tensor", "clamp_min_.Tensor", &maximum>;

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  AE_FOREACH_SCALAR("add", ForeachScalar<"add.Scalar", "add_.Scalar", &add_scalar, 1>);
  AE_FOREACH_SCALAR("sub", ForeachScalar<"sub.Scalar", "sub_.Scalar", &sub_scalar, 1>);
  AE_FOREACH_SCALAR("mul", ForeachScalar<"mul.Scalar", "mul_.Scalar", &mul_scalar>);
  AE_FOREACH_SCALAR("div", ForeachScalar<"div.Scalar", "div_.Scalar", &div_scalar>);
  AE_FOREACH_SCALAR("pow", ForeachScalar<"pow.Tensor_Scalar", "pow_.Scalar", &pow_scalar>);
  AE_FOREACH_SCALAR("clamp_min", MaximumScalar);
  AE_FOREACH_SCALAR("clamp_max", MinimumScalar);
  AE_FOREACH_SCALAR("maximum", MaximumScalar);
  AE_FOREACH_SCALAR("minimum", MinimumScalar);

  AE_FOREACH_LIST("add", AddList);
  AE_FOREACH_LIST("sub", SubList);
  AE_FOREACH_LIST("mul", MulList);
  AE_FOREACH_LIST("div", DivList);
  AE_FOREACH_LIST("pow", ForeachList<"pow.Tensor_Tensor", "pow_.Tensor", &pow>);
  AE_FOREACH_LIST("clamp_min", MaximumList);
  AE_FOREACH_LIST("clamp_max", MinimumList);
  AE_FOREACH_LIST("maximum", MaximumList);
  AE_FOREACH_LIST("minimum", MinimumList);
  AE_FOREACH_TENSOR("add", AddList);
  AE_FOREACH_TENSOR("mul", MulList);
  AE_FOREACH_TENSOR("div", DivList);
  m.impl("_foreach_pow.ScalarAndTensor", &foreach_scalar_pow);

  AE_FOREACH_TERNARY("addcmul", ForeachTernary<"addcmul", "addcmul_", &addcmul>);
  AE_FOREACH_TERNARY("addcdiv", ForeachTernary<"addcdiv", "addcdiv_", &addcdiv>);
  m.impl("_foreach_lerp.Scalar", &ForeachLerp::functional);
  m.impl("_foreach_lerp_.Scalar", &ForeachLerp::in_place);
  m.impl("_foreach_lerp.ScalarList", &ForeachLerp::scalars_functional);
  m.impl("_foreach_lerp_.ScalarList", &ForeachLerp::scalars_in_place);
  m.impl("_foreach_lerp.List", &ForeachLerp::list_functional);
  m.impl("_foreach_lerp_.List", &ForeachLerp::list_in_place);

  m.impl("_foreach_norm.Scalar", &foreach_norm);
  m.impl("_foreach_max", &foreach_max);
  m.impl("_foreach_zero_", &foreach_zero);
  m.impl("_foreach_copy_", &foreach_copy);
}

}  // namespace
}  // namespace ae::engine
