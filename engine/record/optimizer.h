// What the fused optimizers have in common.
#pragma once

#include <optional>

#include "engine/record/shape.h"

namespace ae::engine {

using at::Tensor;
using at::TensorList;
using OptionalTensor = std::optional<Tensor>;

// Bits of the fused optimizers' attribute (fusion/ops/optimizer.cpp).
inline constexpr int64_t kAmsgrad = 1, kMaximize = 2, kAdam = 4, kGradScale = 8, kCorrections = 16, kLerpFromGrad = 32,
                         kNoDecay = 64, kFoundInf = 128, kMomentum = 256, kFirstStep = 512, kNesterov = 1024;

/// A number that is a 0-dim tensor on the device, or known now.
inline Input number_or_tensor(const Tensor& tensor) {
  return is_neuron(tensor) ? Input(tensor) : Input(read_cpu_scalar(tensor), at::kDouble);
}

inline bool is_scalar_tensor(const Tensor& tensor) {
  return tensor.dim() == 0 && contains(kFloats, tensor.scalar_type()) && (is_neuron(tensor) || is_cpu_scalar(tensor));
}

/// `tensor` has a parameter's dtype and shape.
inline bool is_like(const Tensor& tensor, const Tensor& param) {
  return is_neuron(tensor) && tensor.scalar_type() == param.scalar_type() && tensor.sizes().equals(param.sizes());
}

/// The gradients' scale and whether they were finite, as a gradient scaler gives them to a fused optimizer.
class Scaling {
 public:
  Scaling(const OptionalTensor& grad_scale, const OptionalTensor& found_inf)
      : grad_scale_(given(grad_scale)), found_inf_(given(found_inf)) {}
  bool recordable() const {
    return (!grad_scale_ || is_scalar_tensor(*grad_scale_)) && (!found_inf_ || is_scalar_tensor(*found_inf_));
  }
  int64_t flags() const { return (grad_scale_ ? kGradScale : 0) | (found_inf_ ? kFoundInf : 0); }
  /// Appends the last inputs of a parameter's node, which keep references.
  void append(c10::SmallVectorImpl<Input>& inputs) const {
    for (const Tensor* tensor : {grad_scale_, found_inf_})
      if (tensor) inputs.push_back(number_or_tensor(*tensor));
  }

 private:
  static const Tensor* given(const OptionalTensor& tensor) { return tensor && tensor->defined() ? &*tensor : nullptr; }
  const Tensor *grad_scale_, *found_inf_;
};

}  // namespace ae::engine
