// Random fills. Seed and offset are taken when recording, in program order; one counter a node, since its elements are
// told apart by their positions.
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>

#include <cmath>
#include <limits>

#include "engine/record/kernel.h"
#include "engine/record/random.h"

namespace ae::engine {
namespace {

using OptionalGenerator = std::optional<at::Generator>;

/// What all random fills ask of their target.
bool is_random_target(const at::Tensor& self, uint64_t types) {
  return is_neuron(self) && contains(types, self.scalar_type()) && at::has_internal_overlap(self) == at::MemOverlap::No;
}

/// Records a fill of `self` with `parameters`, which the draws follow.
void record_random(const at::Tensor& self, Opcode opcode, c10::ArrayRef<Input> parameters,
                   const OptionalGenerator& generator, c10::ArrayRef<int64_t> attributes = {}) {
  const Draws draws(generator);
  if (self.numel() == 0) return;
  c10::SmallVector<Input, 4> inputs(parameters.begin(), parameters.end());
  inputs.push_back(draws.seed);
  inputs.push_back(draws.offset);
  record_pointwise(opcode, self.scalar_type(), inputs, self, attributes);
}

/// Parameters of a distribution are in fp64, and rounded where they are used.
Input real(double value) { return {value, at::kDouble}; }

at::Tensor& uniform(at::Tensor& self, double from, double to, OptionalGenerator generator) {
  const double limit = self.scalar_type() == at::kDouble ? std::numeric_limits<double>::max()
                       : self.scalar_type() == at::kHalf ? 65504.0
                                                         : std::numeric_limits<float>::max();
  if (!is_random_target(self, kFloats) || !(from <= to) || !(to - from <= limit)) {
    return Fallback<at::Tensor&(at::Tensor&, double, double, OptionalGenerator)>::call("uniform_", self, from, to,
                                                                                       generator);
  }
  record_random(self, Opcode::uniform, {real(from), real(to)}, generator);
  return self;
}

at::Tensor& normal(at::Tensor& self, double mean, double std, OptionalGenerator generator) {
  if (!is_random_target(self, kFloats) || !(std >= 0)) {
    return Fallback<at::Tensor&(at::Tensor&, double, double, OptionalGenerator)>::call("normal_", self, mean, std,
                                                                                       generator);
  }
  record_random(self, Opcode::normal, {real(mean), real(std)}, generator);
  return self;
}

at::Tensor& exponential(at::Tensor& self, double lambda, OptionalGenerator generator) {
  if (!is_random_target(self, kFloats) || !(lambda > 0)) {
    return Fallback<at::Tensor&(at::Tensor&, double, OptionalGenerator)>::call("exponential_", self, lambda, generator);
  }
  record_random(self, Opcode::exponential, real(lambda), generator);
  return self;
}

/// Numbers of the computing type, from which a fill of another distribution is made.
at::Tensor drawn_for(const at::Tensor& self) {
  return make_tensor(self.sizes(),
                     contains(kFloats, self.scalar_type()) ? compute_scalar_type(self.scalar_type()) : at::kDouble);
}

/// The smallest whole number that is not below an exponential one.
at::Tensor& geometric(at::Tensor& self, double p, OptionalGenerator generator) {
  if (!is_random_target(self, kFloats | kInts) || !(p > 0 && p < 1))
    return Fallback<at::Tensor&(at::Tensor&, double, OptionalGenerator)>::call("geometric_", self, p, generator);
  const at::Tensor drawn = drawn_for(self);
  const at::ScalarType type = drawn.scalar_type();
  record_random(drawn, Opcode::exponential, real(-std::log1p(-p)), generator);
  if (self.numel() == 0) return self;
  record_pointwise(Opcode::ceil, type, {Input(drawn)}, drawn);
  record_pointwise(Opcode::copy, self.scalar_type(), {Input(drawn)}, self);
  return self;
}

at::Tensor& log_normal(at::Tensor& self, double mean, double std, OptionalGenerator generator) {
  if (!is_random_target(self, kFloats) || !(std > 0))
    return Fallback<at::Tensor&(at::Tensor&, double, double, OptionalGenerator)>::call("log_normal_", self, mean, std,
                                                                                       generator);
  const at::Tensor drawn = drawn_for(self);
  record_random(drawn, Opcode::normal, {real(mean), real(std)}, generator);
  if (self.numel() == 0) return self;
  record_pointwise(Opcode::exp, drawn.scalar_type(), {Input(drawn)}, drawn);
  record_pointwise(Opcode::copy, self.scalar_type(), {Input(drawn)}, self);
  return self;
}

/// median + sigma * tan(pi * u), with u uniform in [-1/2, 1/2).
at::Tensor& cauchy(at::Tensor& self, double median, double sigma, OptionalGenerator generator) {
  if (!is_random_target(self, kFloats) || !(sigma > 0))
    return Fallback<at::Tensor&(at::Tensor&, double, double, OptionalGenerator)>::call("cauchy_", self, median, sigma,
                                                                                       generator);
  const at::Tensor drawn = drawn_for(self);
  const at::ScalarType type = drawn.scalar_type();
  record_random(drawn, Opcode::uniform, {real(-0.5), real(0.5)}, generator);
  if (self.numel() == 0) return self;
  record_pointwise(Opcode::mul, type, {Input(drawn), Input(std::acos(-1.0), type)}, drawn);
  record_pointwise(Opcode::tan, type, {Input(drawn)}, drawn);
  record_pointwise(Opcode::mul, type, {Input(drawn), Input(sigma, type)}, drawn);
  record_pointwise(Opcode::add, type, {Input(drawn), Input(median, type)}, drawn);
  record_pointwise(Opcode::copy, self.scalar_type(), {Input(drawn)}, self);
  return self;
}

/// Largest integer up to which a dtype has all integers.
int64_t last_integer(at::ScalarType type) {
  switch (type) {
    case at::kBool: return 1;
    case at::kByte: return std::numeric_limits<uint8_t>::max();
    case at::kChar: return std::numeric_limits<int8_t>::max();
    case at::kShort: return std::numeric_limits<int16_t>::max();
    case at::kInt: return std::numeric_limits<int32_t>::max();
    case at::kHalf: return int64_t{1} << 11;
    case at::kBFloat16: return int64_t{1} << 8;
    case at::kFloat: return int64_t{1} << 24;
    case at::kDouble: return int64_t{1} << 53;
    default: return std::numeric_limits<int64_t>::max();
  }
}

/// Integers low … low + range - 1.
void record_integers(const at::Tensor& self, int64_t low, uint64_t range, const OptionalGenerator& generator) {
  const bool wide = range > std::numeric_limits<uint32_t>::max();
  record_random(self, Opcode::random_int,
                {Input(at::Scalar(low), at::kLong), Input(at::Scalar(static_cast<int64_t>(range)), at::kLong)},
                generator, {wide ? 1 : 0});
}

at::Tensor& random(at::Tensor& self, OptionalGenerator generator) {
  if (!is_random_target(self, kFloats | kInts | kBools)) {
    return Fallback<at::Tensor&(at::Tensor&, OptionalGenerator)>::call("random_", self, generator);
  }
  // As PyTorch: 0 to the largest value of integers (included), 0 to 2^digits of floats (included).
  record_integers(self, 0, static_cast<uint64_t>(last_integer(self.scalar_type())) + 1, generator);
  return self;
}

/// Bounds that PyTorch accepts without an error or a warning.
bool are_bounds(const at::Tensor& self, int64_t from, int64_t last) {
  const at::ScalarType type = self.scalar_type();
  const int64_t highest = last_integer(type);
  const bool is_unsigned = type == at::kByte || type == at::kBool;
  const int64_t lowest = is_unsigned ? 0 : contains(kFloats, type) ? -highest : -highest - 1;
  const bool all_of_int64 = from == std::numeric_limits<int64_t>::min() && last == highest;  // 2^64 values
  return from <= last && from >= lowest && last <= highest && !all_of_int64;
}

at::Tensor& random_from_to(at::Tensor& self, int64_t from, std::optional<int64_t> to, OptionalGenerator generator) {
  const bool plain = is_random_target(self, kFloats | kInts | kBools);
  if (plain && to && *to > std::numeric_limits<int64_t>::min() && are_bounds(self, from, *to - 1)) {
    record_integers(self, from, static_cast<uint64_t>(*to) - static_cast<uint64_t>(from), generator);
  } else if (plain && !to && are_bounds(self, from, last_integer(self.scalar_type()))) {
    const uint64_t last = static_cast<uint64_t>(last_integer(self.scalar_type()));
    record_integers(self, from, last - static_cast<uint64_t>(from) + 1, generator);
  } else {
    using Signature = at::Tensor&(at::Tensor&, int64_t, std::optional<int64_t>, OptionalGenerator);
    return Fallback<Signature>::call("random_.from", self, from, to, generator);
  }
  return self;
}

at::Tensor& random_to(at::Tensor& self, int64_t to, OptionalGenerator generator) {
  return random_from_to(self, 0, to, std::move(generator));
}

constexpr uint64_t kBernoulliTypes = kFloats | kInts | kBools;

at::Tensor& bernoulli_float(at::Tensor& self, double p, OptionalGenerator generator) {
  if (!is_random_target(self, kBernoulliTypes) || !(p >= 0 && p <= 1)) {
    return Fallback<at::Tensor&(at::Tensor&, double, OptionalGenerator)>::call("bernoulli_.float", self, p, generator);
  }
  record_random(self, Opcode::bernoulli, real(p), generator);
  return self;
}

/// Probabilities that are tensors: PyTorch checks their values on the CPU, which no recorded operator can.
bool is_probability(const at::Tensor& self, const at::Tensor& p) {
  return is_neuron(p) && contains(kFloats, p.scalar_type()) && p.dim() <= self.dim() &&
         at::is_expandable_to(p.sizes(), self.sizes()) && !p.storage().is_alias_of(self.storage());
}

at::Tensor& bernoulli_tensor(at::Tensor& self, const at::Tensor& p, OptionalGenerator generator) {
  if (is_cpu_scalar(p) && !p.is_complex()) return bernoulli_float(self, p.item().toDouble(), std::move(generator));
  if (!is_random_target(self, kBernoulliTypes) || !is_probability(self, p)) {
    using Signature = at::Tensor&(at::Tensor&, const at::Tensor&, OptionalGenerator);
    return Fallback<Signature>::call("bernoulli_.Tensor", self, p, generator);
  }
  record_random(self, Opcode::bernoulli, Input(p), generator);
  return self;
}

at::Tensor bernoulli(const at::Tensor& self, OptionalGenerator generator) {
  if (!contains(kFloats, self.scalar_type())) {
    return Fallback<at::Tensor(const at::Tensor&, OptionalGenerator)>::call("bernoulli", self, generator);
  }
  at::Tensor result = make_tensor(self.sizes(), self.scalar_type());
  bernoulli_tensor(result, self, std::move(generator));
  return result;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("uniform_", &uniform);
  m.impl("normal_", &normal);
  m.impl("exponential_", &exponential);
  m.impl("geometric_", &geometric);
  m.impl("log_normal_", &log_normal);
  m.impl("cauchy_", &cauchy);
  m.impl("random_", &random);
  m.impl("random_.from", &random_from_to);
  m.impl("random_.to", &random_to);
  m.impl("bernoulli_.float", &bernoulli_float);
  m.impl("bernoulli_.Tensor", &bernoulli_tensor);
  m.impl("bernoulli", &bernoulli);
}

}  // namespace
}  // namespace ae::engine
