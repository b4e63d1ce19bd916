// Why a trace was cut.
#pragma once

#include <cstdint>

namespace ae::fusion {

// clang-format off: one entry of the list after the other, as they belong together
#define AE_FLUSH_REASONS(X)                                   \
  X(value_read, "a value was read")                           \
  X(host_copy, "copy between host and device")                \
  X(fallback, "operator run by the CPU fallback")             \
  X(data_dependent_shape, "a shape depends on data")          \
  X(synchronize, "synchronize")                               \
  X(address, "an address was asked for")                      \
  X(storage_resize, "a storage was resized")                  \
  X(unfused, "unfused mode: every operator is a launch")      \
  X(mode_change, "the mode was changed")                      \
  X(window_full, "the window was full")                       \
  X(bytes_budget, "the bytes budget was used up")             \
  X(device_idle, "the device had nothing to do")              \
  X(out_of_memory, "memory was short")                        \
  X(forced_period, "tests: a flush after every k-th operator") \
  X(error, "an error")                                        \
  X(shutdown, "the end of the process")
// clang-format on

enum class FlushReason : uint8_t {
#define AE_X(name, text) name,
  AE_FLUSH_REASONS(AE_X)
#undef AE_X
};

inline constexpr int kFlushReasonCount = 0
#define AE_X(name, text) +1
    AE_FLUSH_REASONS(AE_X)
#undef AE_X
    ;

constexpr const char* name_of(FlushReason reason) {
  constexpr const char* kNames[] = {
#define AE_X(name, text) #name,
      AE_FLUSH_REASONS(AE_X)
#undef AE_X
  };
  return kNames[static_cast<int>(reason)];
}

constexpr const char* text_of(FlushReason reason) {
  constexpr const char* kTexts[] = {
#define AE_X(name, text) text,
      AE_FLUSH_REASONS(AE_X)
#undef AE_X
  };
  return kTexts[static_cast<int>(reason)];
}

}  // namespace ae::fusion
