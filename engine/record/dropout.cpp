// native_dropout and its backward.
#include "engine/record/kernel.h"
#include "engine/record/random.h"

namespace ae::engine {
namespace {

using TensorPair = std::tuple<at::Tensor, at::Tensor>;

/// `keep` and `scale` as PyTorch's CPU kernel has them.
TensorPair native_dropout(const at::Tensor& self, double p, std::optional<bool> train) {
  const bool training = train.value_or(true);
  if (!contains(kFloats, self.scalar_type()) || !(p >= 0 && p <= 1) || !training || p == 1 || self.numel() == 0) {
    using Signature = TensorPair(const at::Tensor&, double, std::optional<bool>);
    return Fallback<Signature>::call("native_dropout", self, p, train);
  }
  const Draws draws(std::nullopt);
  const at::DimVector strides = result_strides(self.sizes(), {self}, self.scalar_type());
  const at::Tensor outputs[] = {make_tensor(self.sizes(), strides, self.scalar_type()),
                                make_tensor(self.sizes(), strides, at::kBool)};
  const Input inputs[] = {self, Input(1 - p, at::kDouble), Input(1 / (1 - p), at::kDouble), draws.seed, draws.offset};
  record_pointwise(Opcode::dropout, self.scalar_type(), inputs, outputs);
  return {outputs[0], outputs[1]};
}

bool native_dropout_backward(Call& call, const at::Tensor& grad, const at::Tensor& mask, double scale) {
  if (mask.scalar_type() != at::kBool) return false;
  const at::Scalar factor(scale);
  return call.record(Opcode::masked_scale, kFloatOnly, {grad, Arg::condition(mask), Arg::parameter(factor)});
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("native_dropout", &native_dropout);
  AE_FUNCTIONAL(m, "native_dropout_backward", native_dropout_backward);
}

}  // namespace
}  // namespace ae::engine
