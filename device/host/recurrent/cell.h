// Steps of recurrent layers after their matrix product with the hidden state, of some rows of a batch. float32, rows of
// `size` units; gates beside each other in one row of gates * size numbers. Row strides in elements; the numbers of a
// row are adjacent. Each number depends on its own row and unit alone.
#pragma once

#include <cstdint>

namespace ae::device::host::recurrent {

/// One number for each row and unit.
template <class T>
struct Rows {
  T* data = nullptr;
  int64_t stride = 0;
  T* operator[](int64_t row) const { return data + row * stride; }
};
using In = Rows<const float>;
using Out = Rows<float>;

struct Shape {
  int64_t rows = 0, size = 0;
};

/// gates: sums for input, forget, cell and output gate; become the activated gates. `cy` may be `cx`.
struct LstmStep {
  Shape shape;
  Out gates;
  In cx;
  Out cy, hy;
};
void lstm_step(const LstmStep& step);

/// grad_h: the gradient of hy that later steps give; grad_y: that of hy as a result, added to it (no data: none).
/// grad_c: of cy before, of cx afterwards.
struct LstmStepBackward {
  Shape shape;
  In gates;  // activated
  In cx, cy, grad_h, grad_y;
  Out grad_c, grad_gates;
};
void lstm_step_backward(const LstmStepBackward& step);

}  // namespace ae::device::host::recurrent
