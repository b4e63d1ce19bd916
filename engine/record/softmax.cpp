// Softmax and log-softmax over one dimension, with their backwards.
#include <ATen/WrapDimUtils.h>

#include "engine/record/kernel.h"
#include "engine/record/result.h"

namespace ae::engine {
namespace {

template <Opcode opcode>
bool softmax(Call& call, const at::Tensor& self, int64_t dim, bool half_to_float) {
  check_devices({&self});
  if (half_to_float || self.dim() == 0 || !contains(kFloats, self.scalar_type())) return false;
  dim = at::maybe_wrap_dim(dim, self.dim());
  if (!prepare_result(call, self.sizes(), self.scalar_type(), {&self})) return false;
  if (self.numel() != 0) record_reduce(opcode, self.scalar_type(), self.sizes(), 1u << dim, {self}, {result_of(call)});
  return true;
}

template <Opcode opcode>
bool softmax_backward(Call& call, const at::Tensor& grad, const at::Tensor& output, int64_t dim,
                      at::ScalarType input_dtype) {
  check_devices({&grad, &output});
  const at::ScalarType type = grad.scalar_type();
  if (grad.dim() == 0 || input_dtype != type || output.scalar_type() != type || !contains(kFloats, type) ||
      !grad.sizes().equals(output.sizes())) {
    return false;
  }
  dim = at::maybe_wrap_dim(dim, grad.dim());
  if (!prepare_result(call, grad.sizes(), type, {&grad, &output})) return false;
  if (grad.numel() != 0) record_reduce(opcode, type, grad.sizes(), 1u << dim, {grad, output}, {result_of(call)});
  return true;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  AE_FUNCTIONAL(m, "_softmax", softmax<Opcode::softmax>);
  AE_OUT(m, "_softmax.out", softmax<Opcode::softmax>);
  AE_FUNCTIONAL(m, "_log_softmax", softmax<Opcode::log_softmax>);
  AE_OUT(m, "_log_softmax.out", softmax<Opcode::log_softmax>);
  AE_FUNCTIONAL(m, "_softmax_backward_data", softmax_backward<Opcode::softmax_backward>);
  AE_OUT(m, "_softmax_backward_data.out", softmax_backward<Opcode::softmax_backward>);
  AE_FUNCTIONAL(m, "_log_softmax_backward_data", softmax_backward<Opcode::log_softmax_backward>);
  AE_OUT(m, "_log_softmax_backward_data.out", softmax_backward<Opcode::log_softmax_backward>);
}

}  // namespace
}  // namespace ae::engine
