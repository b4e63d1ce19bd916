#include "device/host/host_device.h"

#include "device/host/clock.h"
#include "device/host/memory.h"
#include "device/host/pool.h"
#include "device/host/program.h"
#include "device/host/stream.h"
#include "device/host/tile_code.h"

namespace ae::device::host {
namespace {

/// Memory of somebody else. It is given back when no queued launch uses it any more.
class WrappedBlock final : public Block {
 public:
  WrappedBlock(void* address, int64_t bytes, std::function<void()> release, std::shared_ptr<StreamClock> clock)
      : Block(address, bytes), release_(std::move(release)), clock_(std::move(clock)) {}

 private:
  void dispose() noexcept override {
    const std::shared_ptr<StreamClock> clock = std::move(clock_);
    if (release_) clock->when_done(std::move(release_));
    delete this;
  }
  std::function<void()> release_;
  std::shared_ptr<StreamClock> clock_;
};

class HostDevice final : public Device {
 public:
  explicit HostDevice(const HostOptions& options)
      : clock_(std::make_shared<StreamClock>()),
        memory_(std::make_unique<MemoryPool>(clock_)),
        pool_(options.threads, options.thread_start),
        native_(options.native),
        stream_(std::make_unique<HostStream>(pool_, *memory_, native_, clock_)) {}

  ~HostDevice() override {
    stream_.reset();
    MemoryPool::abandon(std::move(memory_));
  }

  const Capabilities& capabilities() const override { return capabilities_; }
  std::shared_ptr<const Executable> load(const TileProgram& program) override {
    return std::make_shared<TileCode>(program);
  }
  std::shared_ptr<const Program> compile(ProgramSpec spec) override {
    return std::make_shared<HostProgram>(std::move(spec));
  }
  Stream& default_stream() override { return *stream_; }

  BlockRef allocate(int64_t bytes) override { return memory_->allocate_idle(bytes); }
  BlockRef wrap(void* address, int64_t bytes, std::function<void()> release) override {
    return BlockRef::adopt(new WrappedBlock(address, bytes, std::move(release), clock_));
  }
  MemoryStats memory_stats() const override { return memory_->stats(); }
  void reset_peak_stats() override { memory_->reset_peak_stats(); }
  void reset_accumulated_stats() override { memory_->reset_accumulated_stats(); }
  void empty_cache() override { memory_->empty_cache(); }
  void set_memory_limit(int64_t bytes) override { memory_->set_limit(bytes); }
  int64_t memory_limit() const override { return memory_->limit(); }

 private:
  static constexpr Capabilities capabilities_{.addressable = true, .write_in_place = true, .dynamic_sizes = true};
  std::shared_ptr<StreamClock> clock_;
  std::unique_ptr<MemoryPool> memory_;
  Pool pool_;
  NativeTier native_;
  std::unique_ptr<HostStream> stream_;
};

}  // namespace

std::unique_ptr<Device> make_host_device(const HostOptions& options) { return std::make_unique<HostDevice>(options); }

}  // namespace ae::device::host
