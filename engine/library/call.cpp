#include "engine/library/call.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/TensorImpl.h>

#include <algorithm>

namespace ae::engine::library {

namespace {

at::ScalarType scalar_type_of(DType dtype) {
  static constexpr at::ScalarType kTypes[] = {
      at::kBool,   at::kByte, at::kChar,     at::kShort, at::kInt,    at::kLong,         at::kUInt16,       at::kUInt32,
      at::kUInt64, at::kHalf, at::kBFloat16, at::kFloat, at::kDouble, at::kComplexFloat, at::kComplexDouble};
  return kTypes[static_cast<int>(dtype)];
}

}  // namespace

int64_t Operand::numel() const {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return count;
}

Operand Operand::narrow(int64_t dim, int64_t start, int64_t length) const {
  Operand part = *this;
  part.sizes[dim] = length;
  part.offset += start * strides[dim];
  return part;
}

Operand Operand::transpose(int64_t a, int64_t b) const {
  Operand turned = *this;
  std::swap(turned.sizes[a], turned.sizes[b]);
  std::swap(turned.strides[a], turned.strides[b]);
  return turned;
}

Operand Operand::expand(const Sizes& target) const {
  Operand wide = *this;
  wide.sizes = target;
  wide.strides.assign(target.size(), 0);
  const size_t missing = target.size() - sizes.size();
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] == target[missing + d]) wide.strides[missing + d] = strides[d];
  return wide;
}

Operand operand_of(const fusion::AccessView& access) {
  Operand operand;
  operand.dtype = scalar_type_of(access.dtype);
  operand.sizes.assign(access.sizes, access.sizes + access.rank);
  operand.strides.assign(access.strides, access.strides + access.rank);
  operand.offset = access.offset;
  return operand;
}

at::Tensor alias(void* base, const Operand& operand) {
  const auto item = static_cast<int64_t>(c10::elementSize(operand.dtype));
  int64_t extent = 1;
  for (size_t d = 0; d < operand.sizes.size(); ++d) {
    if (operand.sizes[d] == 0) {
      extent = 0;
      break;
    }
    extent += (operand.sizes[d] - 1) * operand.strides[d];
  }
  char* data = static_cast<char*>(base) + (base ? operand.offset * item : 0);
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), extent * item,
                                                       at::DataPtr(data, at::kCPU), nullptr, false);
  auto impl = c10::make_intrusive<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU),
                                                   c10::scalarTypeToTypeMeta(operand.dtype));
  impl->set_sizes_and_strides(operand.sizes, operand.strides);
  return at::Tensor(std::move(impl));
}

std::span<const int64_t> attributes_of(const fusion::NodeView& node) {
  return node.attributes.subspan(2, node.attributes.size() - 3);
}

namespace {

class AtenCall final : public device::LibraryCall {
 public:
  AtenCall(std::vector<Piece> pieces, Body body) : pieces_(std::move(pieces)), body_(std::move(body)) {}
  int pieces() const override { return static_cast<int>(pieces_.size()); }
  void run(int piece, void* const* addresses, const uint64_t* scalars) const override {
    const at::AutoDispatchBelowADInplaceOrView no_autograd;
    const Piece& operands = pieces_[piece];
    c10::SmallVector<at::Tensor, 8> tensors;
    for (size_t i = 0; i < operands.size(); ++i) tensors.push_back(alias(addresses[i], operands[i]));
    body_({tensors.data(), tensors.size()}, Scalars(scalars));
  }

 private:
  const std::vector<Piece> pieces_;
  const Body body_;
};

}  // namespace

Piece whole(const fusion::NodeView& node) {
  Piece piece;
  for (const fusion::AccessView& input : node.inputs) piece.push_back(operand_of(input));
  for (const fusion::AccessView& output : node.outputs) piece.push_back(operand_of(output));
  return piece;
}

std::shared_ptr<const device::LibraryCall> make_call(std::vector<Piece> pieces, Body body) {
  return std::make_shared<AtenCall>(std::move(pieces), std::move(body));
}

Cut cut(int64_t extent, int pieces, int64_t unit) {
  Cut result{extent, 1, extent};
  if (pieces <= 1 || extent <= unit) return result;
  const int64_t units = (extent + unit - 1) / unit;
  result.size = (units + pieces - 1) / pieces * unit;
  result.count = static_cast<int>((extent + result.size - 1) / result.size);
  return result;
}

}  // namespace ae::engine::library
