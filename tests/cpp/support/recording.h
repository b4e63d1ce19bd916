// Nodes that several tests of the recorder record.
#pragma once

#include "fusion/flush/recorder.h"

namespace ae::fusion::testing {

/// out = a + value, over all of out's fp32 elements.
inline void record_add(Recorder& recorder, const BufferRef& a, double value, const BufferRef& out) {
  const int64_t count = out->nbytes / 4, stride = 1;
  Recorder::Node node(recorder, Opcode::add, DType::kF32, 1, &count);
  node.writer().input(a.get(), DType::kF32, 0, &stride);
  node.writer().scalar(DType::kF32, scalar_word(value));
  node.makes(*out.get());
  node.writer().output(out.get(), DType::kF32, 0, &stride);
  node.commit();
}

}  // namespace ae::fusion::testing
