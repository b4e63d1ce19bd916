// Sums, means and maxima of bags of an embedding's rows, and the gradients. ATen's CPU kernels make tensors whose
// shapes depend on shapes and options alone; the nodes copy them.
#include <ATen/ops/_embedding_bag_backward_cpu_dispatch.h>
#include <ATen/ops/_embedding_bag_cpu_dispatch.h>
#include <ATen/ops/_embedding_bag_dense_backward_cpu_dispatch.h>
#include <ATen/ops/_embedding_bag_forward_only_cpu_dispatch.h>
#include <ATen/ops/_embedding_bag_per_sample_weights_backward_cpu_dispatch.h>

#include <tuple>

#include "engine/library/out_call.h"
#include "engine/record/update.h"

namespace ae::engine {
namespace {

using at::Tensor;
using library::OutCall;
using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;
using OptionalTensor = std::optional<Tensor>;

enum Mode : int64_t { kSum, kMean, kMax };

void move_to(Tensor& out, const Tensor& made) {
  TORCH_INTERNAL_ASSERT(out.sizes().equals(made.sizes()), "embedding_bag made ", made.sizes(), ", not ", out.sizes());
  out.copy_(made);
}

template <auto kernel>
constexpr auto bags_into = [](const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool by_frequency,
                              int64_t mode, const OptionalTensor& scales, bool last_offset, int64_t padding,
                              Tensor& out, Tensor& bags, Tensor& sizes, Tensor& most) {
  const auto made =
      kernel(weight, indices, offsets, by_frequency, mode, /*sparse=*/false, scales, last_offset, padding);
  move_to(out, std::get<0>(made));
  move_to(bags, std::get<1>(made));
  move_to(sizes, std::get<2>(made));
  move_to(most, std::get<3>(made));
};
constexpr auto backward_into = [](const Tensor& grad, const Tensor& indices, const Tensor& offsets, const Tensor& bags,
                                  const Tensor& sizes, const Tensor& most, int64_t rows, bool by_frequency,
                                  int64_t mode, const OptionalTensor& scales, int64_t padding, Tensor& out) {
  out.copy_(at::cpu::_embedding_bag_backward(grad, indices, offsets, bags, sizes, most, rows, by_frequency, mode,
                                             /*sparse=*/false, scales, padding));
};
constexpr auto dense_backward_into = [](const Tensor& grad, const Tensor& indices, const Tensor& bags,
                                        const Tensor& sizes, const Tensor& most, int64_t rows, bool by_frequency,
                                        int64_t mode, const OptionalTensor& scales, int64_t padding, Tensor& out) {
  out.copy_(at::cpu::_embedding_bag_dense_backward(grad, indices, bags, sizes, most, rows, by_frequency, mode, scales,
                                                   padding));
};
constexpr auto scales_backward_into = [](const Tensor& grad, const Tensor& weight, const Tensor& indices,
                                         const Tensor& offsets, const Tensor& bags, int64_t mode, int64_t padding,
                                         Tensor& out) {
  out.copy_(at::cpu::_embedding_bag_per_sample_weights_backward(grad, weight, indices, offsets, bags, mode, padding));
};

const OutCall<bags_into<&at::cpu::_embedding_bag>> kBags("embedding_bag");
const OutCall<bags_into<&at::cpu::_embedding_bag_forward_only>> kBagsOnly("embedding_bag");
const OutCall<backward_into> kBackward("embedding_bag_backward");
const OutCall<dense_backward_into> kDenseBackward("embedding_bag_backward");
const OutCall<scales_backward_into> kScalesBackward("embedding_bag_backward");

/// The cases that are recorded; others are for the CPU to refuse.
bool is_recorded(const Tensor& weight, const Tensor& indices, const Tensor& offsets, int64_t mode, bool sparse,
                 const OptionalTensor& scales, bool last_offset) {
  check_devices({&weight, &indices, &offsets});
  if (has(scales)) {
    check_devices({&*scales});
    if (mode != kSum || scales->dim() != 1 || scales->numel() != indices.numel() ||
        scales->scalar_type() != weight.scalar_type()) {
      return false;
    }
  }
  return !sparse && contains(kFloats, weight.scalar_type()) && weight.dim() == 2 && weight.numel() != 0 &&
         indices.dim() == 1 && offsets.dim() == 1 && is_index(indices) &&
         indices.scalar_type() == offsets.scalar_type() && mode >= kSum && mode <= kMax &&
         offsets.numel() > (last_offset ? 1 : 0);
}

/// What is known of the indices and offsets.
Known look_at(const Tensor& weight, const Tensor& indices, const Tensor& offsets) {
  const Known known = known_range(indices, 0, weight.sizes()[0] - 1);
  if (known == Known::outside) return known;
  const Tensor values = known_values(offsets);
  if (!values.defined()) return Known::unknown;
  const int64_t first = values[0].item<int64_t>(), last = values[-1].item<int64_t>();
  const bool inside = known_range(offsets, 0, indices.numel()) == Known::inside;
  return first != 0 || last > indices.numel() ? Known::outside : inside ? known : Known::unknown;
}

template <OperatorName name, auto& node, bool with_grad>
Four embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool by_frequency, int64_t mode,
                   bool sparse, const OptionalTensor& scales, bool last_offset, int64_t padding) {
  using Signature =
      Four(const Tensor&, const Tensor&, const Tensor&, bool, int64_t, bool, const OptionalTensor&, bool, int64_t);
  const bool recorded = is_recorded(weight, indices, offsets, mode, sparse, scales, last_offset);
  const Known known = recorded ? look_at(weight, indices, offsets) : Known::outside;
  if (known == Known::outside)
    return Fallback<Signature>::call(name.text, weight, indices, offsets, by_frequency, mode, sparse, scales,
                                     last_offset, padding);
  const int64_t bags = offsets.numel() - (last_offset ? 1 : 0), width = weight.sizes()[1];
  const at::ScalarType type = indices.scalar_type();
  // ATen leaves out which bag each index is in where its fast path for sums does not need it.
  const bool fast = (weight.scalar_type() == at::kFloat || weight.scalar_type() == at::kHalf ||
                     weight.scalar_type() == at::kBFloat16) &&
                    weight.strides()[1] == 1 && padding < 0 && (!has(scales) || scales->strides()[0] == 1);
  const Tensor out = make_tensor({bags, width}, weight.scalar_type());
  const Tensor bag_of = make_tensor({mode == kSum && fast ? 0 : indices.numel()}, type);
  // Nor does it count the bags without a gradient: then the sizes have the offsets' own shape.
  const Tensor sizes = make_tensor({mode == kSum && !with_grad ? offsets.numel() : bags}, type);
  const Tensor most = mode == kMax ? make_tensor({bags, width}, type) : make_tensor({sizes.numel()}, type);
  node.record_fence(known == Known::unknown, weight, indices, offsets, by_frequency, mode, scales, last_offset, padding,
                    out, bag_of, sizes, most);
  return {out, bag_of, sizes, most};
}

Tensor embedding_bag_backward(const Tensor& grad, const Tensor& indices, const Tensor& offsets, const Tensor& bags,
                              const Tensor& sizes, const Tensor& most, c10::SymInt symbolic_rows, bool by_frequency,
                              int64_t mode, bool sparse, const OptionalTensor& scales, int64_t padding) {
  check_devices({&grad, &indices, &offsets, &bags, &sizes, &most});
  const int64_t rows = symbolic_rows.expect_int();
  if (sparse || grad.dim() != 2 || grad.numel() == 0 || !contains(kFloats, grad.scalar_type())) {
    using Signature = Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                             c10::SymInt, bool, int64_t, bool, const OptionalTensor&, int64_t);
    return Fallback<Signature>::call("_embedding_bag_backward", grad, indices, offsets, bags, sizes, most,
                                     symbolic_rows, by_frequency, mode, sparse, scales, padding);
  }
  const Tensor out = make_tensor({rows, grad.sizes()[1]}, grad.scalar_type());
  kBackward.record(grad, indices, offsets, bags, sizes, most, rows, by_frequency, mode, scales, padding, out);
  return out;
}

Tensor embedding_bag_dense_backward(const Tensor& grad, const Tensor& indices, const Tensor& bags, const Tensor& sizes,
                                    const Tensor& most, c10::SymInt symbolic_rows, bool by_frequency, int64_t mode,
                                    const OptionalTensor& scales, int64_t padding) {
  check_devices({&grad, &indices, &bags, &sizes, &most});
  const int64_t rows = symbolic_rows.expect_int();
  if (grad.dim() != 2 || grad.numel() == 0 || !contains(kFloats, grad.scalar_type()) ||
      bags.numel() != indices.numel()) {
    using Signature = Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, c10::SymInt,
                             bool, int64_t, const OptionalTensor&, int64_t);
    return Fallback<Signature>::call("_embedding_bag_dense_backward", grad, indices, bags, sizes, most, symbolic_rows,
                                     by_frequency, mode, scales, padding);
  }
  const Tensor out = make_tensor({rows, grad.sizes()[1]}, grad.scalar_type());
  kDenseBackward.record(grad, indices, bags, sizes, most, rows, by_frequency, mode, scales, padding, out);
  return out;
}

Tensor embedding_bag_scales_backward(const Tensor& grad, const Tensor& weight, const Tensor& indices,
                                     const Tensor& offsets, const Tensor& bags, int64_t mode, int64_t padding) {
  check_devices({&grad, &weight, &indices, &offsets, &bags});
  if (mode != kSum || grad.dim() != 2 || weight.dim() != 2 || indices.dim() != 1 ||
      grad.scalar_type() != weight.scalar_type()) {
    using Signature =
        Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, int64_t, int64_t);
    return Fallback<Signature>::call("_embedding_bag_per_sample_weights_backward", grad, weight, indices, offsets, bags,
                                     mode, padding);
  }
  const Tensor out = make_tensor({indices.numel()}, grad.scalar_type());
  if (out.numel() != 0) kScalesBackward.record(grad, weight, indices, offsets, bags, mode, padding, out);
  return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_embedding_bag", &embedding_bag<"_embedding_bag", kBags, true>);
  m.impl("_embedding_bag_forward_only", &embedding_bag<"_embedding_bag_forward_only", kBagsOnly, false>);
  m.impl("_embedding_bag_backward", &embedding_bag_backward);
  m.impl("_embedding_bag_dense_backward", &embedding_bag_dense_backward);
  m.impl("_embedding_bag_per_sample_weights_backward", &embedding_bag_scales_backward);
}

}  // namespace
}  // namespace ae::engine
