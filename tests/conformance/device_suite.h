// What every device must do, as tests over device.h alone. A device joins by adding a DeviceMaker to the list in
// device_suite_test.cpp.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <ostream>
#include <string>
#include <vector>

#include "device/device.h"

namespace ae::device::conformance {

struct DeviceMaker {
  std::string name;
  std::function<std::unique_ptr<Device>()> make;
  friend std::ostream& operator<<(std::ostream& out, const DeviceMaker& maker) { return out << maker.name; }
};

/// Host code as a launch.
class Call final : public LibraryCall {
 public:
  using Body = std::function<void(int piece, void* const* addresses, const uint64_t* scalars)>;
  explicit Call(Body body, int pieces = 1) : body_(std::move(body)), pieces_(pieces) {}
  int pieces() const override { return pieces_; }
  void run(int piece, void* const* addresses, const uint64_t* scalars) const override {
    body_(piece, addresses, scalars);
  }

 private:
  Body body_;
  int pieces_;
};

/// Holds launches back until it is opened.
class Gate {
 public:
  void open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

inline uint64_t scalar_word(double x) {
  uint64_t word;
  std::memcpy(&word, &x, 8);
  return word;
}

/// out = x * scalar 0 + scalar 1, over fp32; operands: x, out.
TileProgram multiply_add_program();
/// out = sum of x over the reduced dimensions, over fp32; operands: x, out.
TileProgram sum_program();

/// A space of one dimension and the view of a dense operand in it.
Space line(int64_t n);
OperandView dense_line();

class DeviceSuite : public ::testing::TestWithParam<DeviceMaker> {
 protected:
  void SetUp() override { device_ = GetParam().make(); }

  Stream& stream() { return device_->default_stream(); }

  /// A launch of multiply_add_program over n elements, with scalars from `scalar` on.
  Segment multiply_add(int64_t n, int32_t x, int32_t out, int32_t scalar = 0);
  Segment sum(int64_t n, int32_t x, int32_t out);
  LaunchSpec call(Call::Body body, std::vector<int32_t> slots, int pieces = 1);

  /// Runs one program and waits for its end; slots come back.
  std::vector<BlockRef> run(ProgramSpec spec, std::vector<BlockRef> slots, std::vector<uint64_t> scalars = {});
  void wait_all();

  /// New block with these numbers.
  BlockRef put(const std::vector<float>& numbers);
  std::vector<float> get(const BlockRef& block);

  std::unique_ptr<Device> device_;
};

}  // namespace ae::device::conformance
