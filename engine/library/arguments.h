// The arguments of an ATen call as a library node holds them: tensors are the node's inputs, what is known when
// recording (integers, lists, flags, strings) becomes attributes, floating-point numbers become scalars, which are not
// part of a plan's key. Written and read in the order of the call's parameters.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/util/OptionalArrayRef.h>
#include <c10/util/SmallVector.h>

#include <bit>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/library/call.h"

namespace ae::engine::library {

/// What a node is recorded with.
struct RecordedArguments {
  c10::SmallVector<at::Tensor, 8> inputs;
  c10::SmallVector<int64_t, 16> attributes;
  c10::SmallVector<double, 4> scalars;
};

/// What a piece reads; lists point into it.
struct ArgumentReader {
  std::span<at::Tensor> tensors;
  std::span<const int64_t> attributes;
  Scalars scalars;
  size_t next_tensor = 0, next_attribute = 0;
  int next_scalar = 0;

  at::Tensor& tensor() { return tensors[next_tensor++]; }
  int64_t attribute() { return attributes[next_attribute++]; }
  double scalar() { return scalars[next_scalar++]; }
};

/// How one type of argument is written and read. `read` gives what converts to the type while the reader lives.
template <class T>
struct Argument;

template <>
struct Argument<at::Tensor> {
  static void write(RecordedArguments& to, const at::Tensor& tensor) { to.inputs.push_back(tensor); }
  static at::Tensor& read(ArgumentReader& from) { return from.tensor(); }
};

template <class Integer>
struct IntegerArgument {
  static void write(RecordedArguments& to, Integer value) { to.attributes.push_back(static_cast<int64_t>(value)); }
  static Integer read(ArgumentReader& from) { return static_cast<Integer>(from.attribute()); }
};
template <>
struct Argument<int64_t> : IntegerArgument<int64_t> {};
template <>
struct Argument<bool> : IntegerArgument<bool> {};
template <>
struct Argument<at::ScalarType> : IntegerArgument<at::ScalarType> {};

template <>
struct Argument<double> {
  static void write(RecordedArguments& to, double value) { to.scalars.push_back(value); }
  static double read(ArgumentReader& from) { return from.scalar(); }
};

/// Integers keep all their bits: a scalar's word is only carried.
template <>
struct Argument<at::Scalar> {
  enum Kind : int64_t { kInteger, kFloating, kTruth, kComplex };
  static void write(RecordedArguments& to, const at::Scalar& scalar) {
    if (scalar.isComplex()) {
      to.attributes.push_back(kComplex);
      to.scalars.push_back(scalar.toComplexDouble().real());
      to.scalars.push_back(scalar.toComplexDouble().imag());
    } else if (scalar.isFloatingPoint()) {
      to.attributes.push_back(kFloating);
      to.scalars.push_back(scalar.toDouble());
    } else {
      to.attributes.push_back(scalar.isBoolean() ? kTruth : kInteger);
      to.scalars.push_back(std::bit_cast<double>(scalar.toLong()));
    }
  }
  static at::Scalar read(ArgumentReader& from) {
    const auto kind = static_cast<Kind>(from.attribute());
    const double first = from.scalar();
    switch (kind) {
      case kInteger: return std::bit_cast<int64_t>(first);
      case kFloating: return first;
      case kTruth: return std::bit_cast<int64_t>(first) != 0;
      default: return c10::complex<double>(first, from.scalar());
    }
  }
};

template <>
struct Argument<at::IntArrayRef> {
  static void write(RecordedArguments& to, at::IntArrayRef list) {
    to.attributes.push_back(static_cast<int64_t>(list.size()));
    to.attributes.append(list.begin(), list.end());
  }
  static at::IntArrayRef read(ArgumentReader& from) {
    const auto size = static_cast<size_t>(from.attribute());
    const at::IntArrayRef list(from.attributes.data() + from.next_attribute, size);
    from.next_attribute += size;
    return list;
  }
};

template <>
struct Argument<at::TensorList> {
  static void write(RecordedArguments& to, at::TensorList list) {
    to.attributes.push_back(static_cast<int64_t>(list.size()));
    to.inputs.append(list.begin(), list.end());
  }
  static at::TensorList read(ArgumentReader& from) {
    const auto size = static_cast<size_t>(from.attribute());
    const at::TensorList list(from.tensors.data() + from.next_tensor, size);
    from.next_tensor += size;
    return list;
  }
};

template <>
struct Argument<std::string_view> {
  static void write(RecordedArguments& to, std::string_view text) {
    to.attributes.push_back(static_cast<int64_t>(text.size()));
    to.attributes.append(text.begin(), text.end());
  }
  static std::string read(ArgumentReader& from) {
    const at::IntArrayRef letters = Argument<at::IntArrayRef>::read(from);
    return {letters.begin(), letters.end()};
  }
};

/// An undefined tensor counts as none.
template <class T>
struct Argument<std::optional<T>> {
  static void write(RecordedArguments& to, const std::optional<T>& value) {
    bool given = value.has_value();
    if constexpr (std::is_same_v<T, at::Tensor>) given = given && value->defined();
    to.attributes.push_back(given);
    if (given) Argument<T>::write(to, *value);
  }
  static auto read(ArgumentReader& from) {
    using Held = std::decay_t<decltype(Argument<T>::read(from))>;
    return from.attribute() != 0 ? std::optional<Held>(Argument<T>::read(from)) : std::optional<Held>();
  }
};
template <>
struct Argument<at::OptionalIntArrayRef> {
  static void write(RecordedArguments& to, at::OptionalIntArrayRef list) {
    Argument<std::optional<at::IntArrayRef>>::write(to, list.has_value() ? std::optional(*list) : std::nullopt);
  }
  static auto read(ArgumentReader& from) { return Argument<std::optional<at::IntArrayRef>>::read(from); }
};

}  // namespace ae::engine::library
