#include "engine/record/known.h"

#include <ATen/ops/contiguous.h>

#include <algorithm>

#include "engine/backend/storage.h"
#include "engine/runtime.h"

namespace ae::engine {
namespace {

using fusion::Buffer;

/// Finds the range of an int64 host content, once for each content. False if the range is not known.
bool find_range(Buffer& buffer) {
  const uint8_t known = buffer.known.load(std::memory_order_relaxed);
  if (known & Buffer::kRange) return true;
  if (!(known & Buffer::kHostContent)) return false;
  wait_for(buffer, /*for_write=*/false, fusion::FlushReason::value_read);
  const auto* values = static_cast<const int64_t*>(buffer.block ? buffer.block->address() : nullptr);
  const auto count = static_cast<size_t>(buffer.nbytes) / sizeof(int64_t);
  if (!values || count == 0) return false;
  const auto [low, high] = std::minmax_element(values, values + count);
  buffer.low = *low;
  buffer.high = *high;
  buffer.known.store(known | Buffer::kRange, std::memory_order_relaxed);
  return true;
}

/// The tensor is all of its Buffer.
bool covers(const at::Tensor& tensor) {
  return static_cast<int64_t>(tensor.nbytes()) == buffer_of(tensor)->nbytes && tensor.is_non_overlapping_and_dense();
}

template <class T>
void check_each(const at::Tensor& values, int64_t low, int64_t high, c10::function_ref<void(int64_t)> fail,
                std::optional<int64_t> allowed) {
  const T* value = values.const_data_ptr<T>();
  for (int64_t i = 0; i < values.numel(); ++i)
    if ((value[i] < low || value[i] > high) && value[i] != allowed) fail(value[i]);
}

}  // namespace

bool check_values(const at::Tensor& index, int64_t low, int64_t high, c10::function_ref<void(int64_t)> fail,
                  std::optional<int64_t> allowed) {
  if (index.numel() == 0) return true;
  Buffer& buffer = *buffer_of(index);
  if (buffer.known.load(std::memory_order_relaxed) == 0) return false;
  if (index.scalar_type() == at::kLong && find_range(buffer)) {
    if (low <= buffer.low && buffer.high <= high) return true;
    if (buffer.low == buffer.high && buffer.low != allowed) fail(buffer.low);
  }
  if (!(buffer.known.load(std::memory_order_relaxed) & Buffer::kHostContent)) return false;
  const at::Tensor values = host_alias(index, /*for_write=*/false, fusion::FlushReason::value_read).contiguous();
  if (index.scalar_type() == at::kLong)
    check_each<int64_t>(values, low, high, fail, allowed);
  else if (index.scalar_type() == at::kInt)
    check_each<int32_t>(values, low, high, fail, allowed);
  else
    return false;
  return true;
}

Known known_range(const at::Tensor& index, int64_t low, int64_t high) {
  bool outside = false;
  const bool known = check_values(index, low, high, [&](int64_t) { outside = true; });
  return outside ? Known::outside : known ? Known::inside : Known::unknown;
}

at::Tensor known_values(const at::Tensor& tensor) {
  if (!(buffer_of(tensor)->known.load(std::memory_order_relaxed) & Buffer::kHostContent)) return {};
  return host_alias(tensor, /*for_write=*/false, fusion::FlushReason::value_read);
}

void mark_range(const at::Tensor& index, int64_t low, int64_t high) {
  if (index.scalar_type() != at::kLong || !covers(index)) return;
  Buffer& buffer = *buffer_of(index);
  buffer.low = low;
  buffer.high = high;
  buffer.known.store(Buffer::kRange, std::memory_order_relaxed);
}

void mark_host_content(const at::Tensor& tensor) {
  if (covers(tensor)) buffer_of(tensor)->known.store(Buffer::kHostContent, std::memory_order_relaxed);
}

void inherit_known(const at::Tensor& source, const at::Tensor& copy) {
  if (source.scalar_type() != at::kLong || copy.scalar_type() != at::kLong || !covers(copy)) return;
  Buffer& to = *buffer_of(copy);
  if (source.is_cpu()) {
    to.low = to.high = *source.const_data_ptr<int64_t>();
  } else {
    Buffer& from = *buffer_of(source);
    if (&from == &to || !find_range(from)) return;
    to.low = from.low;
    to.high = from.high;
  }
  to.known.store(Buffer::kRange, std::memory_order_relaxed);
}

}  // namespace ae::engine
