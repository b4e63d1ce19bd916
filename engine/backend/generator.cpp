#include "engine/backend/generator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/Utils.h>
#include <ATen/core/Tensor.h>

#include <cstring>
#include <mutex>

namespace ae::engine {

NeuronGenerator::NeuronGenerator(uint64_t seed)
    : c10::GeneratorImpl(c10::Device(c10::DeviceType::PrivateUse1, 0),
                         c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
      seed_(seed) {}

std::pair<uint64_t, uint64_t> NeuronGenerator::take(uint64_t counters) {
  std::lock_guard lock(mutex_);
  const uint64_t first = offset_;
  offset_ += counters;
  return {seed_, first};
}

void NeuronGenerator::set_current_seed(uint64_t seed) {
  seed_ = seed;
  offset_ = 0;
}

uint64_t NeuronGenerator::seed() {
  set_current_seed(c10::detail::getNonDeterministicRandom());
  return seed_;
}

void NeuronGenerator::set_state(const c10::TensorImpl& state) {
  at::detail::check_rng_state(state);
  TORCH_CHECK(state.numel() == 16, "[neuron] a generator's state has 16 bytes (seed and offset), but this has ",
              state.numel());
  const auto* bytes = state.data_dtype_initialized<uint8_t>();
  std::memcpy(&seed_, bytes, 8);
  std::memcpy(&offset_, bytes + 8, 8);
}

c10::intrusive_ptr<c10::TensorImpl> NeuronGenerator::get_state() const {
  at::Tensor state(at::detail::empty_cpu({16}, at::kByte));
  auto* bytes = static_cast<uint8_t*>(state.mutable_data_ptr());
  std::memcpy(bytes, &seed_, 8);
  std::memcpy(bytes + 8, &offset_, 8);
  return state.getIntrusivePtr();
}

NeuronGenerator* NeuronGenerator::clone_impl() const {
  auto* copy = new NeuronGenerator(seed_);
  copy->offset_ = offset_;
  return copy;
}

const at::Generator& default_generator() {
  static const at::Generator& generator = *new at::Generator(at::make_generator<NeuronGenerator>());
  return generator;
}

NeuronGenerator& generator_or_default(const std::optional<at::Generator>& generator) {
  const at::Generator& chosen = generator && generator->defined() ? *generator : default_generator();
  TORCH_CHECK(chosen.device().type() == NeuronGenerator::device_type(),
              "Expected a 'neuron' device type for generator but found '", chosen.device().type(), "'");
  return *static_cast<NeuronGenerator*>(chosen.unsafeGetGeneratorImpl());
}

at::Generator cpu_generator_from(NeuronGenerator& generator) {
  const auto [seed, offset] = generator.take(1);
  // SplitMix64's finalizer over both: neighbouring offsets give unrelated seeds.
  uint64_t mixed = seed + (offset + 1) * 0x9e3779b97f4a7c15ULL;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
  return at::detail::createCPUGenerator(mixed ^ (mixed >> 31));
}

}  // namespace ae::engine
