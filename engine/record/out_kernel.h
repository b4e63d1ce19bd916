// Kernels of library operators from two things that exist: a shape rule and a call (library/out_call.h). The rule is
// PyTorch's own shape function of a structured operator (`at::meta::structured_x`), or a class like it:
//
//     struct FooShape : at::impl::MetaBase {
//       void meta(arguments of the functional form…) { set_output_raw_strided(0, sizes, strides or {}, options); }
//     };
//
// It raises CPU's errors for arguments that do not fit; one that sets nothing leaves the call to the CPU fallback.
//     AE_OUT_FORMS(m, "foo", ".out", FooShape, kFoo, kFloats)   registers foo and foo.out
//     AE_OUT_FUNCTIONAL(m, "foo", FooShape, kFoo, kFloats)      registers foo, which may have several results
#pragma once

#include <ATen/TensorMeta.h>

#include <array>
#include <tuple>

#include "engine/library/out_call.h"
#include "engine/record/kernel.h"
#include "engine/record/result.h"

namespace ae::engine {

/// What LAPACK has.
inline constexpr uint64_t kLapackTypes = type_bit(at::kFloat) | type_bit(at::kDouble) | kComplexes;

/// The rule of an operator that takes index tensors (pivots are int32).
template <class Rule, at::ScalarType type = at::kLong>
struct Indexed : Rule {
  static constexpr at::ScalarType kIndexType = type;
};

/// Options of a result in the dtype and the memory format of `self`, for rules.
inline at::TensorOptions like(const at::Tensor& self) {
  return self.options().memory_format(self.suggest_memory_format());
}

namespace detail {

/// Sizes, strides and dtypes of outputs, taken from a rule that would make them.
template <class Rule, size_t count>
class Shapes final : public Rule {
 public:
  struct Result {
    at::DimVector sizes, strides;  // no strides: contiguous
    at::ScalarType type = at::ScalarType::Undefined;
  };
  std::array<Result, count> results;

  const at::Tensor& maybe_get_output(int64_t) override {
    static const at::Tensor none;
    return none;
  }
  void set_output_strided(int64_t i, at::IntArrayRef sizes, at::IntArrayRef strides,
                          at::TensorOptions options) override {
    set(results[i], sizes, strides, options);
  }
  void set_output_raw_strided(int64_t i, at::IntArrayRef sizes, at::IntArrayRef strides,
                              at::TensorOptions options) override {
    set(results[i], sizes, strides, options);
  }

 private:
  static void set(Result& result, at::IntArrayRef sizes, at::IntArrayRef strides, const at::TensorOptions& options) {
    result = {at::DimVector(sizes), at::DimVector(strides), c10::typeMetaToScalarType(options.dtype())};
    const auto format = options.memory_format_opt().value_or(at::MemoryFormat::Contiguous);
    if (!strides.empty()) return;
    if (format == at::MemoryFormat::ChannelsLast) result.strides = c10::get_channels_last_strides_2d(sizes);
    if (format == at::MemoryFormat::ChannelsLast3d) result.strides = c10::get_channels_last_strides_3d(sizes);
  }
};

/// The dtype of index tensors among an operator's arguments; undefined if it has none.
template <class Rule>
constexpr at::ScalarType index_type_of() {
  if constexpr (requires { Rule::kIndexType; })
    return Rule::kIndexType;
  else
    return at::ScalarType::Undefined;
}

/// True if the tensors among the arguments are ones for a library call: with elements, the first of a dtype in `types`,
/// the others of the same or index tensors. Throws for operands on other devices.
class Operands {
 public:
  explicit Operands(uint64_t types, at::ScalarType index = at::ScalarType::Undefined) : types_(types), index_(index) {}
  template <class... Args>
  bool fit(const Args&... args) {
    (visit(args), ...);
    return fit_;
  }
  const c10::SmallVector<const at::Tensor*, 4>& tensors() const { return tensors_; }

 private:
  void visit(const at::Tensor& tensor) {
    check_devices({&tensor});
    const at::ScalarType type = tensor.scalar_type();
    if (tensors_.empty())
      fit_ = contains(types_, type);
    else
      fit_ = fit_ && (type == tensors_[0]->scalar_type() || type == index_);
    fit_ = fit_ && tensor.numel() != 0 && tensor.layout() == at::kStrided;
    tensors_.push_back(&tensor);
  }
  void visit(const std::optional<at::Tensor>& tensor) {
    if (has(tensor)) visit(*tensor);
  }
  template <class T>
  void visit(const T&) {}

  const uint64_t types_;
  const at::ScalarType index_;
  bool fit_ = false;
  c10::SmallVector<const at::Tensor*, 4> tensors_;
};

/// True if `target` can be what a result is written to directly.
template <class Result>
bool is_plain_target(const at::Tensor& target, const Result& result, const Operands& operands) {
  check_devices({&target});
  if (target.scalar_type() != result.type || at::has_internal_overlap(target) != at::MemOverlap::No) return false;
  for (const at::Tensor* input : operands.tensors())
    if (target.storage().is_alias_of(input->storage())) return false;
  return true;
}

template <class List, size_t inputs, class = std::make_index_sequence<inputs>>
struct SplitParameters;
template <class List, size_t inputs, size_t... i>
struct SplitParameters<List, inputs, std::index_sequence<i...>> {
  using Inputs = std::tuple<std::tuple_element_t<i, List>...>;
  static constexpr size_t outputs = std::tuple_size_v<List> - inputs;
};

template <class T, size_t>
using Same = T;

template <OperatorName name, class Rule, const auto& call, uint64_t types, class Inputs, class Outputs>
struct OutKernelImpl;

template <OperatorName name, class Rule, const auto& call, uint64_t types, class... Args, size_t... o>
struct OutKernelImpl<name, Rule, call, types, std::tuple<Args...>, std::index_sequence<o...>> {
  static constexpr size_t kOutputs = sizeof...(o);
  using Rules = Shapes<Rule, kOutputs>;
  using Results = std::conditional_t<kOutputs == 1, at::Tensor, std::tuple<Same<at::Tensor, o>...>>;

  static bool shapes_of(Operands& operands, Rules& rules, const Args&... args) {
    if (!operands.fit(args...)) return false;
    rules.meta(args...);
    for (const auto& result : rules.results)  // a negative size is refused where the output would be made
      for (const int64_t size : result.sizes)
        if (size < 0) return false;
    return rules.results[0].type != at::ScalarType::Undefined;
  }

  static at::Tensor make(const typename Rules::Result& result) {
    return result.strides.empty() ? make_tensor(result.sizes, result.type)
                                  : make_tensor(result.sizes, result.strides, result.type);
  }

  static Results functional(Args... args) {
    Operands operands(types, index_type_of<Rule>());
    Rules rules;
    if (!shapes_of(operands, rules, args...)) return Fallback<Results(Args...)>::call(name.text, args...);
    std::array<at::Tensor, kOutputs> made{make(rules.results[o])...};
    call.record(args..., made[o]...);
    if constexpr (kOutputs == 1)
      return made[0];
    else
      return {made[o]...};
  }

  static at::Tensor& out(Args... args, at::Tensor& target)
    requires(kOutputs == 1)
  {
    Operands operands(types, index_type_of<Rule>());
    Rules rules;
    if (!shapes_of(operands, rules, args...) || !is_plain_target(target, rules.results[0], operands))
      return Fallback<at::Tensor&(Args..., at::Tensor&)>::call(name.text, args..., target);
    const auto& result = rules.results[0];
    if (!target.sizes().equals(result.sizes)) resize_out(target, result.sizes, result.strides);
    call.record(args..., target);
    return target;
  }
};

}  // namespace detail

/// The functional form of an operator, and the out= form of one with a single result.
template <OperatorName name, class Rule, const auto& call, uint64_t types>
struct OutKernel {
  using Call = std::remove_cvref_t<decltype(call)>;
  using Split = detail::SplitParameters<typename Call::Parameters, Call::kInputs>;
  using Impl =
      detail::OutKernelImpl<name, Rule, call, types, typename Split::Inputs, std::make_index_sequence<Split::outputs>>;
};

#define AE_OUT_FUNCTIONAL(m, name, rule, call, types) \
  m.impl(name, &OutKernel<name, rule, call, types>::Impl::functional)
#define AE_OUT_FORMS(m, name, out_overload, rule, call, types) \
  AE_OUT_FUNCTIONAL(m, name, rule, call, types);               \
  m.impl(name out_overload, &OutKernel<name out_overload, rule, call, types>::Impl::out)

}  // namespace ae::engine
