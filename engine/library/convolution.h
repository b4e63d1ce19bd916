// Convolutions of one, two and three dimensions, [batch, channels, …], by whichever backend ATen picks for a piece.
//
// Pieces are groups of the batch. Where the weight is larger than the images, each of them would reorder it anew, so
// they are stretches of channels, as they are for a batch of one, and for the gradient of the weight, so that no sum is
// ever cut. A grouped convolution is cut between its groups only.
//
// Attributes: stride, padding, dilation, transposed, output padding.
//   convolution              in(input, weight[, bias]) -> out; attribute 0: transposed
//   convolution_grad_input   in(grad, weight) -> grad_input
//   convolution_grad_weight  in(grad, input) -> grad_weight
#pragma once

#include <ATen/core/Tensor.h>

namespace ae::engine::library {

struct ConvolutionOptions {
  at::IntArrayRef stride, padding, dilation;
  bool transposed;
  at::IntArrayRef output_padding;
};

void record_convolution(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                        const ConvolutionOptions& options, const at::Tensor& out);
void record_convolution_grad_input(const at::Tensor& grad, const at::Tensor& weight, const ConvolutionOptions& options,
                                   const at::Tensor& grad_input);
void record_convolution_grad_weight(const at::Tensor& grad, const at::Tensor& input, const ConvolutionOptions& options,
                                    const at::Tensor& grad_weight);

}  // namespace ae::engine::library
