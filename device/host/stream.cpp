#include "device/host/stream.h"

#include <pthread.h>

#include <chrono>
#include <stdexcept>

#include <immintrin.h>

namespace ae::device::host {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kWorkerSpin = std::chrono::microseconds(50);
constexpr auto kWaiterSpin = std::chrono::microseconds(5);

/// Grows in the child of a fork, which has no worker.
std::atomic<int> process_generation{0};

int watch_forks() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { process_generation.fetch_add(1); });
  (void)registered;
  return process_generation.load();
}

template <class F>
bool spin_until(std::chrono::microseconds limit, F done) {
  const auto end = Clock::now() + limit;
  do {
    for (int i = 0; i < 16; ++i) {
      if (done()) return true;
      _mm_pause();
    }
  } while (Clock::now() < end);
  return done();
}

}  // namespace

HostStream::HostStream(Pool& pool, MemoryPool& memory, NativeTier& native, std::shared_ptr<StreamClock> clock)
    : pool_(pool),
      memory_(memory),
      native_(native),
      clock_(std::move(clock)),
      executor_(pool),
      process_generation_(watch_forks()) {
  worker_ = std::make_unique<std::thread>([this] { pool_.enter([this] { work(); }); });
}

HostStream::~HostStream() {
  if (process_generation.load() != process_generation_) {
    // The threads are the parent's.
    (void)worker_.release();
    (void)queue_changed_.release();
    (void)progressed_.release();
    return;
  }
  {
    std::lock_guard lock(queue_mutex_);
    stopping_.store(true);
  }
  queue_changed_->notify_all();
  worker_->join();
}

void HostStream::require_same_process() const {
  if (process_generation.load(std::memory_order_relaxed) != process_generation_) {
    throw std::runtime_error(
        "the neuron device cannot be used in a forked process: its worker threads stayed in the parent. Use the "
        "'spawn' start method of multiprocessing, or first use the device after the fork");
  }
}

// ------------------------------------------------------------------------------------------------------ Submission

/// Fills in the blocks of a submission, in launch order; undoes everything unless it is kept.
struct HostStream::Allocation {
  struct Dropped {
    int32_t slot;
    BlockRef block;
  };
  Submission& submission;
  std::vector<int32_t> made;     // slots that got a new block
  std::vector<Dropped> dropped;  // blocks that launches before the current one dropped
  std::vector<int32_t> reused;   // per slot in `made`: index into `dropped` its block came from, or -1
  bool kept = false;

  explicit Allocation(Submission& s) : submission(s) {}
  ~Allocation() {
    if (kept) return;
    for (size_t i = 0; i < made.size(); ++i) {
      BlockRef& block = submission.slots[made[i]];
      if (reused[i] >= 0) dropped[reused[i]].block = std::move(block);
      block = {};
    }
    for (Dropped& d : dropped) submission.slots[d.slot] = std::move(d.block);
  }

  /// A dropped block of this size that nobody else holds, or -1. It can become a later slot's: launches run in order.
  int32_t find_dropped(int64_t bytes) const {
    for (size_t i = 0; i < dropped.size(); ++i) {
      const BlockRef& block = dropped[i].block;
      if (block && block->size() == bytes && !block->is_shared()) return static_cast<int32_t>(i);
    }
    return -1;
  }
};

void HostStream::allocate_slots(const HostProgram& program, Submission& submission, Run& run) {
  Allocation allocation(submission);
  run.addresses.assign(program.slots(), nullptr);
  for (int32_t s = 0; s < program.slots(); ++s) {
    if (submission.slots[s]) run.addresses[s] = submission.slots[s]->address();
  }
  BlockRef temporaries;
  if (program.temporary_bytes() > 0) {
    temporaries = memory_.allocate(program.temporary_bytes());
    for (const Temporary& t : program.temporaries()) {
      run.addresses[t.slot] = static_cast<std::byte*>(temporaries->address()) + t.offset;
    }
  }
  for (const Launch& launch : program.launches()) {
    for (const int32_t slot : launch.allocate) {
      const int64_t bytes = program.bytes_of(slot);
      const int32_t reused = allocation.dropped.empty() ? -1 : allocation.find_dropped(bytes);
      BlockRef block = reused >= 0 ? std::move(allocation.dropped[reused].block) : memory_.allocate(bytes);
      run.addresses[slot] = block->address();
      submission.slots[slot] = std::move(block);
      allocation.made.push_back(slot);
      allocation.reused.push_back(reused);
    }
    for (const int32_t slot : launch.free) allocation.dropped.push_back({slot, std::move(submission.slots[slot])});
  }
  allocation.kept = true;
}

uint64_t HostStream::submit(Submission& submission) {
  require_same_process();
  const auto* program = dynamic_cast<const HostProgram*>(submission.program.get());
  if (!program) throw std::invalid_argument("submit: the program was not compiled by a host device");
  if (static_cast<int64_t>(submission.scalars.size()) < program->scalars_needed()) {
    throw std::invalid_argument("submit: scalars are missing");
  }
  submission.slots.resize(program->slots());

  std::lock_guard lock(submit_mutex_);
  const uint64_t first = submitted_.load(std::memory_order_relaxed);
  const uint64_t end = first + program->launches().size();
  // Blocks that are dropped from here on, also by this function, are in use until this program's end.
  clock_->issued.store(end, std::memory_order_release);
  std::unique_ptr<Run> run = take_run();
  try {
    allocate_slots(*program, submission, *run);
  } catch (...) {
    clock_->issued.store(first, std::memory_order_release);
    throw;
  }
  run->first = first;
  run->host_program = program;
  run->program = submission.program;
  run->scalars.swap(submission.scalars);
  run->token = submission.token;
  run->flush_denormal = submission.flush_denormal;
  run->on_end = std::move(submission.on_end);
  submitted_.store(end, std::memory_order_release);
  enqueue(std::move(run));
  return first;
}

std::unique_ptr<HostStream::Run> HostStream::take_run() {
  std::lock_guard lock(queue_mutex_);
  if (spare_runs_.empty()) return std::make_unique<Run>();
  std::unique_ptr<Run> run = std::move(spare_runs_.back());
  spare_runs_.pop_back();
  return run;
}

void HostStream::enqueue(std::unique_ptr<Run> run) {
  bool wake;
  {
    std::lock_guard lock(queue_mutex_);
    queue_.push_back(std::move(run));
    queued_.fetch_add(1, std::memory_order_release);
    wake = worker_sleeps_;
  }
  if (wake) queue_changed_->notify_one();
}

bool HostStream::wait(uint64_t number, int milliseconds) {
  if (completed() >= number) return true;
  require_same_process();
  if (spin_until(kWaiterSpin, [&] { return completed() >= number; })) return true;
  const auto end = Clock::now() + std::chrono::milliseconds(milliseconds);
  std::unique_lock lock(wait_mutex_);
  // Pairs with publish(): either the worker sees the waiter, or the waiter sees the number.
  waiters_.fetch_add(1, std::memory_order_seq_cst);
  const bool reached =
      progressed_->wait_until(lock, end, [&] { return clock_->completed.load(std::memory_order_seq_cst) >= number; });
  waiters_.fetch_sub(1, std::memory_order_seq_cst);
  return reached;
}

// ---------------------------------------------------------------------------------------------------------- Worker

void HostStream::publish(uint64_t number) {
  clock_->completed.store(number, std::memory_order_seq_cst);
  if (waiters_.load(std::memory_order_seq_cst) == 0) return;
  {
    std::lock_guard lock(wait_mutex_);
  }
  progressed_->notify_all();
}

std::unique_ptr<HostStream::Run> HostStream::next_run() {
  const auto ready = [&] { return queued_.load(std::memory_order_acquire) != taken_ || stopping_.load(); };
  spin_until(kWorkerSpin, ready);
  std::unique_lock lock(queue_mutex_);
  worker_sleeps_ = true;
  queue_changed_->wait(lock, [&] { return !queue_.empty() || stopping_.load(); });
  worker_sleeps_ = false;
  if (queue_.empty()) return nullptr;
  std::unique_ptr<Run> run = std::move(queue_.front());
  queue_.pop_front();
  ++taken_;
  return run;
}

void HostStream::work() {
  while (std::unique_ptr<Run> run = next_run()) {
    execute(*run);
    std::lock_guard lock(queue_mutex_);
    if (spare_runs_.size() < 64) spare_runs_.push_back(std::move(run));
  }
}

/// Whether all went well. The last launch is not published yet then.
bool HostStream::run_launches(Run& run, LaunchError& error) {
  if (run.token && run.token->failed.load(std::memory_order_acquire)) {
    error.error = run.token->error;
    return false;
  }
  const std::vector<Launch>& launches = run.host_program->launches();
  run.host_program->take_native_code(native_);
  for (size_t i = 0; i < launches.size(); ++i) {
    try {
      executor_.run(launches[i], run.host_program->work(i), run.addresses.data(), run.scalars.data(),
                    run.flush_denormal);
    } catch (...) {
      error = {std::current_exception(), static_cast<int>(i)};
      if (run.token) {
        run.token->error = error.error;
        run.token->failed.store(true, std::memory_order_release);
      }
      return false;
    }
    if (i + 1 < launches.size()) publish(run.first + i + 1);
  }
  return true;
}

void HostStream::execute(Run& run) {
  const size_t count = run.host_program->launches().size();
  const auto begin = Clock::now();
  LaunchError error;
  const bool ok = run_launches(run, error);
  const auto took = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin);
  busy_ns_.fetch_add(took.count(), std::memory_order_relaxed);
  // The end is told before it is published, so that who sees the number also sees the error.
  if (run.on_end) run.on_end(ok ? nullptr : &error);
  run.on_end = nullptr;
  run.program.reset();
  run.token.reset();
  error.error = nullptr;
  if (count > 0) publish(run.first + count);
  clock_->run_done_actions();
}

}  // namespace ae::device::host
