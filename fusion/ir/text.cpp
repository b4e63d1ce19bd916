#include "fusion/ir/text.h"

#include <iterator>

namespace ae::fusion {
namespace {

constexpr const char* kShortNames[] = {"bool", "u8",  "i8",   "i16", "i32", "i64", "u16", "u32",
                                       "u64",  "f16", "bf16", "f32", "f64", "c64", "c128"};

}  // namespace

const char* short_name(DType type) { return kShortNames[static_cast<int>(type)]; }

std::optional<DType> dtype_named(std::string_view name) {
  for (size_t i = 0; i < std::size(kShortNames); ++i) {
    if (name == kShortNames[i]) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::optional<Primitive> primitive_named(std::string_view name) {
  for (int i = 0; i < kPrimitiveCount; ++i) {
    if (name == name_of(static_cast<Primitive>(i))) return static_cast<Primitive>(i);
  }
  return std::nullopt;
}

}  // namespace ae::fusion
