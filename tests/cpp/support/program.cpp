#include "tests/cpp/support/program.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "device/host/host_device.h"
#include "fusion/partition/finish.h"
#include "fusion/partition/partition.h"

namespace ae::fusion::testing {

namespace {

std::vector<int64_t> row_major(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t step = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = step;
    step *= std::max<int64_t>(1, sizes[d]);
  }
  return strides;
}

template <class T>
std::vector<char> bytes_of(const std::vector<T>& values) {
  std::vector<char> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// The test library: all operands are 1-d and contiguous; the shape is the first input's.
class TestCall final : public device::LibraryCall {
 public:
  explicit TestCall(const NodeView& node)
      : id_(static_cast<int>(node.attributes[0])),
        count_(node.inputs[0].sizes[0]),
        input_(node.inputs[0].offset),
        output_(node.outputs[0].offset),
        first_output_(node.inputs.size()) {}
  int pieces() const override { return id_ == kReverseAdd ? 2 : 1; }
  void run(int piece, void* const* addresses, const uint64_t* scalars) const override {
    const float* a = static_cast<const float*>(addresses[0]) + input_;
    float* b = static_cast<float*>(addresses[first_output_]) + output_;
    const int64_t begin = piece * (count_ / 2), end = pieces() == 1 || piece == 1 ? count_ : count_ / 2;
    if (id_ == kSlowCopy) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    double number = 0;
    if (id_ == kAddInPlace) std::memcpy(&number, scalars, sizeof number);
    for (int64_t i = begin; i < end; ++i) {
      if (id_ == kReverseAdd) b[i] = 2 * a[i] + a[count_ - 1 - i];
      if (id_ == kAddInPlace) b[i] = a[i] + static_cast<float>(number);
      if (id_ == kCheckedCopy && a[i] < 0) throw std::runtime_error("negative");
      if (id_ == kCheckedCopy || id_ == kSlowCopy) b[i] = a[i];
    }
  }

 private:
  int id_;
  int64_t count_, input_, output_;
  size_t first_output_;
};

/// Runs a trace of one operator over host memory.
void interpret_one(const Trace& trace, const std::vector<BufferNeed>& needs, const std::vector<char*>& memory) {
  Partitioner partitioner(trace, needs);
  partitioner.run();
  find_needed(partitioner, needs);
  std::vector<uint64_t> scalars = trace.scalars;
  scalars.insert(scalars.end(), partitioner.constants.words().begin(), partitioner.constants.words().end());
  for (const LaunchState& launch : partitioner.launches) {
    if (launch.library) {
      const NodeView& node = partitioner.nodes[launch.node];
      std::vector<void*> addresses;
      for (const auto* operands : {&node.inputs, &node.outputs})
        for (const AccessView& operand : *operands) addresses.push_back(memory[operand.buffer]);
      const TestCall call(node);
      for (int piece = 0; piece < call.pieces(); ++piece) call.run(piece, addresses.data(), scalars.data());
    }
    for (const SegmentState& segment : launch.segments) {
      const FinishedSegment finished = finish_segment(segment, partitioner.writes);
      if (const std::string wrong = verify(finished.kernel); !wrong.empty()) throw std::logic_error(wrong);
      std::vector<InterpreterOperand> operands;
      for (const device::SegmentOperand& operand : finished.segment.operands)
        operands.push_back({operand.slot < 0 ? nullptr : memory[operand.slot], operand.view});
      std::vector<uint64_t> words;
      for (int32_t position : finished.segment.scalars) words.push_back(scalars[position]);
      interpret(finished.kernel, finished.segment.space, operands, words);
    }
  }
}

bool uses(const Op& op, int buffer) {
  for (const Input& input : op.inputs)
    if (!input.is_number && input.view.buffer == buffer) return true;
  for (const View& output : op.outputs)
    if (output.buffer == buffer) return true;
  return false;
}

}  // namespace

Input::Input(double value, DType dtype)
    : is_number(true),
      dtype(dtype),
      word(is_floating(dtype) ? scalar_word(value) : scalar_word(static_cast<int64_t>(value))) {}

// --------------------------------------------------------------------------------------------------------- Programs

int Program::buffer(const std::vector<float>& values) {
  buffers.push_back({bytes_of(values)});
  dtypes.push_back(DType::kF32);
  return static_cast<int>(buffers.size()) - 1;
}

int Program::integers(const std::vector<int64_t>& values) {
  buffers.push_back({bytes_of(values)});
  dtypes.push_back(DType::kI64);
  return static_cast<int>(buffers.size()) - 1;
}

int Program::fresh(int64_t elements, DType dtype) {
  buffers.push_back({std::vector<char>(elements * size_of(dtype)), true});
  dtypes.push_back(dtype);
  return static_cast<int>(buffers.size()) - 1;
}

View Program::dense(int buffer, const std::vector<int64_t>& sizes, int64_t offset) const {
  return {buffer, dtypes[buffer], offset, row_major(sizes), {}};
}

View Program::view(int buffer, std::vector<int64_t> strides, int64_t offset) const {
  return {buffer, dtypes[buffer], offset, std::move(strides), {}};
}

Op& Program::add(Opcode opcode, const std::vector<int64_t>& sizes, std::vector<Input> inputs, std::vector<View> outputs,
                 std::vector<int64_t> attributes) {
  return reduce(opcode, sizes, 0, std::move(inputs), std::move(outputs), std::move(attributes));
}

Op& Program::reduce(Opcode opcode, const std::vector<int64_t>& sizes, uint32_t reduced, std::vector<Input> inputs,
                    std::vector<View> outputs, std::vector<int64_t> attributes) {
  ops.push_back(
      {opcode, DType::kF32, sizes, reduced, std::move(inputs), std::move(outputs), std::move(attributes), {}});
  return ops.back();
}

Op& Program::library(int id, std::vector<View> inputs, std::vector<View> outputs, std::vector<double> scalars) {
  Op op;
  op.opcode = Opcode::library;
  for (View& view : inputs) op.inputs.push_back(std::move(view));
  op.outputs = std::move(outputs);
  op.attributes = {id};
  op.library_scalars = std::move(scalars);
  ops.push_back(std::move(op));
  return ops.back();
}

// -------------------------------------------------------------------------------------------------------- Recording

void write_op(const Op& op, const std::vector<BufferRef>& buffers, NodeWriter& writer) {
  const bool library = op.opcode == Opcode::library;
  for (int64_t attribute : op.attributes) writer.attribute(attribute);
  if (library) writer.attribute(static_cast<int64_t>(op.library_scalars.size()));
  if (op.fence) writer.fence();
  for (double number : op.library_scalars) writer.library_scalar(scalar_word(number));
  for (const Input& input : op.inputs) {
    const View& view = input.view;
    if (input.is_number)
      writer.scalar(input.dtype, input.word);
    else if (library)
      writer.input(buffers[view.buffer].get(), view.dtype, static_cast<int>(view.sizes.size()), view.offset,
                   view.sizes.data(), view.strides.data());
    else
      writer.input(buffers[view.buffer].get(), view.dtype, view.offset, view.strides.data());
  }
  for (const View& view : op.outputs) {
    if (library)
      writer.output(buffers[view.buffer].get(), view.dtype, static_cast<int>(view.sizes.size()), view.offset,
                    view.sizes.data(), view.strides.data());
    else
      writer.output(buffers[view.buffer].get(), view.dtype, view.offset, view.strides.data());
  }
}

TracedProgram::TracedProgram(const Program& program) {
  for (const ProgramBuffer& buffer : program.buffers)
    buffers.push_back(BufferRef::adopt(new Buffer(static_cast<int64_t>(buffer.bytes.size()))));
  for (const Op& op : program.ops) {
    NodeWriter writer(trace, op.opcode, op.common, static_cast<int>(op.sizes.size()), op.sizes.data(), op.reduced);
    write_op(op, buffers, writer);
    writer.finish();
  }
  needs.resize(trace.buffers.size());
  for (size_t b = 0; b < buffers.size(); ++b) {
    const ProgramBuffer& buffer = program.buffers[b];
    if (trace.uses(buffers[b].get()))
      needs[buffers[b]->trace_index] = {buffer.visible, !buffer.fresh, buffers[b]->nbytes};
  }
}

std::vector<BufferRef> make_buffers(const Program& program, device::Device& device) {
  std::vector<BufferRef> buffers;
  for (const ProgramBuffer& from : program.buffers) {
    const auto nbytes = static_cast<int64_t>(from.bytes.size());
    buffers.push_back(BufferRef::adopt(new Buffer(nbytes)));
    if (from.fresh || nbytes == 0) continue;
    buffers.back()->block = device.copy_from_host(from.bytes.data(), nbytes);
  }
  return buffers;
}

void record(Recorder& recorder, const Op& op, const std::vector<BufferRef>& buffers) {
  Recorder::Node node(recorder, op.opcode, op.common, static_cast<int>(op.sizes.size()), op.sizes.data(), op.reduced);
  for (const View& output : op.outputs) node.makes(*buffers[output.buffer].get());
  write_op(op, buffers, node.writer());
  node.commit();
}

Contents read_all(Recorder& recorder, const Program& program, const std::vector<BufferRef>& buffers) {
  Contents contents(buffers.size());
  for (size_t b = 0; b < buffers.size(); ++b)
    if (program.buffers[b].visible && buffers[b]->nbytes > 0) contents[b] = read<char>(recorder, *buffers[b].get());
  return contents;
}

Contents run(const Program& program, Recorder& recorder, device::Device& device, const std::vector<bool>& cuts) {
  const std::vector<BufferRef> buffers = make_buffers(program, device);
  for (size_t i = 0; i < program.ops.size(); ++i) {
    record(recorder, program.ops[i], buffers);
    for (size_t b = 0; b < buffers.size(); ++b) {
      bool later = program.buffers[b].visible;
      for (size_t j = i + 1; j < program.ops.size(); ++j) later |= uses(program.ops[j], static_cast<int>(b));
      if (!later) buffers[b]->visible = false;
    }
    if (i < cuts.size() && cuts[i]) recorder.flush(FlushReason::value_read);
  }
  recorder.flush(FlushReason::value_read);
  return read_all(recorder, program, buffers);
}

// ----------------------------------------------------------------------------------------------------------- Oracle

Contents interpret_program(const Program& program) {
  Contents memory;
  for (const ProgramBuffer& buffer : program.buffers) memory.push_back(buffer.bytes);
  for (const Op& op : program.ops) {
    Program one;
    one.buffers = program.buffers;
    for (ProgramBuffer& buffer : one.buffers) buffer.visible = true;
    one.ops = {op};
    TracedProgram traced(one);
    std::vector<char*> addresses(traced.trace.buffers.size());
    for (size_t b = 0; b < memory.size(); ++b)
      if (traced.trace.uses(traced.buffers[b].get())) addresses[traced.buffers[b]->trace_index] = memory[b].data();
    interpret_one(traced.trace, traced.needs, addresses);
  }
  for (size_t b = 0; b < memory.size(); ++b)
    if (!program.buffers[b].visible) memory[b].clear();
  return memory;
}

LibraryResolver test_library() {
  return [](const NodeView& node) { return std::make_shared<TestCall>(node); };
}

device::Device& host_device(int threads) {
  constexpr auto kTiles = device::host::NativeTier::Mode::off;
  static const auto one = device::host::make_host_device({1, {}, kTiles}),
                    two = device::host::make_host_device({2, {}, kTiles});
  return threads == 1 ? *one : *two;
}

device::Device& native_host_device() {
  static const auto device = device::host::make_host_device({2, {}, device::host::NativeTier::Mode::immediately});
  return *device;
}

device::conformance::FunctionalDevice& functional_device() {
  static const auto device = device::conformance::make_functional_device();
  return *device;
}

// ------------------------------------------------------------------------------------------------------------ Texts

std::string print(const Program& program) {
  std::ostringstream out;
  const auto list = [&](const std::vector<int64_t>& values) {
    out << "[";
    for (size_t i = 0; i < values.size(); ++i) out << (i ? "," : "") << values[i];
    out << "]";
  };
  const auto operand = [&](const View& view) {
    out << " b" << view.buffer << ":" << name_of(view.dtype) << "+" << view.offset;
    list(view.strides);
  };
  for (size_t b = 0; b < program.buffers.size(); ++b) {
    const ProgramBuffer& buffer = program.buffers[b];
    out << "b" << b << ": " << buffer.bytes.size() << " bytes" << (buffer.fresh ? " fresh" : "")
        << (buffer.visible ? "" : " hidden") << "\n";
  }
  for (const Op& op : program.ops) {
    out << name_of(op.opcode) << "." << name_of(op.common) << " ";
    list(op.sizes);
    out << " reduced " << op.reduced << (op.fence ? " fence" : "") << " attributes ";
    list(op.attributes);
    for (const Input& input : op.inputs) {
      if (input.is_number)
        out << " " << name_of(input.dtype) << "#" << input.word;
      else
        operand(input.view);
    }
    out << " ->";
    for (const View& output : op.outputs) operand(output);
    out << "\n";
  }
  return out.str();
}

namespace {

bool is_nan(DType dtype, const char* at) {
  uint16_t half;
  float single;
  double twice;
  switch (dtype) {
    case DType::kF16: std::memcpy(&half, at, 2); return (half & 0x7fff) > 0x7c00;
    case DType::kBF16: std::memcpy(&half, at, 2); return (half & 0x7fff) > 0x7f80;
    case DType::kF32: std::memcpy(&single, at, 4); return std::isnan(single);
    case DType::kF64: std::memcpy(&twice, at, 8); return std::isnan(twice);
    default: return false;
  }
}

}  // namespace

std::string difference(const Program& program, const Contents& expected, const Contents& actual) {
  for (size_t b = 0; b < expected.size(); ++b) {
    const DType dtype = program.dtypes[b];
    const int64_t size = size_of(dtype);
    if (expected[b].size() != actual[b].size()) return "buffer " + std::to_string(b) + " has another size";
    for (size_t at = 0; at + size <= expected[b].size(); at += size) {
      const char *x = expected[b].data() + at, *y = actual[b].data() + at;
      if (std::memcmp(x, y, size) == 0 || (is_nan(dtype, x) && is_nan(dtype, y))) continue;
      return "buffer " + std::to_string(b) + " differs at element " + std::to_string(at / size);
    }
  }
  return {};
}

}  // namespace ae::fusion::testing
