// float32 products in less than float32 (torch.set_float32_matmul_precision, torch.backends.mkldnn.matmul), which
// ATen's kernels compute where the program allows it and the processor has instructions for it. Ours never do, so they
// leave such products to ATen's.
#pragma once

#include "fusion/trace/trace.h"

namespace ae::engine::library {

/// Reads the program's settings anew; called when they have changed.
void note_precision();

/// Whether float32 products are computed in less than float32: those recorded now, those of a recorded node.
bool reduces_products();
bool reduces_products(const fusion::NodeView& node);

}  // namespace ae::engine::library
