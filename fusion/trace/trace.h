// The trace: operators in program order, encoded as a flat stream of words. The words are the trace's key: two traces
// with equal words do the same computation on the same geometry, so a known plan is found by comparing memory.
//
// A node is encoded as
//   header   opcode:16 common:8 rank:8 inputs:8 outputs:8 attributes:8 flags:8
//   [reduced mask]                                     reduce operators only
//   sizes[rank]                                        pointwise and reduce: the node's shape
//   attributes                                         library: the last one is the number of its scalars
//   inputs, then outputs, each
//     scalar   kScalarBuffer:32 dtype:8 rank:8         the value is the next one in `scalars`, or two of a complex one
//     access   buffer:32 dtype:8 rank:8, offset, [sizes[rank], library only] strides[rank]
// Offsets and strides count elements. Scalars' values are arguments, not part of the words.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "device/dtype.h"
#include "fusion/ops/opcode.h"
#include "fusion/trace/buffer.h"

namespace ae::fusion {

inline constexpr uint32_t kScalarBuffer = 0xffffffff;
inline constexpr uint8_t kFenceFlag = 1;  // the operator can fail on data: nothing is moved across it

/// Words of `Trace::scalars` that a scalar takes: a complex one has its real and its imaginary part there.
constexpr uint32_t scalar_words(DType dtype) { return is_complex(dtype) ? 2 : 1; }

/// One operand of a node, decoded. Pointers go into the trace's words.
struct AccessView {
  bool is_scalar = false;
  DType dtype = DType::kF32;
  uint32_t buffer = kScalarBuffer;  // index into the trace's buffers
  uint32_t scalar = 0;              // index into the trace's scalars (its first)
  int rank = 0;
  int64_t offset = 0;
  const int64_t* sizes = nullptr;  // the node's sizes, or the access's own (library)
  const int64_t* strides = nullptr;
};

/// Bytes that an operand goes over, each place of memory counted once.
int64_t bytes_of(const AccessView& access);

/// One node, decoded.
struct NodeView {
  Opcode opcode = Opcode::copy;
  DType common = DType::kF32;
  bool fence = false;
  int rank = 0;
  uint32_t reduced = 0;
  const int64_t* sizes = nullptr;
  std::span<const int64_t> attributes;
  std::vector<AccessView> inputs, outputs;
  uint32_t first_scalar = 0;  // index of the node's first scalar
  size_t words = 0;           // length of the encoding

  /// Decodes the node at `words`; `first_scalar` is the number of scalars of the nodes before it.
  static NodeView decode(const uint64_t* words, uint32_t first_scalar);
};

/// A list of words that grows by whole pieces: recording checks its capacity once for each.
class Words {
 public:
  Words() = default;
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;

  size_t size() const noexcept { return static_cast<size_t>(end_ - begin_.get()); }
  bool empty() const noexcept { return size() == 0; }
  const uint64_t* data() const noexcept { return begin_.get(); }
  const uint64_t* begin() const noexcept { return begin_.get(); }
  const uint64_t* end() const noexcept { return end_; }
  uint64_t& operator[](size_t i) noexcept { return begin_[i]; }
  uint64_t operator[](size_t i) const noexcept { return begin_[i]; }
  operator std::vector<uint64_t>() const { return {begin(), end()}; }  // NOLINT: implicit

  /// Adds `count` words, for the caller to set.
  uint64_t* extend(size_t count) {
    if (static_cast<size_t>(limit_ - end_) < count) [[unlikely]]
      grow(count);
    return std::exchange(end_, end_ + count);
  }
  /// Keeps the first `size` words, and the capacity.
  void truncate(size_t size) noexcept { end_ = begin_.get() + size; }

 private:
  void grow(size_t count);
  std::unique_ptr<uint64_t[]> begin_;
  uint64_t* end_ = nullptr;
  uint64_t* limit_ = nullptr;
};

class Trace {
 public:
  Trace() { epoch_ = next_epoch(); }

  size_t size() const noexcept { return starts.size(); }
  bool empty() const noexcept { return starts.empty(); }
  uint64_t epoch() const noexcept { return epoch_; }

  /// Index of `buffer` in this trace; it is added at its first use.
  uint32_t index_of(Buffer* buffer) {
    if (buffer->trace_epoch != epoch_) [[unlikely]] {
      buffer->trace_epoch = epoch_;
      buffer->trace_index = static_cast<uint32_t>(buffers.size());
      buffer->retain_by_trace();
      buffers.push_back(BufferRef::adopt(buffer));
    }
    return buffer->trace_index;
  }
  bool uses(const Buffer* buffer) const noexcept { return buffer->trace_epoch == epoch_; }

  /// Forgets everything and starts a new epoch. Keeps capacity.
  void clear();

  Words words;
  std::vector<uint32_t> starts;  // first word of each node
  std::vector<uint64_t> scalars;
  std::vector<BufferRef> buffers;

 private:
  static uint64_t next_epoch();
  uint64_t epoch_;
};

/// Bits of a double, as scalars of floating dtypes are passed.
inline uint64_t scalar_word(double value) {
  uint64_t word;
  std::memcpy(&word, &value, sizeof word);
  return word;
}
inline uint64_t scalar_word(int64_t value) { return static_cast<uint64_t>(value); }

/// Appends one node to a trace: attributes first, then inputs, then outputs, then finish(). Without finish() the node
/// is taken back.
class NodeWriter {
 public:
  NodeWriter(Trace& trace, Opcode opcode, DType common, int rank = 0, const int64_t* sizes = nullptr,
             uint32_t reduced = 0)
      : trace_(trace), start_(trace.words.size()), scalars_(trace.scalars.size()), rank_(rank) {
    header_ = static_cast<uint64_t>(opcode) | static_cast<uint64_t>(common) << 16 | static_cast<uint64_t>(rank) << 24;
    const bool reduces = kind_of(opcode) == OpKind::reduce;
    uint64_t* at = trace_.words.extend(1 + static_cast<size_t>(reduces) + static_cast<size_t>(rank)) + 1;
    if (reduces) *at++ = reduced;
    put(at, sizes, rank);
  }
  NodeWriter(const NodeWriter&) = delete;
  NodeWriter& operator=(const NodeWriter&) = delete;
  ~NodeWriter() {
    if (!finished_) {
      trace_.words.truncate(start_);
      trace_.scalars.resize(scalars_);
    }
  }

  void attribute(int64_t value) {
    *trace_.words.extend(1) = static_cast<uint64_t>(value);
    header_ += uint64_t{1} << 48;
  }
  void fence() { header_ |= uint64_t{kFenceFlag} << 56; }
  void scalar(DType dtype, uint64_t word, uint64_t imaginary = 0) {
    *trace_.words.extend(1) = uint64_t{kScalarBuffer} | static_cast<uint64_t>(dtype) << 32;
    trace_.scalars.push_back(word);
    if (is_complex(dtype)) trace_.scalars.push_back(imaginary);
    header_ += uint64_t{1} << 32;
  }
  /// A scalar that only a library operator reads: it is no input of its own.
  void library_scalar(uint64_t word) { trace_.scalars.push_back(word); }

  /// Pointwise and reduce operators: strides over the node's shape.
  void input(Buffer* buffer, DType dtype, int64_t offset, const int64_t* strides) {
    access(buffer, dtype, rank_, offset, nullptr, strides);
    header_ += uint64_t{1} << 32;
  }
  void output(Buffer* buffer, DType dtype, int64_t offset, const int64_t* strides) {
    buffer->written_epoch = trace_.epoch();
    access(buffer, dtype, rank_, offset, nullptr, strides);
    header_ += uint64_t{1} << 40;
  }
  /// Library operators: each access has its own shape.
  void input(Buffer* buffer, DType dtype, int rank, int64_t offset, const int64_t* sizes, const int64_t* strides) {
    access(buffer, dtype, rank, offset, sizes, strides);
    header_ += uint64_t{1} << 32;
  }
  void output(Buffer* buffer, DType dtype, int rank, int64_t offset, const int64_t* sizes, const int64_t* strides) {
    buffer->written_epoch = trace_.epoch();
    access(buffer, dtype, rank, offset, sizes, strides);
    header_ += uint64_t{1} << 40;
  }
  /// Where the node begins in the trace.
  size_t first_word() const { return start_; }
  void finish() {
    trace_.words[start_] = header_;
    trace_.starts.push_back(static_cast<uint32_t>(start_));
    finished_ = true;
  }

 private:
  static uint64_t* put(uint64_t* at, const int64_t* values, int count) {
    for (int i = 0; i < count; ++i) *at++ = static_cast<uint64_t>(values[i]);
    return at;
  }
  void access(Buffer* buffer, DType dtype, int rank, int64_t offset, const int64_t* sizes, const int64_t* strides) {
    uint64_t* at = trace_.words.extend(2 + static_cast<size_t>(sizes ? 2 * rank : rank));
    *at++ = uint64_t{trace_.index_of(buffer)} | static_cast<uint64_t>(dtype) << 32 | static_cast<uint64_t>(rank) << 40;
    *at++ = static_cast<uint64_t>(offset);
    if (sizes) at = put(at, sizes, rank);
    put(at, strides, rank);
  }

  Trace& trace_;
  size_t start_, scalars_;
  int rank_;
  uint64_t header_;
  bool finished_ = false;
};

}  // namespace ae::fusion
