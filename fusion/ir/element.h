// What primitives do to single elements: the scalar definition that the interpreter is made of.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "device/dtype.h"
#include "device/primitive.h"

namespace ae::fusion {

/// One element of any dtype, as the bytes it has in memory (bool: 0 or 1).
struct Element {
  unsigned char bytes[16] = {};

  template <class T>
  T get() const {
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  template <class T>
  static Element of(T value) {
    Element element;
    std::memcpy(element.bytes, &value, sizeof value);
    return element;
  }
};

/// Result of a primitive that computes (neither data movement, random bits nor a reduction) on inputs of dtype `type`
/// (select: of b and c). Throws std::logic_error where `is_defined` says no.
Element evaluate(Primitive op, DType type, Element a, Element b, Element c);

Element convert(Element value, DType from, DType to);

/// A launch scalar: double bits for floating dtypes, int64 bits for the others.
Element scalar_element(uint64_t word, DType type);

/// Word of the Philox stream, as defined at Primitive::random_bits.
int64_t random_bits(int64_t position, int64_t seed, int64_t offset);

/// Reduces the elements of one kept point in the canonical order.
Element reduce(Primitive op, DType type, std::span<const Element> elements);

}  // namespace ae::fusion
