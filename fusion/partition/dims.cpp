#include "fusion/partition/dims.h"

#include <algorithm>

namespace ae::fusion {

namespace {

bool has_reduced(const Dims& dims) {
  return std::any_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.reduced; });
}

}  // namespace

int64_t points(const Dims& dims) {
  int64_t count = 1;
  for (const Dim& dim : dims) count *= dim.size;
  return count;
}

int64_t kept_points(const Dims& dims) {
  int64_t count = 1;
  for (const Dim& dim : dims) count *= dim.reduced ? 1 : dim.size;
  return count;
}

int64_t reduced_points(const Dims& dims) {
  int64_t count = 1;
  for (const Dim& dim : dims) count *= dim.reduced ? dim.size : 1;
  return count;
}

NodeSpace node_space(const NodeView& node) {
  NodeSpace space;
  space.reduces = kind_of(node.opcode) == OpKind::reduce;
  bool any_reduced = false, empty = false;
  for (int d = 0; d < node.rank; ++d) {
    const bool reduced = (node.reduced >> d & 1) != 0;
    empty |= reduced && node.sizes[d] == 0;
    any_reduced |= reduced && node.sizes[d] > 1;
  }
  for (int d = 0; d < node.rank; ++d) {
    const bool reduced = (node.reduced >> d & 1) != 0;
    if (node.sizes[d] == 1 || (reduced && empty)) continue;
    space.dims.push_back({node.sizes[d], reduced});
    space.from.push_back(d);
  }
  if (space.reduces && (empty || !any_reduced)) {
    space.dims.push_back({empty ? 0 : 1, true});
    space.from.push_back(-1);
  }
  return space;
}

std::optional<Dims> refine(const Dims& a, const Dims& b, bool b_has_flags) {
  const bool a_has_flags = has_reduced(a);
  Dims fine;
  int i = static_cast<int>(a.size()) - 1, j = static_cast<int>(b.size()) - 1;
  int64_t left_a = 1, left_b = 1;
  bool flag_a = false, flag_b = false, unit = false;
  while (true) {
    while (left_a == 1 && i >= 0) {
      unit |= a[i].size == 1;
      left_a = a[i].size;
      flag_a = a[i--].reduced;
    }
    while (left_b == 1 && j >= 0) {
      unit |= b[j].size == 1;
      left_b = b[j].size;
      flag_b = b[j--].reduced;
    }
    if (left_a == 1 && left_b == 1) break;
    const int64_t small = std::min(left_a, left_b), large = std::max(left_a, left_b);
    if (small <= 1 || large % small != 0) return std::nullopt;
    if (a_has_flags && b_has_flags && flag_a != flag_b) return std::nullopt;
    fine.push_back({small, a_has_flags ? flag_a : b_has_flags && flag_b});
    left_a /= small;
    left_b /= small;
  }
  std::reverse(fine.begin(), fine.end());
  if (unit) fine.push_back({1, true});  // the mark of a reduction over one element
  if (a_has_flags && b_has_flags && has_reduced(fine) != (has_reduced(a) && has_reduced(b))) return std::nullopt;
  if (fine.size() > static_cast<size_t>(device::kMaxRank)) return std::nullopt;
  return fine;
}

std::optional<Dims> refine_kept(const Dims& full, const Dims& kept) {
  Dims own;
  for (const Dim& dim : full)
    if (!dim.reduced) own.push_back({dim.size, false});
  const std::optional<Dims> fine = refine(own, kept, false);
  if (!fine) return std::nullopt;
  Dims out;
  size_t next = 0;
  for (const Dim& dim : full) {
    if (dim.reduced) {
      out.push_back(dim);
      continue;
    }
    for (int64_t covered = 1; covered < dim.size; covered *= (*fine)[next++].size) out.push_back((*fine)[next]);
  }
  if (out.size() > static_cast<size_t>(device::kMaxRank)) return std::nullopt;
  return out;
}

Strides map_strides(const Dims& coarse, const Strides& strides, const Dims& fine, bool kept_only) {
  Strides out{};
  int d = static_cast<int>(coarse.size()) - 1;
  int64_t left = d >= 0 ? coarse[d].size : 1;
  int64_t step = d >= 0 ? strides[d] : 0;
  for (int f = static_cast<int>(fine.size()) - 1; f >= 0; --f) {
    if (fine[f].size <= 1 || (kept_only && fine[f].reduced)) continue;
    while (left <= 1 && d > 0) {
      left = coarse[--d].size;
      step = strides[d];
    }
    out[f] = step;
    step *= fine[f].size;
    left /= fine[f].size;
  }
  return out;
}

Strides row_major(const Dims& dims, bool kept_only) {
  Strides out{};
  int64_t step = 1;
  for (int d = static_cast<int>(dims.size()) - 1; d >= 0; --d) {
    if (kept_only && dims[d].reduced) continue;
    out[d] = step;
    step *= dims[d].size;
  }
  return out;
}

bool is_kept_level(const Dims& dims, const Strides& strides) {
  bool any = false;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (!dims[d].reduced) continue;
    any = true;
    if (dims[d].size > 1 && strides[d] != 0) return false;
  }
  return any;
}

}  // namespace ae::fusion
