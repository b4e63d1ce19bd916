// Matrix products.
//
//   mm       in(a [m, k], b [k, n]) -> out [m, n]
//   addmm    in(self, a, b) -> out = beta * self + alpha * a @ b; scalars beta, alpha; self is broadcast to out, or is
//            the same access as out
//   bmm      in(a [s, m, k], b [s, k, n]) -> out [s, m, n]
//   baddbmm  as addmm, for batches
//   addmv    in([self,] a [m, k], x [k]) -> out [m]; scalars beta, alpha; attribute 0: 1 when there is a self
//   dot      in(x, y) -> out []
//
// Pieces are panels of the output's rows or columns, or groups of the batch; the inner dimension is never cut. Products
// of float32 go to our own kernel (device/host/gemm) on processors where that is the faster one, unless the program
// asked for reduced precision that the processor has (precision.h); others go to ATen's.
#include <ATen/ops/addmm_cpu_dispatch.h>
#include <ATen/ops/addmv_cpu_dispatch.h>
#include <ATen/ops/baddbmm_cpu_dispatch.h>
#include <ATen/ops/bmm_cpu_dispatch.h>
#include <ATen/ops/dot_cpu_dispatch.h>
#include <ATen/ops/mm_cpu_dispatch.h>

#include <algorithm>

#include "device/host/gemm/gemm.h"
#include "engine/library/call.h"
#include "engine/library/operators.h"
#include "engine/library/precision.h"
#include "engine/record/record.h"

namespace ae::engine::library {
namespace {

using Call = std::shared_ptr<const device::LibraryCall>;
using Tensors = std::span<at::Tensor>;

constexpr double kSmallProduct = 4e6;  // floating-point operations that are not worth a second piece
constexpr int64_t kPanel = 16;         // panels are multiples of a register tile
constexpr int64_t kPanelAim = 256;     // every panel packs the other operand anew: narrower ones are slower
constexpr int kMostPanels = 16;
constexpr double kOwnPiece = 1.2e7;  // floating-point operations of a piece for our own kernel, about

/// In how many panels an extent is cut: at least two, so that a small machine is busy.
int pieces_for(double operations, int64_t extent) {
  if (operations < kSmallProduct) return 1;
  return static_cast<int>(std::clamp<int64_t>((extent + kPanelAim / 2) / kPanelAim, 2, kMostPanels));
}

/// In how many groups a batch of products is cut.
int groups_for(double operations) { return operations < kSmallProduct ? 1 : 8; }

struct Panels {
  bool rows = true;
  Cut cut;
};

/// Panels of the output's longer side.
Panels panels_of(int64_t m, int64_t n, int64_t k) {
  const bool rows = m >= n;
  const int64_t extent = rows ? m : n;
  const double operations = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  return {rows, cut(extent, pieces_for(operations, extent), kPanel)};
}

/// Whether our own kernel takes a product (the last two dimensions of the operands; `self` may be null).
bool is_own(const fusion::NodeView& node, const Operand& a, const Operand& b, const Operand& out, const Operand* self) {
  namespace gemm = device::host::gemm;
  if (!gemm::is_preferred() || a.dtype != at::kFloat || reduces_products(node)) return false;
  const int64_t dim = out.dim();
  const int64_t m = out.sizes[dim - 2], n = out.sizes[dim - 1], k = a.sizes[dim - 1];
  const bool fills_registers = n >= 16 && m >= 4 && k >= 4;
  const bool b_fits = b.strides[dim - 1] == 1 || b.strides[dim - 2] == 1;
  const bool self_fits = !self || self->dtype == at::kFloat;
  return fills_registers && b_fits && self_fits && out.strides[dim - 1] == 1;
}

/// Products by our own kernel, of matrices or of batches of them; `self` may be null.
void run_own(const at::Tensor* self, const at::Tensor& a, const at::Tensor& b, at::Tensor& out, double alpha = 1,
             double beta = 1) {
  const int64_t batch = out.dim() == 3 ? out.size(0) : 1;
  const auto offset = [&](const at::Tensor& t, int64_t i) { return batch > 1 ? i * t.stride(0) : 0; };
  const auto matrix = [&](const at::Tensor& t, int64_t i) {
    return device::host::gemm::Matrix{t.const_data_ptr<float>() + offset(t, i), t.stride(-2), t.stride(-1)};
  };
  for (int64_t i = 0; i < batch; ++i) {
    device::host::gemm::Product product{};
    product.m = out.size(-2);
    product.n = out.size(-1);
    product.k = a.size(-1);
    product.a = matrix(a, i);
    product.b = matrix(b, i);
    product.out = out.mutable_data_ptr<float>() + offset(out, i);
    product.out_row_stride = out.stride(-2);
    if (self && beta != 0) product.self = matrix(*self, i);
    product.alpha = static_cast<float>(alpha);
    product.beta = static_cast<float>(beta);
    device::host::gemm::multiply(product);
  }
}

/// Panels for our own kernel: of columns where there are enough, since each panel of rows packs the other operand anew.
Panels own_panels_of(int64_t m, int64_t n, int64_t k) {
  using device::host::gemm::kColumnTile, device::host::gemm::kRowTile;
  const double operations = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  if (operations < kSmallProduct) return {true, cut(m, 1)};
  const auto pieces = static_cast<int>(std::clamp(operations / kOwnPiece, 2.0, static_cast<double>(kMostPanels)));
  const bool rows = n < kColumnTile * pieces && m >= kRowTile * pieces;
  return rows ? Panels{true, cut(m, pieces, kRowTile)} : Panels{false, cut(n, pieces, kColumnTile)};
}

/// The operands of panel `piece`: self (if any), a, b, out.
Piece panel(const Operand* self, const Operand& a, const Operand& b, const Operand& out, const Panels& panels,
            int piece) {
  const int64_t start = panels.cut.start(piece), length = panels.cut.length(piece);
  const int dim = panels.rows ? 0 : 1;
  Piece operands;
  if (self) operands.push_back(self->narrow(dim, start, length));
  operands.push_back(panels.rows ? a.narrow(0, start, length) : a);
  operands.push_back(panels.rows ? b : b.narrow(1, start, length));
  operands.push_back(out.narrow(dim, start, length));
  return operands;
}

Call make_mm(const fusion::NodeView& node) {
  const Piece all = whole(node);
  const bool own = is_own(node, all[0], all[1], all[2], nullptr);
  const int64_t m = all[0].sizes[0], n = all[1].sizes[1], k = all[0].sizes[1];
  const Panels panels = own ? own_panels_of(m, n, k) : panels_of(m, n, k);
  std::vector<Piece> pieces;
  for (int p = 0; p < panels.cut.count; ++p) pieces.push_back(panel(nullptr, all[0], all[1], all[2], panels, p));
  if (own) return make_call(std::move(pieces), [](Tensors t, Scalars) { run_own(nullptr, t[0], t[1], t[2]); });
  return make_call(std::move(pieces), [](Tensors t, Scalars) { at::cpu::mm_out(t[2], t[0], t[1]); });
}

/// True when the first input is the output itself: then ATen is given one tensor for both.
bool in_place(const fusion::NodeView& node, const Piece& all) {
  return node.inputs.front().buffer == node.outputs.front().buffer && all.front() == all.back();
}

Call make_addmm(const fusion::NodeView& node) {
  const Piece all = whole(node);
  const Operand self = all[0].expand(all[3].sizes);
  const bool own = is_own(node, all[1], all[2], all[3], &self);
  const int64_t m = all[1].sizes[0], n = all[2].sizes[1], k = all[1].sizes[1];
  const Panels panels = own ? own_panels_of(m, n, k) : panels_of(m, n, k);
  std::vector<Piece> pieces;
  for (int p = 0; p < panels.cut.count; ++p) pieces.push_back(panel(&self, all[1], all[2], all[3], panels, p));
  if (own) {
    return make_call(std::move(pieces),
                     [](Tensors t, Scalars scalars) { run_own(&t[0], t[1], t[2], t[3], scalars[1], scalars[0]); });
  }
  return make_call(std::move(pieces), [same = in_place(node, all)](Tensors t, Scalars scalars) {
    at::cpu::addmm_out(t[3], same ? t[3] : t[0], t[1], t[2], scalars[0], scalars[1]);
  });
}

/// Groups of the batch: all operands are cut along dimension 0.
std::vector<Piece> batch_groups(const Piece& all) {
  const Operand &a = all[all.size() - 3], &b = all[all.size() - 2];
  const double operations = 2.0 * static_cast<double>(a.numel()) * static_cast<double>(b.sizes[2]);
  const Cut groups = cut(a.sizes[0], groups_for(operations));
  std::vector<Piece> pieces(groups.count);
  for (int p = 0; p < groups.count; ++p)
    for (const Operand& operand : all) pieces[p].push_back(operand.narrow(0, groups.start(p), groups.length(p)));
  return pieces;
}

Call make_bmm(const fusion::NodeView& node) {
  const Piece all = whole(node);
  if (is_own(node, all[0], all[1], all[2], nullptr)) {
    return make_call(batch_groups(all), [](Tensors t, Scalars) { run_own(nullptr, t[0], t[1], t[2]); });
  }
  return make_call(batch_groups(whole(node)), [](Tensors t, Scalars) { at::cpu::bmm_out(t[2], t[0], t[1]); });
}

Call make_baddbmm(const fusion::NodeView& node) {
  Piece all = whole(node);
  const bool same = in_place(node, all);
  all[0] = all[0].expand(all[3].sizes);
  if (is_own(node, all[1], all[2], all[3], &all[0])) {
    return make_call(batch_groups(all),
                     [](Tensors t, Scalars scalars) { run_own(&t[0], t[1], t[2], t[3], scalars[1], scalars[0]); });
  }
  return make_call(batch_groups(all), [same](Tensors t, Scalars scalars) {
    at::cpu::baddbmm_out(t[3], same ? t[3] : t[0], t[1], t[2], scalars[0], scalars[1]);
  });
}

Call make_addmv(const fusion::NodeView& node) {
  Piece all = whole(node);
  const bool has_self = attributes_of(node)[0] == 1;
  if (!has_self) all.insert(all.begin(), all.back());
  const bool same = !has_self || in_place(node, all);
  all[0] = all[0].expand(all[3].sizes);
  const Cut rows = cut(all[3].sizes[0], groups_for(2.0 * static_cast<double>(all[1].numel())), kPanel);
  std::vector<Piece> pieces;
  for (int p = 0; p < rows.count; ++p) {
    const auto part = [&](const Operand& operand) { return operand.narrow(0, rows.start(p), rows.length(p)); };
    if (has_self)
      pieces.push_back({part(all[0]), part(all[1]), all[2], part(all[3])});
    else
      pieces.push_back({part(all[1]), all[2], part(all[3])});
  }
  return make_call(std::move(pieces), [same](Tensors t, Scalars scalars) {
    at::Tensor& out = t[t.size() - 1];
    at::cpu::addmv_out(out, same ? out : t[0], t[t.size() - 3], t[t.size() - 2], scalars[0], scalars[1]);
  });
}

Call make_dot(const fusion::NodeView& node) {
  return make_call({whole(node)}, [](Tensors t, Scalars) { t[2].copy_(at::cpu::dot(t[0], t[1])); });
}

}  // namespace

const int kMm = register_library("mm", make_mm);
const int kAddmm = register_library("addmm", make_addmm);
const int kBmm = register_library("bmm", make_bmm);
const int kBaddbmm = register_library("baddbmm", make_baddbmm);
const int kAddmv = register_library("addmv", make_addmv);
const int kDot = register_library("dot", make_dot);

}  // namespace ae::engine::library
