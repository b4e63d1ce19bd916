// Kernels from descriptions. An operator is described once, as
//     bool name(Call& call, arguments of the functional form…)
// which records the operator through `call` and returns true, or returns false when the case is outside of what is
// recorded (dtype, complex, an argument that PyTorch rejects). Then the CPU fallback runs the operator, and raises the
// CPU's own error where there is one. The three forms of an operator are made from its description:
//     AE_FORMS(m, "add", ".Tensor", ".out", add)   registers add.Tensor, add_.Tensor and add.out
#pragma once

#include <torch/library.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "engine/backend/fallback.h"
#include "engine/record/shape.h"

namespace ae::engine {

/// A string as a template argument: an operator's name with its overload, "add.Tensor".
template <size_t n>
struct OperatorName {
  constexpr OperatorName(const char (&name)[n]) { std::copy_n(name, n, text); }  // NOLINT: implicit
  char text[n];
};

inline c10::OperatorHandle find_operator(std::string_view name) {
  const size_t dot = name.find('.');
  const std::string base = "aten::" + std::string(name.substr(0, dot));
  const std::string overload(dot == std::string_view::npos ? std::string_view() : name.substr(dot + 1));
  return c10::Dispatcher::singleton().findSchemaOrThrow(base.c_str(), overload.c_str());
}

/// Calls the CPU fallback of an operator with unboxed arguments: fallback<Signature>("add.Tensor", self, other, alpha).
template <class Signature>
struct Fallback;
template <class Return, class... Args>
struct Fallback<Return(Args...)> {
  [[gnu::noinline]] static Return call(const char* name, Args... args) {
    return c10::impl::BoxedKernelWrapper<Return(Args...)>::call(c10::BoxedKernel::makeFromFunction<&cpu_fallback>(),
                                                                find_operator(name), c10::DispatchKeySet(), args...);
  }
};

/// The three forms of a described operator.
template <OperatorName name, auto describe, class = decltype(describe)>
struct Kernel;
template <OperatorName name, auto describe, class... Args>
struct Kernel<name, describe, bool (*)(Call&, Args...)> {
  static at::Tensor functional(Args... args) {
    Call call;
    if (describe(call, args...)) [[likely]]
      return std::move(call.result);
    return Fallback<at::Tensor(Args...)>::call(name.text, args...);
  }
  static at::Tensor& out(Args... args, at::Tensor& target) {
    Call call = Call::out(target);
    if (describe(call, args...)) [[likely]]
      return target;
    return Fallback<at::Tensor&(Args..., at::Tensor&)>::call(name.text, args..., target);
  }
};

/// The form that writes to its first argument.
template <OperatorName name, auto describe, class = decltype(describe)>
struct InPlaceKernel;
template <OperatorName name, auto describe, class... Args>
struct InPlaceKernel<name, describe, bool (*)(Call&, const at::Tensor&, Args...)> {
  static at::Tensor& in_place(at::Tensor& self, Args... args) {
    Call call = Call::in_place(self);
    if (describe(call, self, args...)) [[likely]]
      return self;
    return Fallback<at::Tensor&(at::Tensor&, Args...)>::call(name.text, self, args...);
  }
};

#define AE_FUNCTIONAL(m, name, describe) m.impl(name, &Kernel<name, &describe>::functional)
#define AE_OUT(m, name, describe) m.impl(name, &Kernel<name, &describe>::out)
#define AE_IN_PLACE(m, name, describe) m.impl(name, &InPlaceKernel<name, &describe>::in_place)
#define AE_FORMS(m, name, overload, out_overload, describe) \
  AE_FUNCTIONAL(m, name overload, describe);                \
  AE_IN_PLACE(m, name "_" overload, describe);              \
  AE_OUT(m, name out_overload, describe)

}  // namespace ae::engine
