#include "fusion/flush/recorder.h"

#include <algorithm>
#include <chrono>

#include "fusion/flush/cuts.h"
#include "fusion/partition/partition.h"

namespace ae::fusion {

namespace {

constexpr size_t kMaxSuccessors = 4, kRecentPlans = 16;

bool is_prefix(const Words& prefix, const std::vector<uint64_t>& words, size_t from = 0) {
  const size_t size = prefix.size();
  if (size > words.size()) return false;
  uint64_t difference = 0;  // nearly always there is none: no need to look after each word
  for (size_t i = from; i < size; ++i) difference |= prefix[i] ^ words[i];
  return difference == 0;
}

template <class T>
void put_first(std::vector<std::weak_ptr<T>>& list, const std::shared_ptr<T>& item, size_t limit) {
  std::erase_if(list, [&](const std::weak_ptr<T>& other) { return other.expired() || other.lock() == item; });
  list.insert(list.begin(), item);
  if (list.size() > limit) list.pop_back();
}

}  // namespace

Recorder::Recorder(device::Device& device, const PolicySettings& settings, Hooks hooks)
    : device_(device),
      stream_(device.default_stream()),
      hooks_(std::move(hooks)),
      settings_(settings),
      epoch_(trace_.epoch()),
      kernels_(device) {}

Recorder::~Recorder() {
  while (!stream_.wait(stream_.submitted(), 50)) {  // what is queued calls back
  }
}

int64_t Recorder::now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// ------------------------------------------------------------------------------------------------------- Recording

void Recorder::change_mode(Lock& lock) {
  if (hooks_.takes_mode && hooks_.takes_mode()) return;
  const bool on = device::flushes_denormals();
  while (flush_denormal_ != on) {  // again where another thread was faster
    Graveyard graveyard;
    flush_locked(FlushReason::mode_change, {}, graveyard);
    flush_denormal_ = on;
    lock.unlock();
    graveyard.clear();
    lock.lock();
  }
}

void Recorder::commit(Lock& lock, NodeWriter& writer, int64_t start_ns) {
  const size_t from = writer.first_word();
  writer.finish();
  ++statistics_.operators_recorded;
  const bool known = follow(from);
  const size_t node = trace_.size() - 1;
  const uint64_t epoch = trace_.epoch();
  const PolicyState state{static_cast<int64_t>(trace_.size()), bytes_held_.load(std::memory_order_relaxed),
                          followed_ && followed_->words.size() == trace_.words.size(), trace_.size() == cut_at_};
  const std::optional<FlushReason> reason = decide(settings_, state);
  if (start_ns != 0) [[unlikely]]
    statistics_.ns_recording += Node::kSampled * (now_ns() - start_ns);
  if (known && !reason) return lock.unlock();
  Graveyard graveyard;
  if (!known && hooks_.source_line) {
    lock.unlock();
    std::string line = hooks_.source_line();
    lock.lock();
    if (trace_.epoch() == epoch) {
      lines_.resize(std::max(lines_.size(), trace_.size()));
      lines_[node] = std::move(line);
    }
  }
  if (reason && trace_.epoch() == epoch) flush_locked(*reason, {}, graveyard);
  lock.unlock();
}

/// Compares the node that starts at word `from` with the plan being followed; true when its lines are known.
bool Recorder::follow(size_t from) {
  if (!followed_) return false;
  if (is_prefix(trace_.words, followed_->words, from)) return true;
  const std::shared_ptr<Plan> left = followed_;
  if (previous_)
    for (const std::weak_ptr<Plan>& successor : previous_->successors)
      if (auto plan = successor.lock(); plan && is_prefix(trace_.words, plan->words)) {
        set_followed(std::move(plan));
        return true;
      }
  set_followed(nullptr);
  lines_.assign(left->lines.begin(), left->lines.begin() + std::min(left->lines.size(), trace_.size() - 1));
  return false;
}

// -------------------------------------------------------------------------------------------------------- Flushing

void Recorder::flush(FlushReason reason) {
  const std::string line = pending() ? line_of_reader() : std::string();
  Graveyard graveyard;
  Lock lock(mutex_);
  flush_locked(reason, line, graveyard);
  lock.unlock();
}

void Recorder::flush_locked(FlushReason reason, const std::string& line, Graveyard& graveyard) {
  if (trace_.empty()) return;
  std::vector<BufferNeed> needs;
  needs.reserve(trace_.buffers.size());
  for (const BufferRef& buffer : trace_.buffers)
    needs.push_back(
        {buffer->visible.load(std::memory_order_acquire), static_cast<bool>(buffer->block), buffer->nbytes});
  const std::shared_ptr<Plan> plan = find_plan(std::move(needs));
  const bool was_idle = stream_.completed() == stream_.submitted();
  submit(plan);  // throws with the trace as it was
  if (!token_->failed.load(std::memory_order_acquire)) pass_on_failures();
  ++statistics_.flushes;
  ++statistics_.flushes_by_reason[static_cast<int>(reason)];
  if (!line.empty()) ++statistics_.flushes_by_line[{reason, line}];
  statistics_.operators_flushed += static_cast<int64_t>(plan->operators);
  statistics_.launches += static_cast<int64_t>(plan->launches.size());
  statistics_.bytes_not_written += plan->bytes_not_written;
  learn_cuts(*plan, reason, was_idle);
  start_trace(plan, graveyard);
}

std::shared_ptr<Plan> Recorder::find_plan(std::vector<BufferNeed> needs) {
  if (followed_ && followed_->words.size() == trace_.words.size() && followed_->needs == needs) {
    statistics_.operators_plan_hit += static_cast<int64_t>(followed_->operators);
    return followed_;
  }
  if (std::shared_ptr<Plan> plan = plans_.find(trace_.words, needs)) {
    statistics_.operators_plan_hit += static_cast<int64_t>(plan->operators);
    return plan;
  }
  const int64_t start = now_ns();
  std::shared_ptr<Plan> plan = make_plan(trace_, needs, kernels_, device_, hooks_.library);
  plan->lines = followed_ ? followed_->lines : lines_;
  plan->lines.resize(trace_.size());
  plans_.insert(plan);
  ++statistics_.plans_made;
  statistics_.ns_planning += now_ns() - start;
  return plan;
}

void Recorder::submit(const std::shared_ptr<Plan>& plan) {
  if (!plan->program) return;
  device::Submission submission;
  submission.program = plan->program;
  submission.slots.resize(trace_.buffers.size());
  // Only a block that nobody but the submission holds can be donated.
  const bool may_donate = !device_.capabilities().write_in_place;
  const auto hands_over = [&](size_t i) { return may_donate && (plan->uses[i].replaced || plan->uses[i].given_up); };
  for (size_t i = 0; i < trace_.buffers.size(); ++i) {
    device::BlockRef& block = trace_.buffers[i]->block;
    submission.slots[i] = hands_over(i) ? std::move(block) : block;
  }
  submission.scalars.reserve(trace_.scalars.size() + plan->constants.size());
  submission.scalars = trace_.scalars;
  submission.scalars.insert(submission.scalars.end(), plan->constants.begin(), plan->constants.end());
  submission.flush_denormal = flush_denormal_;
  submission.token = token_;
  // Buffers are remembered only while something may fail: to remember them is to keep their memory.
  const bool may_be_cancelled =
      plan->can_fail || stream_.completed() < fence_end_ || token_->failed.load(std::memory_order_acquire);
  submission.on_end = [this, plan, buffers = may_be_cancelled ? trace_.buffers : Graveyard()](
                          const device::LaunchError* error) mutable {
    if (error) note_failed(*error, plan, std::move(buffers));
  };
  uint64_t first;
  try {
    first = stream_.submit(submission);
  } catch (...) {
    for (size_t i = 0; i < trace_.buffers.size(); ++i)
      if (hands_over(i)) trace_.buffers[i]->block = std::move(submission.slots[i]);
    throw;
  }
  if (plan->can_fail) fence_end_ = first + plan->launches.size();
  for (size_t i = 0; i < trace_.buffers.size(); ++i) {
    Buffer& buffer = *trace_.buffers[i].get();
    const Plan::BufferUse& use = plan->uses[i];
    if (use.kept || use.replaced) buffer.block = std::move(submission.slots[i]);
    if (use.last_use >= 0) buffer.last_use.store(first + use.last_use + 1, std::memory_order_release);
    if (use.last_write >= 0) buffer.last_write.store(first + use.last_write + 1, std::memory_order_release);
  }
}

/// What reads a lost content has none either; what is written anew is whole again. Goes through the trace only if one
/// of its buffers has lost its content.
void Recorder::pass_on_failures() {
  const auto lost = [](const BufferRef& buffer) { return buffer->failure != nullptr; };
  if (std::none_of(trace_.buffers.begin(), trace_.buffers.end(), lost)) return;
  for (uint32_t start : trace_.starts) {
    const NodeView node = NodeView::decode(trace_.words.data() + start, 0);
    std::shared_ptr<const Failure> failure;
    for (const AccessView& input : node.inputs)
      if (!input.is_scalar && !failure) failure = trace_.buffers[input.buffer]->failure;
    for (const AccessView& output : node.outputs) {
      Buffer& buffer = *trace_.buffers[output.buffer].get();
      if (failure || bytes_of(output) >= buffer.nbytes) buffer.failure = failure;
    }
  }
}

/// Begins a new trace after `flushed`, following what came after it last time.
void Recorder::start_trace(const std::shared_ptr<Plan>& flushed, Graveyard& graveyard) {
  if (previous_) put_first(previous_->successors, flushed, kMaxSuccessors);
  put_first(recent_, std::shared_ptr<const Plan>(flushed), kRecentPlans);
  previous_ = flushed;
  set_followed(flushed->successors.empty() ? nullptr : flushed->successors.front().lock());
  clear_trace(graveyard);
}

/// Follows `plan`, and cuts where that has been learned: at its end, or inside of it.
void Recorder::set_followed(std::shared_ptr<Plan> plan) {
  followed_ = std::move(plan);
  if (!pieces_.empty())
    cut_at_ = pieces_.back();
  else if (followed_ && !followed_->pieces.empty())
    cut_at_ = followed_->pieces.front();
  else
    cut_at_ = followed_ && followed_->ends_at_cut ? followed_->operators : kNoCut;
}

void Recorder::learn_cuts(Plan& plan, FlushReason reason, bool was_idle) {
  if (reason == FlushReason::device_idle) {
    plan.ends_at_cut = true;
    if (pieces_.empty() && followed_ && !followed_->pieces.empty()) {
      whole_ = followed_;
      pieces_.assign(whole_->pieces.rbegin(), whole_->pieces.rend());
    }
    if (!pieces_.empty()) pieces_.pop_back();
    return;
  }
  pieces_.clear();
  if (const std::shared_ptr<Plan> whole = std::move(whole_))  // what came after it comes after its last piece
    for (const std::weak_ptr<Plan>& successor : whole->successors)
      if (plan.successors.size() < kMaxSuccessors) plan.successors.push_back(successor);
  if (!settings_.cuts_when_idle || plan.operators < 2 * kMinPiece || !plan.pieces.empty()) return;
  plan.idle_flushes = was_idle ? plan.idle_flushes + 1 : 0;
  if (plan.idle_flushes == kIdleFlushes) plan.pieces = choose_pieces(cut_costs(trace_, plan.launches));
}

void Recorder::clear_trace(Graveyard& graveyard) {
  std::move(trace_.buffers.begin(), trace_.buffers.end(), std::back_inserter(graveyard));
  lines_.clear();
  trace_.clear();
  epoch_.store(trace_.epoch(), std::memory_order_relaxed);
  bytes_held_.store(0, std::memory_order_relaxed);
}

// --------------------------------------------------------------------------------------------------------- Waiting

void Recorder::wait_number(uint64_t number) {
  if (stream_.completed() >= number) return;
  const int64_t start = now_ns();
  while (!stream_.wait(number, 50))
    if (hooks_.check_interrupt) hooks_.check_interrupt();
  waiting_ns_.fetch_add(now_ns() - start, std::memory_order_relaxed);
}

void Recorder::wait_for(Buffer& buffer, bool for_write, FlushReason reason) {
  const std::string line = pending() ? line_of_reader() : std::string();
  Graveyard graveyard;
  Lock lock(mutex_);
  if (for_write) buffer.known.store(0, std::memory_order_relaxed);
  if (for_write ? trace_.uses(&buffer) : buffer.written_epoch == trace_.epoch()) flush_locked(reason, line, graveyard);
  const uint64_t number = (for_write ? buffer.last_use : buffer.last_write).load(std::memory_order_acquire);
  lock.unlock();
  wait_number(number);
  lock.lock();
  std::shared_ptr<const Failure> failure = collect_failures(graveyard);
  if (buffer.failure) failure = buffer.failure;
  if (!failure && !buffer.block && buffer.nbytes > 0) {
    lock.unlock();
    device::BlockRef block = device_.allocate(buffer.nbytes);
    lock.lock();
    if (!buffer.block) buffer.block = std::move(block);
  }
  lock.unlock();
  if (failure) throw DeferredError(std::move(failure));
}

void Recorder::finish(FlushReason reason) {
  flush(reason);
  wait_number(stream_.submitted());
}

void Recorder::synchronize(FlushReason reason) {
  finish(reason);
  Graveyard graveyard;
  Lock lock(mutex_);
  std::shared_ptr<const Failure> failure = collect_failures(graveyard);
  lock.unlock();
  if (failure) throw DeferredError(std::move(failure));
}

bool Recorder::is_idle(const Buffer& buffer) const {
  Lock lock(mutex_);
  return !trace_.uses(&buffer) && stream_.completed() >= buffer.last_use.load(std::memory_order_acquire);
}

// -------------------------------------------------------------------------------------------------------- Failures

void Recorder::note_failed(const device::LaunchError& error, const std::shared_ptr<Plan>& plan,
                           std::vector<BufferRef> buffers) {
  auto failure = std::make_shared<Failure>();
  failure->error = error.error;
  if (error.launch < static_cast<int>(plan->launches.size())) {
    const uint32_t node = plan->launches[error.launch].nodes.front();
    if (node < plan->lines.size()) failure->origin = plan->lines[node];
  }
  std::lock_guard<std::mutex> lock(failed_mutex_);
  failed_.push_back({std::move(failure), plan, error.launch, std::move(buffers)});
}

std::shared_ptr<const Failure> Recorder::mark_failures(Graveyard& graveyard) {
  std::vector<Failed> failed;
  {
    std::lock_guard<std::mutex> lock(failed_mutex_);
    failed.swap(failed_);
  }
  std::shared_ptr<const Failure> unseen;
  for (Failed& one : failed) {
    if (!seen_ || one.failure->error != seen_->error) {
      seen_ = one.failure;
      if (!unseen) unseen = seen_;
    }
    for (size_t i = 0; i < one.buffers.size(); ++i) {
      const Plan::BufferUse& use = one.plan->uses[i];
      // A buffer that the failed launches should have made has no content; others keep what they held.
      if (use.kept && use.first_write >= one.launch) one.buffers[i]->failure = seen_;
    }
    std::move(one.buffers.begin(), one.buffers.end(), std::back_inserter(graveyard));
  }
  return unseen;
}

std::shared_ptr<const Failure> Recorder::collect_failures(Graveyard& graveyard) {
  const std::shared_ptr<const Failure> unseen = mark_failures(graveyard);
  if (!unseen) return nullptr;
  // What was recorded until now is cancelled with it; what comes from now on is not.
  try {
    flush_locked(FlushReason::error, {}, graveyard);
  } catch (const device::OutOfMemory&) {
    clear_trace(graveyard);
  }
  // All that is queued ends at once. It is waited for here so that all losses are known before anything new is
  // recorded.
  while (!stream_.wait(stream_.submitted(), 50)) {
  }
  mark_failures(graveyard);
  token_ = std::make_shared<device::CancelToken>();
  return unseen;
}

// ------------------------------------------------------------------------------------------------ Settings, figures

PolicySettings Recorder::settings() const {
  Lock lock(mutex_);
  return settings_;
}

void Recorder::set_settings(const PolicySettings& settings) {
  Graveyard graveyard;
  Lock lock(mutex_);
  flush_locked(FlushReason::mode_change, {}, graveyard);
  settings_ = settings;
  lock.unlock();
}

Statistics Recorder::statistics() const {
  Lock lock(mutex_);
  Statistics statistics = statistics_;
  statistics.kernels_made = kernels_.made() - kernels_before_;
  statistics.ns_executing = stream_.busy_ns() - busy_before_;
  statistics.ns_waiting = waiting_ns_.load(std::memory_order_relaxed);
  return statistics;
}

void Recorder::reset_statistics() {
  Lock lock(mutex_);
  statistics_ = {};
  kernels_before_ = kernels_.made();
  busy_before_ = stream_.busy_ns();
  waiting_ns_.store(0, std::memory_order_relaxed);
}

std::vector<std::shared_ptr<const Plan>> Recorder::recent_plans() const {
  Lock lock(mutex_);
  std::vector<std::shared_ptr<const Plan>> plans;
  for (const auto& plan : recent_)
    if (auto alive = plan.lock()) plans.push_back(std::move(alive));
  return plans;
}

size_t Recorder::pending() const {
  Lock lock(mutex_);
  return trace_.size();
}

}  // namespace ae::fusion
