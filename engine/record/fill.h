// Kernels of fill_ and zero_, for other families.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

namespace ae::engine {

at::Tensor& fill_scalar(at::Tensor& self, const at::Scalar& value);
at::Tensor& zero(at::Tensor& self);

}  // namespace ae::engine
