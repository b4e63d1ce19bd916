#include "device/host/native_tier.h"

#include <unistd.h>

#include <chrono>
#include <stdexcept>

#include "device/host/run_planner.h"

namespace ae::device::host {
namespace {

constexpr auto kIdle = std::chrono::seconds(5);  // without work, after which the compiler's process is ended

}  // namespace

NativeTier::~NativeTier() {
  if (!thread_) return;
  if (process_ != getpid()) {  // a forked child: the thread is the parent's
    (void)thread_.release();
    (void)changed_.release();
    return;
  }
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_->notify_all();
  thread_->join();
}

void NativeTier::request(std::shared_ptr<const TileCode> code, bool rows) {
  if (mode_ == Mode::off || code->native_ready(rows)) return;
  if (mode_ == Mode::immediately) return compile(*code, rows);
  std::lock_guard lock(mutex_);
  queue_.push_back({code, rows});
  if (!thread_) {
    process_ = getpid();
    thread_ = std::make_unique<std::thread>([this] { work(); });
  }
  changed_->notify_all();
}

void NativeTier::work() {
  std::unique_lock lock(mutex_);
  const auto has_work = [&] { return stopping_ || !queue_.empty(); };
  while (true) {
    if (!changed_->wait_for(lock, kIdle, has_work)) {
      compiler_.reset();
      changed_->wait(lock, has_work);
    }
    if (stopping_) return;
    const Request request = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    if (const auto code = request.code.lock()) compile(*code, request.rows);
    lock.lock();
  }
}

void NativeTier::compile(const TileCode& code, bool rows) {
  if (code.native_ready(rows)) return;
  code.set_native(rows, try_to_compile(code, rows));
  generation_.fetch_add(1, std::memory_order_acq_rel);
}

std::shared_ptr<const TileCode> NativeTier::try_to_compile(const TileCode& code, bool rows) {
  if (!compiler_) {
    if (starts_left_ == 0) return nullptr;
    compiler_ = native::CompilerProcess::start();
    if (!compiler_) {
      starts_left_ = 0;
      return nullptr;
    }
  }
  try {
    return compile_runs(code, rows, *compiler_);
  } catch (const std::runtime_error&) {
    // The process may be gone; it gets a few more chances.
    compiler_.reset();
    --starts_left_;
    return nullptr;
  }
}

}  // namespace ae::device::host
