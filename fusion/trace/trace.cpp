#include "fusion/trace/trace.h"

#include <algorithm>
#include <atomic>

namespace ae::fusion {

namespace {

const int64_t* as_signed(const uint64_t* words) { return reinterpret_cast<const int64_t*>(words); }

/// Decodes one operand and returns the word after it.
const uint64_t* decode_access(const uint64_t* p, bool own_sizes, const int64_t* node_sizes, uint32_t& next_scalar,
                              AccessView& out) {
  const uint64_t header = *p++;
  out.buffer = static_cast<uint32_t>(header);
  out.dtype = static_cast<DType>(header >> 32 & 0xff);
  out.rank = static_cast<int>(header >> 40 & 0xff);
  if (out.buffer == kScalarBuffer) {
    out.is_scalar = true;
    out.scalar = next_scalar;
    next_scalar += scalar_words(out.dtype);
    return p;
  }
  out.offset = static_cast<int64_t>(*p++);
  out.sizes = node_sizes;
  if (own_sizes) {
    out.sizes = as_signed(p);
    p += out.rank;
  }
  out.strides = as_signed(p);
  return p + out.rank;
}

}  // namespace

int64_t bytes_of(const AccessView& access) {
  int64_t bytes = size_of(access.dtype);
  for (int d = 0; d < access.rank; ++d)
    if (access.sizes[d] == 1 || access.strides[d] != 0) bytes *= access.sizes[d];
  return bytes;
}

NodeView NodeView::decode(const uint64_t* words, uint32_t first_scalar) {
  NodeView node;
  const uint64_t* p = words;
  const uint64_t header = *p++;
  node.opcode = static_cast<Opcode>(header & 0xffff);
  node.common = static_cast<DType>(header >> 16 & 0xff);
  node.rank = static_cast<int>(header >> 24 & 0xff);
  node.fence = (header >> 56 & kFenceFlag) != 0;
  node.first_scalar = first_scalar;
  if (kind_of(node.opcode) == OpKind::reduce) node.reduced = static_cast<uint32_t>(*p++);
  node.sizes = as_signed(p);
  p += node.rank;
  const auto attributes = static_cast<size_t>(header >> 48 & 0xff);
  node.attributes = {as_signed(p), attributes};
  p += attributes;
  node.inputs.resize(header >> 32 & 0xff);
  node.outputs.resize(header >> 40 & 0xff);
  const bool own_sizes = kind_of(node.opcode) == OpKind::library;
  for (AccessView& access : node.inputs) p = decode_access(p, own_sizes, node.sizes, first_scalar, access);
  for (AccessView& access : node.outputs) p = decode_access(p, own_sizes, node.sizes, first_scalar, access);
  node.words = static_cast<size_t>(p - words);
  return node;
}

void Words::grow(size_t count) {
  const size_t size = this->size();
  const size_t capacity = std::max(size + count, 2 * static_cast<size_t>(limit_ - begin_.get()));
  auto words = std::make_unique_for_overwrite<uint64_t[]>(capacity);
  std::copy(begin(), end(), words.get());
  begin_ = std::move(words);
  end_ = begin_.get() + size;
  limit_ = begin_.get() + capacity;
}

void Trace::clear() {
  words.truncate(0);
  starts.clear();
  scalars.clear();
  buffers.clear();
  epoch_ = next_epoch();
}

uint64_t Trace::next_epoch() {
  static std::atomic<uint64_t> epoch{0};
  return epoch.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace ae::fusion
