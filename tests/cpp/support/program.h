// Small programs for tests: operators over a handful of buffers, recorded through a Recorder or evaluated one by one
// with the reference interpreter.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fusion/flush/recorder.h"
#include "tests/conformance/functional_device.h"

namespace ae::fusion::testing {

/// A buffer as seen by one operand: strides over the operator's shape (library operators: over `sizes`).
struct View {
  int buffer = 0;
  DType dtype = DType::kF32;
  int64_t offset = 0;
  std::vector<int64_t> strides;
  std::vector<int64_t> sizes;  // library operators only
};

/// An input: a view, or a number.
struct Input {
  Input(View view) : view(std::move(view)) {}
  Input(double value, DType dtype = DType::kF32);
  Input(int64_t value, DType dtype = DType::kI64) : is_number(true), dtype(dtype), word(scalar_word(value)) {}
  bool is_number = false;
  View view;
  DType dtype = DType::kF32;
  uint64_t word = 0;
};

struct Op {
  Opcode opcode = Opcode::copy;
  DType common = DType::kF32;
  std::vector<int64_t> sizes;
  uint32_t reduced = 0;
  std::vector<Input> inputs;
  std::vector<View> outputs;
  std::vector<int64_t> attributes;
  std::vector<double> library_scalars;  // library operators; their number is appended to the attributes
  bool fence = false;
};

struct ProgramBuffer {
  std::vector<char> bytes;  // initial content
  bool fresh = false;       // has no memory before the program; the first operator that uses it writes all of it
  bool visible = true;      // can be seen at the end
};

/// Operators over buffers. The methods that add operators name dense row-major views by buffer number; the dtypes are
/// those given to `buffer`.
class Program {
 public:
  std::vector<ProgramBuffer> buffers;
  std::vector<DType> dtypes;  // by buffer: the dtype of dense views
  std::vector<Op> ops;

  /// Adds a buffer with these elements.
  int buffer(const std::vector<float>& values);
  int integers(const std::vector<int64_t>& values);
  /// Adds a buffer that has no memory yet.
  int fresh(int64_t elements, DType dtype = DType::kF32);
  /// Nobody sees the buffer after the program.
  void hide(int buffer) { buffers[buffer].visible = false; }

  View dense(int buffer, const std::vector<int64_t>& sizes, int64_t offset = 0) const;
  /// A view over sizes with given strides.
  View view(int buffer, std::vector<int64_t> strides, int64_t offset = 0) const;

  Op& add(Opcode opcode, const std::vector<int64_t>& sizes, std::vector<Input> inputs, std::vector<View> outputs,
          std::vector<int64_t> attributes = {});
  Op& reduce(Opcode opcode, const std::vector<int64_t>& sizes, uint32_t reduced, std::vector<Input> inputs,
             std::vector<View> outputs, std::vector<int64_t> attributes = {});
  Op& library(int id, std::vector<View> inputs, std::vector<View> outputs, std::vector<double> scalars = {});
};

/// Writes an operator to a trace whose buffers are `buffers`.
void write_op(const Op& op, const std::vector<BufferRef>& buffers, NodeWriter& writer);

/// A trace of the whole program over buffers of its own, and the needs that a flush would find.
struct TracedProgram {
  explicit TracedProgram(const Program& program);
  std::vector<BufferRef> buffers;
  Trace trace;
  std::vector<BufferNeed> needs;  // in the trace's order
  /// The trace's number of a program's buffer.
  int index_of(int buffer) { return static_cast<int>(trace.index_of(buffers[buffer].get())); }
};

/// Buffers of a program on a device, with their initial content.
std::vector<BufferRef> make_buffers(const Program& program, device::Device& device);

/// Records one operator.
void record(Recorder& recorder, const Op& op, const std::vector<BufferRef>& buffers);

/// Contents of the buffers' memory after everything has run; empty for hidden buffers.
using Contents = std::vector<std::vector<char>>;
Contents read_all(Recorder& recorder, const Program& program, const std::vector<BufferRef>& buffers);
template <class T>
std::vector<T> read(Recorder& recorder, Buffer& buffer) {
  recorder.wait_for(buffer, false, FlushReason::value_read);
  std::vector<T> values(buffer.nbytes / static_cast<int64_t>(sizeof(T)));
  if (buffer.block) recorder.device().copy_to_host(buffer.block, values.data());
  return values;
}

/// Runs a program: `cuts` says after which operators to flush (shorter: not at all). A hidden buffer becomes invisible
/// after its last use.
Contents run(const Program& program, Recorder& recorder, device::Device& device, const std::vector<bool>& cuts = {});

/// Evaluates the operators one by one with the reference interpreter.
Contents interpret_program(const Program& program);

/// The library operators of tests (see program.cpp), for Recorder::Hooks and make_plan.
LibraryResolver test_library();
/// b[i] = 2 * a[i] + a[n-1-i] over f32; in two pieces.
inline constexpr int kReverseAdd = 0;
/// a[i] += the operator's scalar, over f32; a is input and output.
inline constexpr int kAddInPlace = 1;
/// b[i] = a[i] over f32, but throws std::runtime_error when an element of a is negative.
inline constexpr int kCheckedCopy = 2;
/// b[i] = a[i] over f32, after 200 ms.
inline constexpr int kSlowCopy = 3;

/// Host devices with one and two threads, made once for all tests.
device::Device& host_device(int threads = 2);
/// A host device that compiles all its kernels to native code before they run, where there is a compiler.
device::Device& native_host_device();
/// A device whose buffers are immutable, made once for all tests.
device::conformance::FunctionalDevice& functional_device();

/// A short text of the program for failure messages.
std::string print(const Program& program);

/// Where two contents differ (NaNs are equal); empty text if nowhere.
std::string difference(const Program& program, const Contents& expected, const Contents& actual);

}  // namespace ae::fusion::testing
