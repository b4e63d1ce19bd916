#include "tests/conformance/functional_device.h"

#include <unordered_map>

#include "tests/conformance/functional_stream.h"

namespace ae::device::conformance {
namespace {

class FunctionalDeviceImpl final : public FunctionalDevice {
 public:
  const Capabilities& capabilities() const override { return capabilities_; }
  std::shared_ptr<const Executable> load(const TileProgram& program) override {
    std::lock_guard lock(mutex_);
    const uint64_t hash = std::hash<std::string>()(program.name) * 31 + program.instrs.size();
    auto [at, end] = loaded_.equal_range(hash);
    for (; at != end; ++at)
      if (at->second->program() == program) return at->second;
    return loaded_.emplace(hash, std::make_shared<FunctionalExecutable>(program))->second;
  }
  std::shared_ptr<const Program> compile(ProgramSpec spec) override {
    std::lock_guard lock(mutex_);
    return std::make_shared<FunctionalProgram>(std::move(spec), counts_.compiled, counts_.compiled_hits);
  }
  Stream& default_stream() override { return stream_; }
  BlockRef allocate(int64_t bytes) override { return ready_block(bytes, unwritten(std::max<int64_t>(0, bytes))); }
  BlockRef copy_from_host(const void* from, int64_t bytes) override {
    const auto* first = static_cast<const std::byte*>(from);
    return ready_block(bytes, Bytes(first, first + bytes));
  }
  void copy_to_host(const BlockRef& block, void* to) override {
    const Cell& cell = *cell_of(block);
    if (!cell.ready) throw std::logic_error("a block was read before it was made");
    std::copy(cell.storage->bytes.begin(), cell.storage->bytes.end(), static_cast<std::byte*>(to));
  }
  BlockRef wrap(void*, int64_t, std::function<void()>) override {
    throw std::logic_error("the functional device cannot wrap memory: its blocks have no address");
  }
  MemoryStats memory_stats() const override {
    std::lock_guard lock(account_->mutex);
    return account_->stats;
  }
  void reset_peak_stats() override {
    std::lock_guard lock(account_->mutex);
    account_->stats.allocated_peak = account_->stats.allocated;
  }
  void reset_accumulated_stats() override {
    std::lock_guard lock(account_->mutex);
    account_->stats.allocations_total = account_->stats.frees_total = 0;
  }
  void empty_cache() override {}
  void set_memory_limit(int64_t bytes) override {
    std::lock_guard lock(account_->mutex);
    account_->limit = bytes;
  }
  int64_t memory_limit() const override {
    std::lock_guard lock(account_->mutex);
    return account_->limit;
  }
  FunctionalCounts counts() const override {
    std::lock_guard lock(mutex_);
    FunctionalCounts counts = counts_;
    counts.donated = stream_.donated();
    return counts;
  }

 private:
  BlockRef ready_block(int64_t size, Bytes bytes) {
    const auto cell = std::make_shared<Cell>(std::make_shared<Storage>(size, account_));
    cell->storage->bytes = std::move(bytes);
    cell->ready = true;
    return FunctionalBlock::make(cell);
  }

  static constexpr Capabilities capabilities_{};
  std::shared_ptr<Account> account_ = std::make_shared<Account>();
  mutable std::mutex mutex_;
  FunctionalCounts counts_;  // but for `donated`
  std::unordered_multimap<uint64_t, std::shared_ptr<FunctionalExecutable>> loaded_;
  FunctionalStream stream_{account_};
};

}  // namespace

std::unique_ptr<FunctionalDevice> make_functional_device() { return std::make_unique<FunctionalDeviceImpl>(); }

}  // namespace ae::device::conformance
