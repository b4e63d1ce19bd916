// Names that the text form of kernels uses; shared by printer, parser and verifier.
#pragma once

#include <optional>
#include <string_view>

#include "device/dtype.h"
#include "device/primitive.h"
#include "device/tile_program.h"

namespace ae::fusion {

/// "f32", "i64", "bool"…
const char* short_name(DType type);
std::optional<DType> dtype_named(std::string_view name);
std::optional<Primitive> primitive_named(std::string_view name);

constexpr const char* short_name(device::Level level) { return level == device::Level::full ? "full" : "kept"; }

}  // namespace ae::fusion
