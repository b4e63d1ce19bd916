// Random operators that are not fills: multinomial, randperm, normal with tensors of means or deviations, and those
// that ATen's kernels draw, one after the other, from a generator of their own whose seed is taken when recording.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ExpandUtils.h>
#include <ATen/ops/_sample_dirichlet_cpu_dispatch.h>
#include <ATen/ops/_standard_gamma_cpu_dispatch.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/binomial_cpu_dispatch.h>
#include <ATen/ops/multinomial_cpu_dispatch.h>
#include <ATen/ops/poisson_cpu_dispatch.h>
#include <ATen/ops/randperm_cpu_dispatch.h>
#include <ATen/ops/topk.h>

#include "engine/library/out_call.h"
#include "engine/record/random.h"
#include "engine/record/update.h"

namespace ae::engine {
namespace {

using at::Scalar;
using at::Tensor;
using library::OutCall;
using OptionalGenerator = std::optional<at::Generator>;

/// A seed that the generator's seed and counter determine, as a scalar of a node.
Scalar take_seed(const OptionalGenerator& generator) {
  return static_cast<int64_t>(cpu_generator_from(generator_or_default(generator)).current_seed());
}
at::Generator generator_of(const Scalar& seed) {
  return at::detail::createCPUGenerator(static_cast<uint64_t>(seed.toLong()));
}

constexpr auto permute_into = [](const Scalar& seed, Tensor& out) {
  at::cpu::randperm_outf(out.numel(), generator_of(seed), out);
};
constexpr auto multinomial_into = [](const Tensor& weights, const Scalar& seed, Tensor& out) {
  at::cpu::multinomial_outf(weights, out.size(-1), /*replacement=*/true, generator_of(seed), out);
};
template <auto kernel>
constexpr auto draw_into =
    [](const Tensor& self, const Scalar& seed, Tensor& out) { out.copy_(kernel(self, generator_of(seed))); };
constexpr auto binomial_into = [](const Tensor& count, const Tensor& p, const Scalar& seed, Tensor& out) {
  out.copy_(at::cpu::binomial(count, p, generator_of(seed)));
};
constexpr auto check_weights = [](const Tensor& weights) {
  const bool valid = (weights.max().item().toDouble() < INFINITY) && weights.min().item().toDouble() >= 0;
  TORCH_CHECK(valid, "probability tensor contains either `inf`, `nan` or element < 0");
  TORCH_CHECK(!weights.sum(-1).eq(0).any().item().toBool(),
              "invalid multinomial distribution (sum of probabilities <= 0)");
};
constexpr auto check_deviations = [](const Tensor& deviations) {
  TORCH_CHECK(deviations.min().item().toDouble() >= 0, "normal expects all elements of std >= 0.0");
};

const OutCall<permute_into> kRandperm("randperm");
const OutCall<multinomial_into> kMultinomial("multinomial");
const OutCall<draw_into<&at::cpu::poisson>> kPoisson("poisson");
const OutCall<draw_into<&at::cpu::_standard_gamma>> kGamma("standard_gamma");
const OutCall<draw_into<&at::cpu::_sample_dirichlet>> kDirichlet("sample_dirichlet");
const OutCall<binomial_into> kBinomial("binomial");
const OutCall<check_weights> kCheckWeights("check_weights");
const OutCall<check_deviations> kCheckDeviations("check_deviations");

Tensor& randperm_out(c10::SymInt symbolic_count, OptionalGenerator generator, Tensor& out) {
  const int64_t count = symbolic_count.expect_int();
  constexpr int64_t kAlwaysFits = 256;  // integers up to here are exact in every dtype but int8
  const at::ScalarType type = out.scalar_type();
  const bool fits = type == at::kLong || type == at::kInt || type == at::kDouble
                        ? count <= std::numeric_limits<int32_t>::max()
                        : contains(kFloats, type) && count <= kAlwaysFits;
  if (!is_neuron(out) || count < 0 || !fits || at::has_internal_overlap(out) != at::MemOverlap::No)
    return Fallback<Tensor&(c10::SymInt, OptionalGenerator, Tensor&)>::call("randperm.generator_out", symbolic_count,
                                                                            generator, out);
  out.resize_({count});
  const Scalar seed = take_seed(generator);
  if (count == 0) return out;
  kRandperm.record(seed, out);
  mark_range(out, 0, count - 1);
  return out;
}

/// Exponential numbers divided by the weights are least where a weight is drawn first: the k largest of the inverse.
void record_race(const Tensor& weights, int64_t count, const OptionalGenerator& generator, const Tensor& result) {
  kCheckWeights.record_fence(/*can_fail=*/true, weights);
  const at::ScalarType type = weights.scalar_type();
  const Tensor times = make_tensor(weights.sizes(), type), speed = make_tensor(weights.sizes(), type);
  const Draws draws(generator);
  record_pointwise(Opcode::exponential, type, {Input(1.0, at::kDouble), draws.seed, draws.offset}, {times});
  record_pointwise(Opcode::div, type, {Input(weights), Input(times)}, {speed});
  result.copy_(count == 1 ? speed.argmax(-1, /*keepdim=*/true) : std::get<1>(speed.topk(count)));
}

bool multinomial(Call& call, const Tensor& self, c10::SymInt symbolic_count, bool replacement,
                 OptionalGenerator generator) {
  check_devices({&self});
  const int64_t count = symbolic_count.expect_int();
  constexpr int64_t kMostWeights = int64_t{1} << 24;
  if ((self.dim() != 1 && self.dim() != 2) || !contains(kFloats, self.scalar_type()) || self.numel() == 0 ||
      self.size(-1) >= kMostWeights || count <= 0 || (!replacement && count > self.size(-1))) {
    return false;
  }
  at::DimVector sizes(self.sizes());
  sizes.back() = count;
  if (!prepare_result(call, sizes, at::kLong, {&self})) return false;
  const Tensor& result = result_of(call);
  if (replacement && count > 1)
    kMultinomial.record_fence(/*can_fail=*/true, self, take_seed(generator), result);
  else
    record_race(self, count, generator, result);
  mark_range(result, 0, self.size(-1) - 1);
  return true;
}

/// Standard normal numbers, times the deviation, plus the mean: three operators, as on the CPU. `mean` and `deviation`
/// are tensors or numbers.
void record_normal(const Tensor& result, const Input& mean, const Input& deviation,
                   const OptionalGenerator& generator) {
  const Draws draws(generator);
  if (result.numel() == 0) return;
  const at::ScalarType type = result.scalar_type();
  const auto step = [&](Opcode opcode, std::initializer_list<Input> inputs) {
    record_pointwise(opcode, type, inputs, {result});
  };
  step(Opcode::normal, {Input(0.0, at::kDouble), Input(1.0, at::kDouble), draws.seed, draws.offset});
  step(Opcode::mul, {Input(result), deviation});
  step(Opcode::add, {Input(result), mean});
}

void check_deviation(const Tensor& deviation) {
  if (deviation.numel() != 0) kCheckDeviations.record_fence(/*can_fail=*/true, deviation);
}

/// With one number PyTorch broadcasts an out= target with the tensor, whose shape it need not get: for the fallback.
bool has_shape(const Call& call, const Tensor& tensor) {
  return call.is_functional() || call.target().sizes().equals(tensor.sizes());
}

bool is_parameter(const Tensor& tensor) { return is_neuron(tensor) && contains(kFloats, tensor.scalar_type()); }

bool normal_tensors(Call& call, const Tensor& mean, const Tensor& deviation, OptionalGenerator generator) {
  if (!is_parameter(mean) || !is_parameter(deviation) || mean.scalar_type() != deviation.scalar_type() ||
      !at::are_expandable(mean.sizes(), deviation.sizes()) ||
      !prepare_result(call, at::infer_size_dimvector(mean.sizes(), deviation.sizes()), mean.scalar_type(),
                      {&mean, &deviation})) {
    return false;
  }
  check_deviation(deviation);
  record_normal(result_of(call), Input(mean), Input(deviation), generator);
  return true;
}

bool normal_tensor_number(Call& call, const Tensor& mean, double deviation, OptionalGenerator generator) {
  if (!is_parameter(mean) || !has_shape(call, mean) || !(deviation >= 0) ||
      !prepare_result(call, mean.sizes(), mean.scalar_type(), {&mean}))
    return false;
  record_normal(result_of(call), Input(mean), Input(deviation, compute_scalar_type(mean.scalar_type())), generator);
  return true;
}

bool normal_number_tensor(Call& call, double mean, const Tensor& deviation, OptionalGenerator generator) {
  if (!is_parameter(deviation) || !has_shape(call, deviation) ||
      !prepare_result(call, deviation.sizes(), deviation.scalar_type(), {&deviation}))
    return false;
  check_deviation(deviation);
  record_normal(result_of(call), Input(mean, compute_scalar_type(deviation.scalar_type())), Input(deviation),
                generator);
  return true;
}

template <auto& node, uint64_t types>
bool draw(Call& call, const Tensor& self, OptionalGenerator generator) {
  check_devices({&self});
  if (!contains(types, self.scalar_type()) || !prepare_result(call, self.sizes(), self.scalar_type(), {&self}))
    return false;
  const Scalar seed = take_seed(generator);
  if (self.numel() != 0) node.record_fence(/*can_fail=*/true, self, seed, result_of(call));
  return true;
}

bool binomial(Call& call, const Tensor& count, const Tensor& p, OptionalGenerator generator) {
  check_devices({&count, &p});
  constexpr uint64_t kWide = type_bit(at::kFloat) | type_bit(at::kDouble);
  if (!contains(kWide, count.scalar_type()) || p.scalar_type() != count.scalar_type() ||
      !at::are_expandable(count.sizes(), p.sizes()) ||
      !prepare_result(call, at::infer_size_dimvector(count.sizes(), p.sizes()), count.scalar_type(), {&count, &p})) {
    return false;
  }
  const Scalar seed = take_seed(generator);
  if (result_of(call).numel() != 0) kBinomial.record_fence(/*can_fail=*/true, count, p, seed, result_of(call));
  return true;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  constexpr uint64_t kWide = type_bit(at::kFloat) | type_bit(at::kDouble);
  m.impl("randperm.generator_out", &randperm_out);
  AE_FUNCTIONAL(m, "multinomial", multinomial);
  AE_OUT(m, "multinomial.out", multinomial);
  AE_FUNCTIONAL(m, "normal.Tensor_Tensor", normal_tensors);
  AE_OUT(m, "normal.Tensor_Tensor_out", normal_tensors);
  AE_FUNCTIONAL(m, "normal.Tensor_float", normal_tensor_number);
  AE_OUT(m, "normal.Tensor_float_out", normal_tensor_number);
  AE_FUNCTIONAL(m, "normal.float_Tensor", normal_number_tensor);
  AE_OUT(m, "normal.float_Tensor_out", normal_number_tensor);
  m.impl("poisson", &Kernel<"poisson", &draw<kPoisson, kFloats>>::functional);
  m.impl("_standard_gamma", &Kernel<"_standard_gamma", &draw<kGamma, kWide>>::functional);
  m.impl("_sample_dirichlet", &Kernel<"_sample_dirichlet", &draw<kDirichlet, kWide>>::functional);
  AE_FUNCTIONAL(m, "binomial", binomial);
}

}  // namespace
}  // namespace ae::engine
