// Operators that find their elements by index tensors. An index out of range throws what ATen throws for it.
//
//   index_select        in(self, index [n]) -> out; attribute 0: the dimension
//   embedding           in(weight [rows, width], indices) -> out [indices…, width] (contiguous)
//   index               in(self, indices…) -> out; attribute 0: bit d says that the list of indices has one at d
//   index_put           in(self, values, indices…) -> self; attributes: as index; accumulate; unsafe. Masks may be
//                       among the indices
#include <ATen/ops/_index_put_impl_cpu_dispatch.h>
#include <ATen/ops/index_cpu_dispatch.h>
#include <ATen/ops/index_select_cpu_dispatch.h>

#include <algorithm>

#include "engine/library/call.h"
#include "engine/library/operators.h"
#include "engine/record/record.h"

namespace ae::engine::library {
namespace {

using Call = std::shared_ptr<const device::LibraryCall>;
using Tensors = std::span<at::Tensor>;

constexpr int64_t kPieceElements = int64_t{1} << 15;

/// Cuts `extent`, one dimension of an output of `elements` elements.
Cut stretches_of(int64_t extent, int64_t elements) {
  return cut(extent, static_cast<int>(std::clamp(elements / kPieceElements, int64_t{1}, int64_t{8})));
}

Call make_index_select(const fusion::NodeView& node) {
  const Piece all = whole(node);
  const auto dim = attributes_of(node)[0];
  const Cut stretches = all[1].dim() == 1 ? stretches_of(all[1].sizes[0], all[2].numel()) : Cut{};
  std::vector<Piece> pieces;
  for (int p = 0; p < stretches.count; ++p) {
    if (stretches.count == 1) {
      pieces.push_back(all);
      continue;
    }
    const int64_t start = stretches.start(p), length = stretches.length(p);
    pieces.push_back({all[0], all[1].narrow(0, start, length), all[2].narrow(dim, start, length)});
  }
  return make_call(std::move(pieces), [dim](Tensors t, Scalars) { at::cpu::index_select_out(t[2], t[0], dim, t[1]); });
}

Call make_embedding(const fusion::NodeView& node) {
  const Piece all = whole(node);
  const Sizes& shape = all[1].sizes;
  // The first dimension that is longer than 1: a stretch of it is contiguous in the output.
  const auto dim = std::find_if(shape.begin(), shape.end(), [](int64_t size) { return size > 1; }) - shape.begin();
  std::vector<Piece> pieces;
  if (dim == static_cast<int64_t>(shape.size())) {
    pieces.push_back(all);
  } else {
    const Cut stretches = stretches_of(shape[dim], all[2].numel());
    for (int p = 0; p < stretches.count; ++p) {
      const int64_t start = stretches.start(p), length = stretches.length(p);
      pieces.push_back({all[0], all[1].narrow(dim, start, length), all[2].narrow(dim, start, length)});
    }
  }
  return make_call(std::move(pieces), [](Tensors t, Scalars) {
    at::Tensor rows = t[2].view({-1, t[2].size(-1)});
    at::cpu::index_select_out(rows, t[0], 0, t[1].reshape({-1}));
  });
}

c10::List<std::optional<at::Tensor>> index_list(int64_t defined, const at::Tensor* indices) {
  c10::List<std::optional<at::Tensor>> list;
  for (int64_t d = 0; defined >> d != 0; ++d) {
    if (defined >> d & 1)
      list.push_back(*indices++);
    else
      list.push_back(std::nullopt);
  }
  return list;
}

Call make_index(const fusion::NodeView& node) {
  const Piece all = whole(node);
  const auto defined = attributes_of(node)[0];
  std::vector<Piece> pieces{all};
  if (all.size() == 3 && all[1].dim() > 0) {  // one index: its first dimension is one of the output's
    const auto dim = std::countr_zero(static_cast<uint64_t>(defined));
    const Cut stretches = stretches_of(all[1].sizes[0], all[2].numel());
    pieces.clear();
    for (int p = 0; p < stretches.count; ++p) {
      const int64_t start = stretches.start(p), length = stretches.length(p);
      pieces.push_back({all[0], all[1].narrow(0, start, length), all[2].narrow(dim, start, length)});
    }
  }
  return make_call(std::move(pieces),
                   [defined](Tensors t, Scalars) { at::cpu::index_outf(t[0], index_list(defined, &t[1]), t.back()); });
}

Call make_index_put(const fusion::NodeView& node) {
  const auto attributes = attributes_of(node);
  return make_call({whole(node)}, [defined = attributes[0], accumulate = attributes[1] != 0,
                                   unchecked = attributes[2] != 0](Tensors t, Scalars) {
    at::cpu::_index_put_impl_(t.back(), index_list(defined, &t[2]), t[1], accumulate, unchecked);
  });
}

}  // namespace

const int kIndexSelect = register_library("index_select", make_index_select);
const int kEmbedding = register_library("embedding", make_embedding);
const int kIndex = register_library("index", make_index);
const int kIndexPut = register_library("index_put", make_index_put);

}  // namespace ae::engine::library
