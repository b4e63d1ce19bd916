#include "tests/conformance/functional_stream.h"

#include <chrono>

#include <immintrin.h>

namespace ae::device::conformance {

FunctionalStream::FunctionalStream(std::shared_ptr<Account> account)
    : account_(std::move(account)), worker_([this] { work(); }) {}

FunctionalStream::~FunctionalStream() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  worker_.join();
}

// ------------------------------------------------------------------------------------------------------ Submission

/// Decides which storage holds what a program makes, in launch order: that of a block that is given up, or a new one.
class FunctionalStream::Placement {
 public:
  Placement(const FunctionalProgram& program, const std::vector<BlockRef>& given, std::shared_ptr<Account> account)
      : slots(program.slots), account_(std::move(account)) {
    for (int32_t slot = 0; slot < program.slots; ++slot) {
      if (!given[slot]) continue;
      if (given[slot]->size() != program.slot_bytes[slot]) throw std::invalid_argument("submit: block of another size");
      slots[slot].before = cell_of(given[slot]);
    }
    for (const FunctionalLaunch& launch : program.launches) {
      for (int32_t slot : launch.spec.free)  // what the launch only reads can be what it writes
        if (!slots[slot].after && is_alone(given[slot]) && !contains(launch.writes, slot))
          spare_.push_back({slots[slot].before->storage, true});
      for (int32_t slot : launch.spec.allocate) slots[slot].after = make(program.slot_bytes[slot]);
      for (int32_t slot : launch.writes)
        if (!slots[slot].after) slots[slot].after = is_alone(given[slot]) ? keep(slot) : make(program.slot_bytes[slot]);
      for (int32_t slot : launch.spec.free) {
        slots[slot].is_freed = true;
        if (slots[slot].after) spare_.push_back({slots[slot].after->storage, false});
      }
    }
  }

  std::vector<Slot> slots;
  int64_t donated = 0;

 private:
  struct Spare {
    std::shared_ptr<Storage> storage;
    bool given;
  };
  static bool is_alone(const BlockRef& block) { return block && !block->is_shared(); }
  static bool contains(const std::vector<int32_t>& items, int32_t item) {
    return std::find(items.begin(), items.end(), item) != items.end();
  }
  std::shared_ptr<Cell> keep(int32_t slot) {
    ++donated;
    return std::make_shared<Cell>(slots[slot].before->storage);
  }
  std::shared_ptr<Cell> make(int64_t bytes) {
    const auto at =
        std::find_if(spare_.begin(), spare_.end(), [&](const Spare& spare) { return spare.storage->size() == bytes; });
    if (at == spare_.end()) return std::make_shared<Cell>(std::make_shared<Storage>(bytes, account_));
    donated += at->given;
    auto cell = std::make_shared<Cell>(std::move(at->storage));
    spare_.erase(at);
    return cell;
  }

  std::shared_ptr<Account> account_;
  std::vector<Spare> spare_;
};

uint64_t FunctionalStream::submit(Submission& submission) {
  std::lock_guard lock(mutex_);
  const auto& program = static_cast<const FunctionalProgram&>(*submission.program);
  submission.slots.resize(program.slots);
  Placement placement(program, submission.slots, account_);
  donated_ += placement.donated;
  for (int32_t slot = 0; slot < program.slots; ++slot) {
    const std::shared_ptr<Cell>& after = placement.slots[slot].after;
    if (placement.slots[slot].is_freed)
      submission.slots[slot] = {};
    else if (after)
      submission.slots[slot] = FunctionalBlock::make(after);
  }
  queue_.push_back({submission.program, std::move(placement.slots), std::move(submission.scalars), submission.token,
                    submission.flush_denormal, std::move(submission.on_end), submitted_});
  submitted_ += program.launches.size();
  changed_.notify_all();
  return queue_.back().first;
}

bool FunctionalStream::wait(uint64_t number, int milliseconds) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::milliseconds(milliseconds), [&] { return completed_ >= number; });
}

// ---------------------------------------------------------------------------------------------------------- Worker

/// Each segment sees what was there before the launch, and what the launch's other segments wrote beside it.
void FunctionalStream::run_launch(Run& run, const FunctionalLaunch& launch) {
  std::map<int32_t, Bytes> values;
  const auto value_of = [&](int32_t slot) -> Bytes& {
    const auto [at, added] = values.try_emplace(slot);
    const Slot& from = run.slots[slot];
    if (added) at->second = from.now ? from.now->bytes : unwritten(from.after->storage->size());
    return at->second;
  };
  for (const StaticSegment& segment : launch.segments) {
    std::vector<Bytes> arguments;
    for (int32_t slot : segment.arguments) arguments.push_back(value_of(slot));
    std::vector<uint64_t> scalars;
    for (int32_t scalar : segment.scalars) scalars.push_back(run.scalars[scalar]);
    std::vector<Bytes> results = segment.kernel->call(std::move(arguments), std::move(scalars));
    for (int output : segment.kernel->outputs()) values[segment.arguments[output]] = std::move(results[output]);
  }
  if (launch.spec.library) {
    std::vector<void*> addresses;
    for (int32_t slot : launch.spec.library_slots) addresses.push_back(value_of(slot).data());
    for (int piece = 0; piece < launch.spec.library->pieces(); ++piece)
      launch.spec.library->run(piece, addresses.data(), run.scalars.data() + launch.spec.library_scalars);
  }
  for (int32_t slot : launch.writes) {
    run.slots[slot].now = run.slots[slot].after->storage;
    run.slots[slot].now->bytes = std::move(values[slot]);
  }
  for (int32_t slot : launch.last_writes) run.slots[slot].after->ready = true;
}

/// Blocks that launches should have written, had they run, hold what their slots hold.
void FunctionalStream::settle(Run& run) {
  for (Slot& slot : run.slots) {
    if (!slot.after || slot.after->ready || slot.is_freed) continue;
    Storage& storage = *slot.after->storage;
    if (slot.now != slot.after->storage) storage.bytes = slot.now ? slot.now->bytes : unwritten(storage.size());
    slot.after->ready = true;
  }
}

LaunchError FunctionalStream::run_launches(Run& run) {
  for (Slot& slot : run.slots) {
    if (!slot.before) continue;
    if (!slot.before->ready)
      return {std::make_exception_ptr(std::logic_error("a block was used before it was made")), 0};
    slot.now = slot.before->storage;
  }
  if (run.token && run.token->failed) return {run.token->error, 0};
  const std::vector<FunctionalLaunch>& launches = run.launches();
  for (size_t i = 0; i < launches.size(); ++i) {
    try {
      run_launch(run, launches[i]);
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

void FunctionalStream::publish(uint64_t number) {
  std::lock_guard lock(mutex_);
  completed_ = number;
  changed_.notify_all();
}

void FunctionalStream::work() {
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
    settle(run);
    busy_ns_ += (std::chrono::steady_clock::now() - begin).count();
    if (run.on_end) run.on_end(error.error ? &error : nullptr);
    run.slots.clear();
    publish(run.first + run.launches().size());
  }
}

}  // namespace ae::device::conformance
