#include "engine/library/precision.h"

#include <ATen/Context.h>
#include <ATen/cpu/Utils.h>

#include <atomic>

namespace ae::engine::library {
namespace {

std::atomic<bool> g_reduces_products{false};

bool processor_has(const char* capability) {
  static const auto& capabilities = *new auto(at::cpu::get_cpu_capabilities());
  const auto found = capabilities.find(capability);
  return found != capabilities.end() && found->second.isBool() && found->second.toBool();
}

}  // namespace

void note_precision() {
  const at::Context& context = at::globalContext();
  bool reduces = false;
  switch (context.float32Precision(at::Float32Backend::MKLDNN, at::Float32Op::MATMUL)) {
    case at::Float32Precision::BF16: reduces = processor_has("avx512_bf16"); break;
    case at::Float32Precision::TF32: reduces = processor_has("amx_fp16"); break;
    default: break;
  }
  g_reduces_products.store(reduces && context.userEnabledMkldnn(), std::memory_order_relaxed);
}

bool reduces_products() { return g_reduces_products.load(std::memory_order_relaxed); }

bool reduces_products(const fusion::NodeView& node) { return node.attributes[1] != 0; }

}  // namespace ae::engine::library
