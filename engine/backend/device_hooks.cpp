// What PyTorch asks of a device: hooks, guard, the one stream and its events.
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <chrono>
#include <memory>

#include "engine/backend/generator.h"
#include "engine/backend/storage.h"
#include "engine/python_state.h"
#include "engine/runtime.h"

namespace ae::engine {
namespace {

using Clock = std::chrono::steady_clock;

const c10::Device kDevice(kDeviceType, 0);

void check_index(c10::DeviceIndex index) {
  TORCH_CHECK(index == 0 || index == -1, "[neuron] there is one device, neuron:0, but index ", static_cast<int>(index),
              " was asked for");
}

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return is_initialized(); }
  void init() const override { recorder(); }
  c10::DeviceIndex deviceCount() const override { return 1; }
  void setCurrentDevice(c10::DeviceIndex index) const override { check_index(index); }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    check_index(index);
    return 0;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override { return exchangeDevice(index); }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override {
    check_index(index);
    return default_generator();
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    check_index(index);
    return at::make_generator<NeuronGenerator>();
  }
  at::Device getDeviceFromPtr(void*) const override { return kDevice; }
  bool isPinnedPtr(const void*) const override { return false; }
  // Copies from any host memory are made at once, so that pinning would gain nothing: what is asked for is plain
  // memory.
  c10::Allocator* getPinnedMemoryAllocator() const override { return c10::GetCPUAllocator(); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t nbytes) const override {
    resize_storage(storage.unsafeGetStorageImpl(), static_cast<int64_t>(nbytes));
  }
};

// An event is a place in the stream: the launches before `number`. Events that measure time wait when they are
// recorded.
struct Event {
  uint64_t number = 0;
  Clock::time_point time;
};

void wait_number(uint64_t number) {
  device::Stream& stream = host_device().default_stream();
  GilRelease release;
  constexpr int kMilliseconds = 50;
  while (!stream.wait(number, kMilliseconds)) check_signals();
}

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  static constexpr c10::DeviceType static_type = kDeviceType;
  c10::DeviceType type() const override { return kDeviceType; }
  c10::Device exchangeDevice(c10::Device device) const override {
    check_index(device.index());
    return kDevice;
  }
  c10::Device getDevice() const override { return kDevice; }
  void setDevice(c10::Device device) const override { check_index(device.index()); }
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  c10::DeviceCapability getDeviceCapability(c10::Device) const override { return {}; }

  c10::Stream getStream(c10::Device) const override { return c10::Stream(c10::Stream::DEFAULT, kDevice); }
  c10::Stream getDefaultStream(c10::Device device) const override { return getStream(device); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override { return getStream(device); }
  c10::Stream getNewStream(c10::Device device, int) const override { return getStream(device); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return getStream(stream.device()); }
  bool queryStream(const c10::Stream&) const override {
    if (!is_initialized()) return true;
    flush(fusion::FlushReason::synchronize);
    device::Stream& stream = host_device().default_stream();
    return stream.completed() >= stream.submitted();
  }
  void synchronizeStream(const c10::Stream&) const override { synchronize(); }
  void synchronizeDevice(const c10::DeviceIndex) const override { synchronize(); }

  void record(void** event, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag flag) const override {
    auto recorded = std::make_unique<Event>();
    if (flag == c10::EventFlag::BACKEND_DEFAULT) {
      synchronize();
    } else {
      flush(fusion::FlushReason::synchronize);
    }
    recorded->number = host_device().default_stream().submitted();
    recorded->time = Clock::now();
    delete static_cast<Event*>(std::exchange(*event, recorded.release()));
  }
  void block(void*, const c10::Stream&) const override {}  // one stream: it is in order anyway
  bool queryEvent(void* event) const override {
    return event == nullptr || host_device().default_stream().completed() >= static_cast<Event*>(event)->number;
  }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) wait_number(static_cast<Event*>(event)->number);
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override { delete static_cast<Event*>(event); }
  double elapsedTime(void* first, void* second, const c10::DeviceIndex) const override {
    TORCH_CHECK(first && second, "Both events must be recorded before calculating elapsed time.");
    const auto span = static_cast<Event*>(second)->time - static_cast<Event*>(first)->time;
    return std::chrono::duration<double, std::milli>(span).count();
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

[[maybe_unused]] const bool g_registered = [] {
  at::RegisterPrivateUse1HooksInterface(new Hooks);  // leaked, as PyTorch expects
  return true;
}();

}  // namespace
}  // namespace ae::engine
