// Library calls: what a recorded library node becomes on the host device. One call is a fixed number of pieces, chosen
// from shapes and dtypes alone; each piece is one call of an ATen CPU kernel on the thread that runs it. Geometry is
// fixed when the call is made; a run makes tensors over the addresses and calls the kernel.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <bit>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "device/device.h"
#include "fusion/trace/trace.h"

namespace ae::engine::library {

using Sizes = c10::SmallVector<int64_t, 5>;

/// A tensor without its memory.
struct Operand {
  at::ScalarType dtype = at::kFloat;
  Sizes sizes, strides;
  int64_t offset = 0;  // elements from the first byte of the block

  int64_t dim() const { return static_cast<int64_t>(sizes.size()); }
  int64_t numel() const;
  Operand narrow(int64_t dim, int64_t start, int64_t length) const;
  Operand transpose(int64_t a, int64_t b) const;
  /// Broadcast to `target`, right-aligned.
  Operand expand(const Sizes& target) const;
  bool operator==(const Operand&) const = default;
};

Operand operand_of(const fusion::AccessView& access);
/// A CPU tensor over `base` that owns nothing.
at::Tensor alias(void* base, const Operand& operand);

/// The node's attributes as they were given to record_library.
std::span<const int64_t> attributes_of(const fusion::NodeView& node);

/// Scalars of a run, as they were given to record_library.
class Scalars {
 public:
  explicit Scalars(const uint64_t* words) : words_(words) {}
  double operator[](int i) const { return std::bit_cast<double>(words_[i]); }

 private:
  const uint64_t* words_;
};

/// Operands of one piece: the node's inputs, then its outputs.
using Piece = std::vector<Operand>;
/// Runs one piece; `tensors` in the order of its operands.
using Body = std::function<void(std::span<at::Tensor> tensors, Scalars scalars)>;

/// All operands of a node, whole: a call of one piece.
Piece whole(const fusion::NodeView& node);
std::shared_ptr<const device::LibraryCall> make_call(std::vector<Piece> pieces, Body body);

/// How an extent is cut into pieces.
struct Cut {
  int64_t extent = 1;
  int count = 1;
  int64_t size = 1;  // of all pieces but the last
  int64_t start(int piece) const { return piece * size; }
  int64_t length(int piece) const { return std::min(size, extent - start(piece)); }
};
/// At most `pieces` of whole multiples of `unit`; one if there is nothing to cut.
Cut cut(int64_t extent, int pieces, int64_t unit = 1);

}  // namespace ae::engine::library
