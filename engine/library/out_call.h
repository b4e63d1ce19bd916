// Library operators that are one ATen call which writes into given tensors: a function of the form of
// `at::cpu::x_outf`, or a lambda like it. Its parameters say what a node holds (arguments.h): trailing `at::Tensor&`
// are the outputs.
//
//   const OutCall<&at::cpu::avg_pool2d_outf, &along_batch<2>> kAvgPool2d("avg_pool2d");  // registers; at namespace
//   scope kAvgPool2d.record(self, kernel, stride, padding, ceil, count, divisor, out);     // records one call
//
// The outputs have been made, with the shape that the call gives them. A call that writes in place has the same tensor
// as input and output.
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/library/arguments.h"
#include "engine/record/record.h"

namespace ae::engine::library {

/// Cuts the operands of a call (inputs, outputs) into pieces, from their shapes and the call's attributes alone.
using Cutter = std::vector<Piece> (*)(const Piece& all, std::span<const int64_t> attributes);

/// One piece.
inline std::vector<Piece> unsplit(const Piece& all, std::span<const int64_t>) { return {all}; }
/// Stretches of dimension `dim`, at most `pieces`: operands that have the last output's size there are cut, others are
/// whole in every piece.
std::vector<Piece> cut_along(const Piece& all, int64_t dim, int pieces);
/// In how many pieces an output of so many elements is cut when each element costs about a copy.
int pieces_for(int64_t elements);
/// Groups of dimension 0, if it is of one size in all operands.
std::vector<Piece> along_first(const Piece& all, std::span<const int64_t> attributes);
/// Groups of images of `dims` dimensions, which all operands are: groups of the batch, or of the channels where there
/// is one image or no batch.
std::vector<Piece> along_images(const Piece& all, int64_t dims);
template <int64_t dims>
std::vector<Piece> along_batch(const Piece& all, std::span<const int64_t>) {
  return along_images(all, dims);
}

namespace detail {

template <class Function>
struct Parameters : Parameters<decltype(&Function::operator())> {};
template <class Return, class... Args>
struct Parameters<Return (*)(Args...)> {
  using List = std::tuple<Args...>;
};
template <class Lambda, class Return, class... Args>
struct Parameters<Return (Lambda::*)(Args...) const> {
  using List = std::tuple<Args...>;
};

template <class Parameter>
inline constexpr bool is_output = std::is_same_v<Parameter, at::Tensor&>;
/// A parameter's type when recording.
template <class Parameter>
using Recorded = std::conditional_t<is_output<Parameter>, const at::Tensor&, Parameter>;

/// Inputs that are outputs too: pairs of positions.
inline std::vector<std::pair<size_t, size_t>> written_inputs(const fusion::NodeView& node, const Piece& all) {
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    for (size_t o = 0; o < node.outputs.size(); ++o)
      if (node.inputs[i].buffer == node.outputs[o].buffer && all[i] == all[node.inputs.size() + o])
        pairs.emplace_back(i, node.inputs.size() + o);
  return pairs;
}

}  // namespace detail

template <auto function, Cutter pieces = &unsplit,
          class List = typename detail::Parameters<std::remove_const_t<decltype(function)>>::List>
class OutCall;

template <auto function, Cutter pieces, class... Args>
class OutCall<function, pieces, std::tuple<Args...>> {
 public:
  using Parameters = std::tuple<Args...>;
  /// Parameters that are not outputs.
  static constexpr size_t kInputs = sizeof...(Args) - (size_t{detail::is_output<Args>} + ...);

  /// `name` is shown in the report. `can_fail`: the call may throw for reasons that depend on data.
  explicit OutCall(const char* name, bool can_fail = false) : id_(register_library(name, &make)), can_fail_(can_fail) {}

  void record(detail::Recorded<Args>... args) const { record_fence(can_fail_, args...); }
  /// For calls of which it is known when recording whether they can fail.
  void record_fence(bool can_fail, detail::Recorded<Args>... args) const {
    RecordedArguments given;
    c10::SmallVector<at::Tensor, 4> outputs;
    (write<Args>(given, outputs, args), ...);
    record_library(id_, given.inputs, outputs, given.attributes, given.scalars, can_fail);
  }

 private:
  template <class Parameter>
  static void write(RecordedArguments& given, c10::SmallVector<at::Tensor, 4>& outputs,
                    const std::decay_t<Parameter>& value) {
    if constexpr (detail::is_output<Parameter>)
      outputs.push_back(value);
    else
      Argument<std::decay_t<Parameter>>::write(given, value);
  }

  static std::shared_ptr<const device::LibraryCall> make(const fusion::NodeView& node) {
    const Piece all = whole(node);
    const auto attributes = attributes_of(node);
    return make_call(pieces(all, attributes),
                     [held = std::vector<int64_t>(attributes.begin(), attributes.end()),
                      written = detail::written_inputs(node, all)](std::span<at::Tensor> tensors, Scalars scalars) {
                       for (const auto& [input, output] : written) tensors[input] = tensors[output];
                       ArgumentReader reader{tensors, held, scalars};
                       // Braces: read in order.
                       std::tuple<decltype(Argument<std::decay_t<Args>>::read(reader))...> args{
                           Argument<std::decay_t<Args>>::read(reader)...};
                       std::apply([](auto&... arg) { function(arg...); }, args);
                     });
  }

  int id_;
  bool can_fail_;
};

}  // namespace ae::engine::library
