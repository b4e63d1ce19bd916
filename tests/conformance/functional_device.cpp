#include "tests/conformance/functional_device.h"

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include <immintrin.h>

#include "tests/cpp/tile_reference.h"

namespace ae::device::conformance {
namespace {

using Bytes = std::vector<std::byte>;
using Buffer = std::shared_ptr<const Bytes>;  // immutable

/// Counts what blocks take; outlives the device with the last block.
struct Account {
  std::mutex mutex;
  MemoryStats stats;
  int64_t limit = -1;
};

class FunctionalBlock final : public Block {
 public:
  FunctionalBlock(int64_t bytes, std::shared_ptr<Account> account)
      : Block(nullptr, bytes), account_(std::move(account)) {
    std::lock_guard lock(account_->mutex);
    MemoryStats& stats = account_->stats;
    if (bytes < 0 || (account_->limit >= 0 && stats.allocated + bytes > account_->limit)) {
      ++stats.out_of_memory;
      throw OutOfMemory(bytes, stats.allocated, account_->limit);
    }
    stats.allocated += bytes;
    stats.reserved = stats.allocated;
    stats.allocated_peak = std::max(stats.allocated_peak, stats.allocated);
    ++stats.allocations;
    ++stats.allocations_total;
  }
  ~FunctionalBlock() override {
    std::lock_guard lock(account_->mutex);
    account_->stats.allocated -= size_;
    account_->stats.reserved = account_->stats.allocated;
    --account_->stats.allocations;
    ++account_->stats.frees_total;
  }

  /// The device's thread alone reads and sets it.
  Buffer buffer;

 private:
  std::shared_ptr<Account> account_;
};

/// A kernel; each call evaluates it for the space and views of its segment.
class FunctionalExecutable final : public Executable {
 public:
  explicit FunctionalExecutable(TileProgram program) : program_(std::move(program)) {}

  /// Inputs are copies of buffers; the outputs are what they are after the call.
  std::vector<Bytes> call(const Segment& segment, std::vector<Bytes> inputs, std::vector<DType> types,
                          std::vector<int> slots, std::vector<uint64_t> scalars) const {
    host::testing::TileCase fixed;
    fixed.program = program_;
    fixed.space = segment.space;
    for (const SegmentOperand& operand : segment.operands) fixed.views.push_back(operand.view);
    fixed.slots = std::move(slots);
    fixed.memory = std::move(inputs);
    fixed.memory_types = std::move(types);
    fixed.scalars = std::move(scalars);
    return host::testing::run_slowly(fixed);
  }
  const TileProgram& program() const { return program_; }

 private:
  TileProgram program_;
};

class FunctionalProgram final : public Program {
 public:
  explicit FunctionalProgram(ProgramSpec s) : spec(std::move(s)) {}
  ProgramSpec spec;
};

class FunctionalStream final : public Stream {
 public:
  explicit FunctionalStream(std::shared_ptr<Account> account)
      : account_(std::move(account)), worker_([this] { work(); }) {}
  ~FunctionalStream() override {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    worker_.join();
  }

  uint64_t submit(Submission& submission) override {
    std::lock_guard lock(mutex_);
    const auto& spec = static_cast<const FunctionalProgram&>(*submission.program).spec;
    submission.slots.resize(spec.slots);
    std::vector<BlockRef> seen = submission.slots;
    for (const LaunchSpec& launch : spec.launches) {
      for (int32_t slot : launch.allocate)
        seen[slot] = BlockRef::adopt(new FunctionalBlock(spec.slot_bytes[slot], account_));
    }
    Run run{submission.program,
            seen,
            std::move(submission.scalars),
            submission.token,
            submission.flush_denormal,
            std::move(submission.on_end),
            submitted_};
    for (const LaunchSpec& launch : spec.launches) {
      for (int32_t slot : launch.free) seen[slot] = {};
    }
    submission.slots = std::move(seen);
    submitted_ += spec.launches.size();
    queue_.push_back(std::move(run));
    changed_.notify_all();
    return queue_.back().first;
  }
  uint64_t completed() const noexcept override { return completed_; }
  uint64_t submitted() const noexcept override { return submitted_; }
  bool wait(uint64_t number, int milliseconds) override {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::milliseconds(milliseconds), [&] { return completed_ >= number; });
  }
  int64_t busy_ns() const noexcept override { return busy_ns_; }

 private:
  struct Run {
    std::shared_ptr<const Program> program;
    std::vector<BlockRef> slots;
    std::vector<uint64_t> scalars;
    std::shared_ptr<CancelToken> token;
    bool flush_denormal;
    std::function<void(const LaunchError*)> on_end;
    uint64_t first;
  };

  static FunctionalBlock& block_of(Run& run, int32_t slot) {
    auto& block = static_cast<FunctionalBlock&>(*run.slots[slot].get());
    if (!block.buffer) block.buffer = std::make_shared<const Bytes>(block.size());
    return block;
  }

  static void run_segment(Run& run, const Segment& segment) {
    const auto& executable = static_cast<const FunctionalExecutable&>(*segment.executable);
    std::map<int32_t, int> argument_of;  // slot -> argument
    std::vector<Bytes> inputs;
    std::vector<DType> types;
    std::vector<int> slots;
    for (size_t i = 0; i < segment.operands.size(); ++i) {
      const int32_t slot = segment.operands[i].slot;
      if (slot < 0) {
        slots.push_back(-1);
        continue;
      }
      const auto [at, added] = argument_of.emplace(slot, static_cast<int>(inputs.size()));
      if (added) {
        inputs.push_back(*block_of(run, slot).buffer);
        types.push_back(executable.program().operands[i]);
      }
      slots.push_back(at->second);
    }
    std::vector<uint64_t> scalars;
    for (int32_t scalar : segment.scalars) scalars.push_back(run.scalars[scalar]);
    auto outputs = executable.call(segment, std::move(inputs), std::move(types), slots, std::move(scalars));
    for (const TileInstr& instr : executable.program().instrs) {
      if (instr.op != Primitive::store) continue;
      const int32_t slot = segment.operands[instr.operand].slot;
      block_of(run, slot).buffer = std::make_shared<const Bytes>(outputs[slots[instr.operand]]);
    }
  }

  /// Host code gets copies to work on; what it leaves becomes the new buffers.
  static void run_library(Run& run, const LaunchSpec& launch) {
    std::vector<std::shared_ptr<Bytes>> copies;
    std::vector<void*> addresses;
    for (int32_t slot : launch.library_slots) {
      copies.push_back(std::make_shared<Bytes>(*block_of(run, slot).buffer));
      addresses.push_back(copies.back()->data());
    }
    for (int piece = 0; piece < launch.library->pieces(); ++piece) {
      launch.library->run(piece, addresses.data(), run.scalars.data() + launch.library_scalars);
    }
    for (size_t i = 0; i < copies.size(); ++i) block_of(run, launch.library_slots[i]).buffer = copies[i];
  }

  void publish(uint64_t number) {
    std::lock_guard lock(mutex_);
    completed_ = number;
    changed_.notify_all();
  }

  LaunchError run_launches(Run& run) {
    if (run.token && run.token->failed) return {run.token->error, 0};
    const auto& launches = static_cast<const FunctionalProgram&>(*run.program).spec.launches;
    for (size_t i = 0; i < launches.size(); ++i) {
      try {
        for (const Segment& segment : launches[i].segments) run_segment(run, segment);
        if (launches[i].library) run_library(run, launches[i]);
      } catch (...) {
        if (run.token) {
          run.token->error = std::current_exception();
          run.token->failed = true;
        }
        return {std::current_exception(), static_cast<int>(i)};
      }
      if (i + 1 < launches.size()) publish(run.first + i + 1);
    }
    return {};
  }

  void work() {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      Run run = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      const auto begin = std::chrono::steady_clock::now();
      const unsigned mode = _mm_getcsr();
      if (run.flush_denormal) _mm_setcsr(mode | 0x8040);
      const LaunchError error = run_launches(run);
      _mm_setcsr(mode);
      busy_ns_ += (std::chrono::steady_clock::now() - begin).count();
      if (run.on_end) run.on_end(error.error ? &error : nullptr);
      run.slots.clear();
      const size_t count = static_cast<const FunctionalProgram&>(*run.program).spec.launches.size();
      publish(run.first + count);
    }
  }

  std::shared_ptr<Account> account_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Run> queue_;
  std::atomic<uint64_t> submitted_{0}, completed_{0};
  std::atomic<int64_t> busy_ns_{0};
  bool stopping_ = false;
  std::thread worker_;
};

class FunctionalDevice final : public Device {
 public:
  const Capabilities& capabilities() const override { return capabilities_; }
  std::shared_ptr<const Executable> load(const TileProgram& program) override {
    return std::make_shared<FunctionalExecutable>(program);
  }
  std::shared_ptr<const Program> compile(ProgramSpec spec) override {
    return std::make_shared<FunctionalProgram>(std::move(spec));
  }
  Stream& default_stream() override { return stream_; }
  BlockRef allocate(int64_t bytes) override { return BlockRef::adopt(new FunctionalBlock(bytes, account_)); }
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

 private:
  static constexpr Capabilities capabilities_{};
  std::shared_ptr<Account> account_ = std::make_shared<Account>();
  FunctionalStream stream_{account_};
};

}  // namespace

std::unique_ptr<Device> make_functional_device() { return std::make_unique<FunctionalDevice>(); }

}  // namespace ae::device::conformance
