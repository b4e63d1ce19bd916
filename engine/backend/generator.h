// The neuron device's random numbers are counter-based: a generator is a seed and the number of counters taken so far.
// Operators take theirs when they are recorded, in program order.
#pragma once

#include <ATen/core/Generator.h>

#include <cstdint>
#include <optional>
#include <utility>

namespace ae::engine {

class NeuronGenerator final : public c10::GeneratorImpl {
 public:
  explicit NeuronGenerator(uint64_t seed = c10::default_rng_seed_val);
  static c10::DeviceType device_type() { return c10::DeviceType::PrivateUse1; }

  /// The seed, and the first of `counters` counters that nobody else gets. Thread safe.
  std::pair<uint64_t, uint64_t> take(uint64_t counters);

  // PyTorch's interface. Callers hold mutex_, as for every generator.
  void set_current_seed(uint64_t seed) override;
  void set_offset(uint64_t offset) override { offset_ = offset; }
  uint64_t get_offset() const override { return offset_; }
  uint64_t current_seed() const override { return seed_; }
  uint64_t seed() override;
  void set_state(const c10::TensorImpl& state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;

 private:
  NeuronGenerator* clone_impl() const override;
  uint64_t seed_;
  uint64_t offset_ = 0;
};

const at::Generator& default_generator();
/// The generator that an operator was given, or the default one. Throws when it is another device's.
NeuronGenerator& generator_or_default(const std::optional<at::Generator>& generator);
/// A CPU generator whose numbers depend on this generator's seed and counter alone, for operators that run on the CPU.
at::Generator cpu_generator_from(NeuronGenerator& generator);

}  // namespace ae::engine
