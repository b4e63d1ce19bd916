#include "engine/library/convolution.h"

#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>

#include <algorithm>

#include "engine/library/out_call.h"

namespace ae::engine::library {
namespace {

using at::IntArrayRef;
using at::Tensor;

constexpr double kPieceOperations = 3e7;  // floating-point operations that are worth a piece
constexpr int64_t kMostPieces = 8;
constexpr int64_t kPieceChannels = 64;  // fewer to a piece make the blocked kernels slow
constexpr int64_t kBlock = 16;          // channels in a block

/// A convolution's operands by their roles; some are not there.
struct Roles {
  const Operand& images;   // the side with the weight's dimension 0 as channels if transposed, else the other
  const Operand& results;  // the other side
  const Operand& weight;
  bool transposed;

  int64_t groups() const { return (transposed ? results : images).sizes[1] / weight.sizes[1]; }
  double operations() const {
    const Operand& outer = transposed ? images : results;
    return 2.0 * static_cast<double>(outer.numel()) * static_cast<double>(weight.numel()) /
           static_cast<double>(weight.sizes[0]);
  }
  bool is_weight_heavy() const { return weight.numel() > 2 * std::max(images.numel(), results.numel()); }
};

int64_t wanted_pieces(double operations) {
  return std::clamp(static_cast<int64_t>(operations / kPieceOperations), int64_t{1}, kMostPieces);
}

/// Stretches of `extent` channels: a piece for each kPieceChannels, but at least two where there is work for them.
Cut channels_cut(int64_t extent, double operations) {
  const int64_t wanted = std::min(wanted_pieces(operations), std::max(extent / kPieceChannels, int64_t{2}));
  return cut(extent, static_cast<int>(wanted), kBlock);
}

/// Cuts every operand along the dimension that `dims` names for it, -1 for none: an operand with s times as many
/// elements there as the extent has gets s times the stretch.
std::vector<Piece> cut_operands(const Piece& all, const Cut& stretches, std::initializer_list<int> dims) {
  std::vector<Piece> pieces(stretches.count);
  for (int p = 0; p < stretches.count; ++p) {
    auto dim = dims.begin();
    for (const Operand& operand : all) {
      const int along = *dim++;
      if (along < 0) {
        pieces[p].push_back(operand);
        continue;
      }
      const int64_t scale = operand.sizes[along] / stretches.extent;
      pieces[p].push_back(operand.narrow(along, stretches.start(p) * scale, stretches.length(p) * scale));
    }
  }
  return pieces;
}

Cut groups_cut(int64_t groups, double operations) {
  return cut(groups, static_cast<int>(std::min(wanted_pieces(operations), groups)));
}

bool by_batch(const Roles& roles) {
  const int64_t batch = roles.images.sizes[0];
  return batch >= 2 && !roles.is_weight_heavy();
}

Cut batch_cut(const Roles& roles) {
  return cut(roles.images.sizes[0], static_cast<int>(wanted_pieces(roles.operations())));
}

/// in(input, weight[, bias]) -> out
std::vector<Piece> cut_forward(const Piece& all, std::span<const int64_t> attributes) {
  const Roles roles{all[0], all.back(), all[1], attributes[0] != 0};
  const bool bias = all.size() == 4;
  const auto along = [&](const Cut& stretches, int input, int weight, int vector, int out) {
    return bias ? cut_operands(all, stretches, {input, weight, vector, out})
                : cut_operands(all, stretches, {input, weight, out});
  };
  if (by_batch(roles)) return along(batch_cut(roles), 0, -1, -1, 0);
  if (roles.groups() > 1) return along(groups_cut(roles.groups(), roles.operations()), 1, 0, 0, 1);
  return along(channels_cut(all.back().sizes[1], roles.operations()), -1, roles.transposed ? 1 : 0, 0, 1);
}

/// in(grad, weight) -> grad_input
std::vector<Piece> cut_grad_input(const Piece& all, std::span<const int64_t> attributes) {
  const Roles roles{all[2], all[0], all[1], attributes[0] != 0};
  if (by_batch(roles)) return cut_operands(all, batch_cut(roles), {0, -1, 0});
  if (roles.groups() > 1) return cut_operands(all, groups_cut(roles.groups(), roles.operations()), {1, 0, 1});
  return cut_operands(all, channels_cut(all[2].sizes[1], roles.operations()), {-1, roles.transposed ? 0 : 1, 1});
}

/// in(grad, input) -> grad_weight
std::vector<Piece> cut_grad_weight(const Piece& all, std::span<const int64_t> attributes) {
  const Roles roles{all[1], all[0], all[2], attributes[0] != 0};
  if (roles.groups() > 1) return cut_operands(all, groups_cut(roles.groups(), roles.operations()), {1, 1, 0});
  const Cut channels = channels_cut(all[2].sizes[0], roles.operations());
  return roles.transposed ? cut_operands(all, channels, {-1, 1, 0}) : cut_operands(all, channels, {1, -1, 0});
}

int64_t groups_of(bool transposed, const Tensor& input, const Tensor& weight, const Tensor& out) {
  return (transposed ? out : input).size(1) / weight.size(1);
}

const OutCall<[](bool transposed, const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                 IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, IntArrayRef output_padding,
                 Tensor& out) {
  out.copy_(at::convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding,
                            groups_of(transposed, input, weight, out)));
},
              &cut_forward>
    kConvolution("convolution");

// Of what has no gradient asked for, ATen wants the shape and the format only: the output itself serves.
const OutCall<[](bool transposed, const Tensor& grad, const Tensor& weight, IntArrayRef stride, IntArrayRef padding,
                 IntArrayRef dilation, IntArrayRef output_padding, Tensor& out) {
  out.copy_(std::get<0>(at::convolution_backward(grad, out, weight, std::nullopt, stride, padding, dilation, transposed,
                                                 output_padding, groups_of(transposed, out, weight, grad),
                                                 {true, false, false})));
},
              &cut_grad_input>
    kGradInput("convolution_grad_input");

const OutCall<[](bool transposed, const Tensor& grad, const Tensor& input, IntArrayRef stride, IntArrayRef padding,
                 IntArrayRef dilation, IntArrayRef output_padding, Tensor& out) {
  out.copy_(std::get<1>(at::convolution_backward(grad, input, out, std::nullopt, stride, padding, dilation, transposed,
                                                 output_padding, groups_of(transposed, input, out, grad),
                                                 {false, true, false})));
},
              &cut_grad_weight>
    kGradWeight("convolution_grad_weight");

}  // namespace

void record_convolution(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                        const ConvolutionOptions& options, const Tensor& out) {
  kConvolution.record(options.transposed, input, weight, bias, options.stride, options.padding, options.dilation,
                      options.output_padding, out);
}

void record_convolution_grad_input(const Tensor& grad, const Tensor& weight, const ConvolutionOptions& options,
                                   const Tensor& grad_input) {
  kGradInput.record(options.transposed, grad, weight, options.stride, options.padding, options.dilation,
                    options.output_padding, grad_input);
}

void record_convolution_grad_weight(const Tensor& grad, const Tensor& input, const ConvolutionOptions& options,
                                    const Tensor& grad_weight) {
  kGradWeight.record(options.transposed, grad, input, options.stride, options.padding, options.dilation,
                     options.output_padding, grad_weight);
}

}  // namespace ae::engine::library
