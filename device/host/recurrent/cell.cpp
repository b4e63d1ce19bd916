#include "device/host/recurrent/cell.h"

#include <algorithm>
#include <cstring>

#include "device/math/sigmoid.h"
#include "device/math/tanh.h"

namespace ae::device::host::recurrent {
namespace {

constexpr int64_t kLanes = 16;
using V = math::Vec<float, kLanes>;

/// Some neighbouring units of a row: all lanes, or fewer at the row's end, where the other lanes are zeros.
struct Stretch {
  int64_t first, count;

  AE_INLINE V load(const float* row) const {
    if (count == kLanes) return V::load(row + first);
    float lanes[kLanes] = {};
    std::memcpy(lanes, row + first, count * sizeof(float));
    return V::load(lanes);
  }
  AE_INLINE V load_or_zero(const In& rows, int64_t row) const { return rows.data ? load(rows[row]) : V(0.0f); }
  AE_INLINE void store(float* row, V x) const {
    if (count == kLanes) return x.store(row + first);
    float lanes[kLanes];
    x.store(lanes);
    std::memcpy(row + first, lanes, count * sizeof(float));
  }
};

/// f(row, stretch) for all rows and units.
template <class F>
AE_INLINE void for_units(const Shape& shape, F f) {
  for (int64_t row = 0; row < shape.rows; ++row)
    for (int64_t unit = 0; unit < shape.size; unit += kLanes)
      f(row, Stretch{unit, std::min(kLanes, shape.size - unit)});
}

/// Derivatives of sigmoid and tanh, from their results.
AE_INLINE V sigmoid_slope(V s) { return (V(1.0f) - s) * s; }
AE_INLINE V tanh_slope(V t) { return V(1.0f) - t * t; }

}  // namespace

void lstm_step(const LstmStep& step) {
  const int64_t size = step.shape.size;
  for_units(step.shape, [&](int64_t row, Stretch at) {
    float* gates = step.gates[row];
    const V in = math::sigmoid(at.load(gates)), forget = math::sigmoid(at.load(gates + size));
    const V cell = math::tanh(at.load(gates + 2 * size)), out = math::sigmoid(at.load(gates + 3 * size));
    const V cy = forget * at.load(step.cx[row]) + in * cell;
    const V hy = out * math::tanh(cy);
    at.store(gates, in);
    at.store(gates + size, forget);
    at.store(gates + 2 * size, cell);
    at.store(gates + 3 * size, out);
    at.store(step.cy[row], cy);
    at.store(step.hy[row], hy);
  });
}

void lstm_step_backward(const LstmStepBackward& step) {
  const int64_t size = step.shape.size;
  for_units(step.shape, [&](int64_t row, Stretch at) {
    const float* gates = step.gates[row];
    const V in = at.load(gates), forget = at.load(gates + size);
    const V cell = at.load(gates + 2 * size), out = at.load(gates + 3 * size);
    const V t = math::tanh(at.load(step.cy[row]));
    const V grad = at.load_or_zero(step.grad_y, row) + at.load(step.grad_h[row]);
    const V grad_state = grad * out * tanh_slope(t) + at.load(step.grad_c[row]);
    float* to = step.grad_gates[row];
    at.store(to, grad_state * cell * sigmoid_slope(in));
    at.store(to + size, grad_state * at.load(step.cx[row]) * sigmoid_slope(forget));
    at.store(to + 2 * size, grad_state * in * tanh_slope(cell));
    at.store(to + 3 * size, grad * t * sigmoid_slope(out));
    at.store(step.grad_c[row], grad_state * forget);
  });
}

}  // namespace ae::device::host::recurrent
