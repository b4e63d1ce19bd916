// What is sequential in a recurrent layer: its steps, each a product with the hidden state and a cell. All products
// over the whole sequence are nodes of their own. float32; `steps` comes first, numbers of a row are adjacent.
//
//   lstm           in(gates [steps, batch, 4 size], weight [4 size, size], hx, cx [batch, size])
//                  -> gates (the same access: what the input gives becomes the activated gates), y, hy, cy[, cells]
//                  attribute 0: from the last step to the first; attribute 1: cells (the cy of all steps) are kept
//   lstm_backward  in(gates, cells, cx, weight[, grad_y][, grad_hy][, grad_cy]) -> grad_gates, grad_hx, grad_cx
//                  attribute 0 as above; attribute 1: bits for the gradients that are there
// Pieces are stretches of the batch.
#include <ATen/ops/addmm_cpu_dispatch.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "device/host/gemm/gemm.h"
#include "device/host/recurrent/cell.h"
#include "engine/library/call.h"
#include "engine/library/operators.h"
#include "engine/library/precision.h"
#include "engine/record/record.h"

namespace ae::engine::library {
namespace {

namespace gemm = device::host::gemm;
namespace cell = device::host::recurrent;
using Call = std::shared_ptr<const device::LibraryCall>;
using Tensors = std::span<at::Tensor>;

constexpr double kPieceOperations = 2e7;  // floating-point operations that are worth a piece
constexpr int kMostPieces = 8;
constexpr int64_t kPieceRows = 8;  // fewer make the products slow

/// Stretches of the batch, which is the dimension before the last one; weights and biases are in every piece. `steps`
/// is the position of an operand [steps, batch, gates * size], `weight` that of the weight.
std::vector<Piece> stretches_of_batch(const Piece& all, size_t steps, size_t weight) {
  const int64_t batch = all[steps].sizes[1];
  const double operations = 2.0 * static_cast<double>(all[steps].numel()) * static_cast<double>(all[weight].sizes[1]);
  const auto wanted = static_cast<int>(std::clamp(operations / kPieceOperations, 1.0, double(kMostPieces)));
  const Cut stretches = cut(batch, wanted, kPieceRows);
  std::vector<Piece> pieces(stretches.count);
  for (int p = 0; p < stretches.count; ++p) {
    for (size_t i = 0; i < all.size(); ++i) {
      const bool is_whole = i == weight || all[i].dim() < 2;
      pieces[p].push_back(is_whole ? all[i] : all[i].narrow(all[i].dim() - 2, stretches.start(p), stretches.length(p)));
    }
  }
  return pieces;
}

/// Products with one matrix, one after the other: out += a @ b, or out = a @ b.
class Products {
 public:
  Products(at::Tensor b, bool own) : b_(std::move(b)) {
    if (!own) return;
    packed_ = at::empty({gemm::packed_size(b_.size(0), b_.size(1))}, at::kFloat);
    gemm::pack({b_.const_data_ptr<float>(), b_.stride(0), b_.stride(1)}, b_.size(0), b_.size(1),
               packed_.mutable_data_ptr<float>());
  }

  void run(cell::In a, cell::Out out, int64_t rows, bool add) const {
    const int64_t k = b_.size(0), n = b_.size(1);
    if (!packed_.defined()) {
      at::Tensor to = matrix(out.data, rows, n, out.stride);
      at::cpu::addmm_out(to, to, matrix(const_cast<float*>(a.data), rows, k, a.stride), b_, add ? 1 : 0, 1);
      return;
    }
    gemm::Product product{};
    product.m = rows;
    product.n = n;
    product.k = k;
    product.a = {a.data, a.stride, 1};
    product.packed = packed_.const_data_ptr<float>();
    product.out = out.data;
    product.out_row_stride = out.stride;
    if (add) product.self = {out.data, out.stride, 1};
    product.alpha = product.beta = 1;
    gemm::multiply(product);
  }

 private:
  static at::Tensor matrix(float* data, int64_t rows, int64_t columns, int64_t stride) {
    return alias(data, {at::kFloat, {rows, columns}, {stride, 1}, 0});
  }

  at::Tensor b_, packed_;
};

/// A tensor [steps, batch, …] or [batch, …] by its rows; an undefined one has no data.
cell::In read(const at::Tensor& tensor, int64_t step = 0) {
  if (!tensor.defined()) return {};
  const int64_t first = tensor.dim() == 3 ? step * tensor.stride(0) : 0;
  return {tensor.const_data_ptr<float>() + first, tensor.stride(-2)};
}
cell::Out write(const at::Tensor& tensor, int64_t step = 0) {
  const cell::In rows = read(tensor, step);
  return {const_cast<float*>(rows.data), rows.stride};
}

/// The order of the steps, and the state before each: what `all` holds of the step before, or the one given.
struct Order {
  int64_t steps;
  bool reverse;
  int64_t position(int64_t step) const { return reverse ? steps - 1 - step : step; }
  int64_t last() const { return position(steps - 1); }
  cell::In before(int64_t step, const at::Tensor& all, const at::Tensor& given) const {
    return step == 0 ? read(given) : read(all, position(step - 1));
  }
};

struct Options {
  bool reverse, own;
  int64_t bits;

  static Options of(const fusion::NodeView& node, const Operand& weight) {
    const auto attributes = attributes_of(node);
    const bool fills_registers = weight.sizes[1] >= 16;
    return {attributes[0] != 0, gemm::is_preferred() && fills_registers && !reduces_products(node), attributes[1]};
  }
};

/// Hands out a node's tensors in their order.
class Next {
 public:
  explicit Next(Tensors tensors) : tensors_(tensors) {}
  at::Tensor& operator()() { return tensors_[position_++]; }
  at::Tensor if_there(bool there) { return there ? (*this)() : at::Tensor(); }

 private:
  Tensors tensors_;
  size_t position_ = 0;
};

void begin_gradient(at::Tensor& running, const at::Tensor& given) {
  if (given.defined())
    running.copy_(given);
  else
    running.zero_();
}

void run_lstm(Tensors tensors, const Options& options) {
  Next next(tensors);
  next();  // gates
  const at::Tensor weight = next(), hx = next(), cx = next(), gates = next(), y = next(), hy = next(), cy = next();
  const at::Tensor cells = next.if_there(options.bits != 0);
  const Order order{gates.size(0), options.reverse};
  const cell::Shape shape{hx.size(0), hx.size(1)};
  const Products products(weight.t(), options.own);
  const at::Tensor& states = cells.defined() ? cells : cy;
  for (int64_t s = 0; s < order.steps; ++s) {
    const int64_t t = order.position(s);
    products.run(order.before(s, y, hx), write(gates, t), shape.rows, true);
    cell::lstm_step({shape, write(gates, t), order.before(s, states, cx), write(states, t), write(y, t)});
  }
  hy.copy_(y.select(0, order.last()));
  if (cells.defined()) cy.copy_(cells.select(0, order.last()));
}

void run_lstm_backward(Tensors tensors, const Options& options) {
  Next next(tensors);
  const at::Tensor gates = next(), cells = next(), cx = next(), weight = next();
  const at::Tensor grad_y = next.if_there(options.bits & 1), grad_hy = next.if_there(options.bits & 2);
  const at::Tensor grad_cy = next.if_there(options.bits & 4);
  at::Tensor grad_gates = next(), grad_h = next(), grad_c = next();
  begin_gradient(grad_h, grad_hy);
  begin_gradient(grad_c, grad_cy);
  const Order order{gates.size(0), options.reverse};
  const cell::Shape shape{cx.size(0), cx.size(1)};
  const Products products(weight, options.own);
  for (int64_t s = order.steps - 1; s >= 0; --s) {
    const int64_t t = order.position(s);
    cell::lstm_step_backward({shape, read(gates, t), order.before(s, cells, cx), read(cells, t), read(grad_h),
                              read(grad_y, t), write(grad_c), write(grad_gates, t)});
    products.run(read(grad_gates, t), write(grad_h), shape.rows, false);
  }
}

Call make_lstm(const fusion::NodeView& node) {
  const Piece all = whole(node);
  return make_call(stretches_of_batch(all, 0, 1),
                   [options = Options::of(node, all[1])](Tensors t, Scalars) { run_lstm(t, options); });
}

Call make_lstm_backward(const fusion::NodeView& node) {
  const Piece all = whole(node);
  return make_call(stretches_of_batch(all, 0, 3),
                   [options = Options::of(node, all[3])](Tensors t, Scalars) { run_lstm_backward(t, options); });
}

}  // namespace

const int kLstm = register_library("lstm", make_lstm);
const int kLstmBackward = register_library("lstm_backward", make_lstm_backward);

}  // namespace ae::engine::library
