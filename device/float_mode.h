// The calling thread's floating-point mode.
#pragma once

#include <xmmintrin.h>

namespace ae::device {

inline constexpr unsigned kFlushBits = 0x8040;  // flush to zero, denormals are zero

/// Whether the thread treats denormal numbers as zero (torch.set_flush_denormal).
inline bool flushes_denormals() noexcept { return (_mm_getcsr() & kFlushBits) == kFlushBits; }

}  // namespace ae::device
