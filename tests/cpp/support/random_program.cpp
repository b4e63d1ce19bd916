#include "tests/cpp/support/random_program.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "fusion/ir/element.h"

namespace ae::fusion::testing {

namespace {

using Sizes = std::vector<int64_t>;

int64_t count_of(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

struct Range {
  int64_t begin, end;
};
Range bytes_of(const View& view, const Sizes& sizes) {
  int64_t last = view.offset;
  for (size_t d = 0; d < sizes.size(); ++d) last += (sizes[d] - 1) * view.strides[d];
  return {view.offset * size_of(view.dtype), (last + 1) * size_of(view.dtype)};
}

/// An input that an output overwrites other than element by element: the engine copies such an input first.
bool clashes(const View& input, const View& output, const Sizes& sizes) {
  if (input.buffer != output.buffer) return false;
  bool same = input.dtype == output.dtype && input.offset == output.offset;
  for (size_t d = 0; d < sizes.size(); ++d) same &= sizes[d] == 1 || input.strides[d] == output.strides[d];
  const Range a = bytes_of(input, sizes), b = bytes_of(output, sizes);
  return !same && a.begin < b.end && b.begin < a.end;
}

constexpr Opcode kUnary[] = {Opcode::neg,  Opcode::abs,  Opcode::exp,  Opcode::tanh,   Opcode::sqrt,   Opcode::relu,
                             Opcode::silu, Opcode::gelu, Opcode::copy, Opcode::square, Opcode::sigmoid};
constexpr Opcode kBinary[] = {Opcode::add, Opcode::sub, Opcode::mul, Opcode::div, Opcode::maximum, Opcode::minimum};
constexpr Opcode kIntBinary[] = {Opcode::add, Opcode::sub, Opcode::mul, Opcode::maximum, Opcode::bitwise_xor};
constexpr Opcode kComparison[] = {Opcode::lt, Opcode::ge, Opcode::eq};
constexpr Opcode kReduction[] = {Opcode::sum, Opcode::amax, Opcode::amin, Opcode::norm, Opcode::logsumexp};

class Generator {
 public:
  explicit Generator(uint32_t seed) : engine_(seed) {}

  Program make() {
    make_shape();
    for (int i = 0, n = 2 + below(4); i < n; ++i) add_buffer();
    for (int i = 0, n = 1 + below(14); i < n; ++i) add_operator();
    for (ProgramBuffer& buffer : program_.buffers) buffer.visible = !one_in(3);
    return std::move(program_);
  }

 private:
  int below(int64_t n) { return static_cast<int>(engine_() % static_cast<uint64_t>(n)); }
  bool one_in(int n) { return below(n) == 0; }
  template <class List>
  auto pick(const List& list) {
    return list[below(static_cast<int64_t>(std::size(list)))];
  }

  /// The program's own shape; most operators run over it or over a part of it.
  void make_shape() {
    const int rank = 1 + below(3);
    for (int d = 0; d < rank; ++d) shape_.push_back(one_in(8) ? 1 : 1 + below(7));
    // Now and then one is long: beyond a block of the tile machine, beyond a chunk of a reduction.
    if (one_in(8)) shape_[below(rank)] = 20 + below(1500 / count_of(shape_) + 1);
    if (one_in(300)) shape_[below(rank)] = 3000 + below(20000 / count_of(shape_) + 1);
  }

  DType random_dtype() {
    if (!one_in(3)) return DType::kF32;
    constexpr DType kTypes[] = {DType::kF32, DType::kF64, DType::kBF16, DType::kF16,
                                DType::kI32, DType::kI64, DType::kBool};
    return pick(kTypes);
  }

  int new_buffer(int64_t elements, DType dtype, bool fresh) {
    program_.buffers.push_back({std::vector<char>(elements * size_of(dtype)), fresh});
    program_.dtypes.push_back(dtype);
    if (!fresh) {
      for (int64_t i = 0; i < elements; ++i) {
        const double value = one_in(50) ? 0 : (below(4001) - 2000) / 400.0;
        const Element element = convert(Element::of(value), DType::kF64, dtype);
        std::memcpy(program_.buffers.back().bytes.data() + i * size_of(dtype), element.bytes, size_of(dtype));
      }
    }
    return static_cast<int>(program_.buffers.size()) - 1;
  }
  void add_buffer() {
    const int64_t count = count_of(shape_);
    new_buffer(count + (one_in(2) ? 0 : below(2 * count + 8)), random_dtype(), false);
  }
  int64_t elements_of(int buffer, DType dtype) const {
    return static_cast<int64_t>(program_.buffers[buffer].bytes.size()) / size_of(dtype);
  }

  /// Mostly the program's shape; else some of its dimensions dropped, merged or set to 1.
  Sizes random_sizes() {
    Sizes sizes = shape_;
    if (!one_in(3)) return sizes;
    switch (below(4)) {
      case 0: sizes.erase(sizes.begin() + below(sizes.size())); break;
      case 1: sizes[below(sizes.size())] = 1; break;
      case 2: sizes = {count_of(sizes)}; break;
      default:
        if (sizes.size() < 2) break;
        sizes[0] *= sizes[1];
        sizes.erase(sizes.begin() + 1);
    }
    return sizes;
  }

  /// A view of `sizes` that does not overlap itself (unless `broadcast`), in a random order of dimensions, with gaps
  /// and an offset where the buffer is large enough.
  bool place(View& view, const Sizes& sizes, bool broadcast) {
    view.strides.assign(sizes.size(), 0);
    std::vector<size_t> order(sizes.size());
    std::iota(order.rbegin(), order.rend(), 0);
    if (one_in(5)) std::shuffle(order.begin(), order.end(), engine_);
    int64_t step = one_in(10) ? 2 : 1;
    for (size_t d : order) {
      if (broadcast && one_in(6)) continue;
      view.strides[d] = step;
      step *= sizes[d];
      if (one_in(12)) step += 1;
    }
    const Range range = bytes_of(view, sizes);
    const int64_t room = elements_of(view.buffer, view.dtype) - range.end / size_of(view.dtype);
    if (room < 0) return false;
    if (room > 0 && one_in(3)) view.offset = one_in(2) ? room : below(room + 1);
    return true;
  }

  View input_view(const Sizes& sizes) {
    View view;
    for (int attempt = 0; attempt < 20; ++attempt) {
      view = {};
      view.buffer = below(program_.buffers.size());
      view.dtype = program_.dtypes[view.buffer];
      if (view.dtype == DType::kI32 && one_in(4)) view.dtype = one_in(2) ? DType::kI16 : DType::kI64;
      if (place(view, sizes, true)) return view;
    }
    view.offset = 0;
    view.strides.assign(sizes.size(), 0);  // one element, everywhere
    view.buffer = below(program_.buffers.size());
    view.dtype = program_.dtypes[view.buffer];
    return view;
  }

  View dense(int buffer, const Sizes& sizes) { return program_.dense(buffer, sizes); }

  /// A new value, or a write into an existing buffer.
  View output_view(const Sizes& sizes, const std::vector<Input>& inputs, DType dtype) {
    for (int attempt = 0; attempt < 3 && !one_in(3); ++attempt) {
      View view;
      const bool in_place = one_in(2) && !inputs.empty() && !inputs[0].is_number;
      if (in_place)
        view = inputs[0].view;
      else
        view.buffer = below(program_.buffers.size());
      if (!in_place) view.dtype = program_.dtypes[view.buffer];
      if (!in_place && !place(view, sizes, false)) continue;
      if (view.dtype == DType::kBool && dtype != DType::kBool) continue;
      if (in_place && overlaps_itself(view, sizes)) continue;
      if (std::none_of(inputs.begin(), inputs.end(),
                       [&](const Input& input) { return !input.is_number && clashes(input.view, view, sizes); }))
        return view;
    }
    return dense(new_buffer(count_of(sizes), dtype, true), sizes);
  }
  bool overlaps_itself(const View& view, const Sizes& sizes) {
    std::vector<int64_t> offsets{0};
    for (size_t d = 0; d < sizes.size(); ++d) {
      const size_t n = offsets.size();
      for (int64_t i = 1; i < sizes[d]; ++i)
        for (size_t k = 0; k < n; ++k) offsets.push_back(offsets[k] + i * view.strides[d]);
    }
    std::sort(offsets.begin(), offsets.end());
    return std::adjacent_find(offsets.begin(), offsets.end()) != offsets.end();
  }

  DType float_type() {
    constexpr DType kTypes[] = {DType::kF32, DType::kF32, DType::kF32, DType::kF64, DType::kBF16, DType::kF16};
    return pick(kTypes);
  }

  void finish(Op op, DType out) {
    op.outputs.push_back(output_view(op.sizes, op.inputs, out));
    program_.ops.push_back(std::move(op));
  }

  void add_operator() {
    Op op;
    op.sizes = random_sizes();
    op.common = float_type();
    switch (below(14)) {
      case 0:
      case 1:
        op.opcode = pick(kUnary);
        if (op.opcode == Opcode::gelu && one_in(2)) op.attributes = {1};  // without one it is 0
        op.inputs = {input_view(op.sizes)};
        return finish(op, op.common);
      case 2:
      case 3:
      case 4:
        op.opcode = pick(kBinary);
        op.inputs = {input_view(op.sizes), input_view(op.sizes)};
        if (one_in(3)) op.inputs[1] = Input((below(100) - 50) / 8.0, op.common);
        return finish(op, op.common);
      case 5: return add_pointwise(op);
      case 6: return add_from_positions(op);
      case 7:
      case 8:
      case 9: return add_reduction(op);
      case 10:
      case 11: return add_row_operator(op);
      case 12: return add_layer_norm(op);
      default: return add_library();
    }
  }

  void add_pointwise(Op op) {
    const Sizes& sizes = op.sizes;
    switch (below(5)) {
      case 0:
        op.opcode = pick(kComparison);
        op.inputs = {input_view(sizes), input_view(sizes)};
        op.common = DType::kF32;
        // The result is bool whatever the common dtype is.
        op.outputs = {dense(new_buffer(count_of(sizes), DType::kBool, true), sizes)};
        program_.ops.push_back(std::move(op));
        return;
      case 1:
        op.opcode = Opcode::where;
        op.inputs = {input_view(sizes), input_view(sizes), input_view(sizes)};
        break;
      case 2:
        op.opcode = Opcode::add_scaled;
        op.inputs = {input_view(sizes), input_view(sizes), Input(below(9) / 4.0, op.common)};
        break;
      case 3:
        op.opcode = Opcode::addcmul;
        op.inputs = {input_view(sizes), input_view(sizes), input_view(sizes), Input(0.5, DType::kF64)};
        break;
      default:
        op.opcode = pick(kIntBinary);
        op.common = one_in(2) ? DType::kI64 : DType::kI32;
        op.inputs = {input_view(sizes), input_view(sizes)};
    }
    finish(op, op.common);
  }

  void add_from_positions(Op op) {
    switch (below(5)) {
      case 0:
        op.opcode = Opcode::fill;
        op.inputs = {Input((below(64) - 32) / 4.0, op.common)};
        break;
      case 1:
        op.opcode = Opcode::arange;
        op.inputs = {Input(1.5, DType::kF64), Input(0.25, DType::kF64)};
        break;
      case 2:
        op.opcode = Opcode::uniform;
        op.inputs = {Input(-1.0, DType::kF64), Input(1.0, DType::kF64), Input(int64_t{below(1000)}),
                     Input(int64_t{below(99)})};
        break;
      case 3:
        op.opcode = Opcode::dropout;
        op.inputs = {input_view(op.sizes), Input(0.5, DType::kF64), Input(2.0, DType::kF64), Input(int64_t{7}),
                     Input(int64_t{below(99)})};
        break;
      default:
        if (op.sizes.size() < 2) return;
        op.opcode = one_in(2) ? Opcode::tril : Opcode::triu;
        op.inputs = {input_view(op.sizes)};
        op.attributes = {below(3) - 1};
    }
    finish(op, op.common);
  }

  /// Sizes with 1 in all reduced dimensions, in a new buffer or (dense) at the start of another.
  View kept_view(const Op& op, DType dtype) {
    Sizes kept = op.sizes;
    for (size_t d = 0; d < kept.size(); ++d)
      if (op.reduced >> d & 1) kept[d] = 1;
    int buffer = -1;
    if (one_in(4)) {
      buffer = below(program_.buffers.size());
      const bool read = std::any_of(op.inputs.begin(), op.inputs.end(), [&](const Input& input) {
        return !input.is_number && input.view.buffer == buffer;
      });
      const DType has = program_.dtypes[buffer];
      if (read || elements_of(buffer, has) < count_of(kept) || has == DType::kBool) buffer = -1;
      for (const View& output : op.outputs)
        if (output.buffer == buffer) buffer = -1;
    }
    if (buffer < 0) buffer = new_buffer(count_of(kept), dtype, true);
    View view = dense(buffer, kept);
    for (size_t d = 0; d < kept.size(); ++d)
      if (op.reduced >> d & 1) view.strides[d] = 0;
    return view;
  }
  /// A kept-level input: existing memory, broadcast along the reduced dimensions.
  View kept_input(const Op& op) {
    View view = input_view(op.sizes);
    for (size_t d = 0; d < op.sizes.size(); ++d)
      if (op.reduced >> d & 1) view.strides[d] = 0;
    return view;
  }
  uint32_t random_mask(const Op& op) { return 1 + below((1 << op.sizes.size()) - 1); }
  static double reduced_count(const Op& op) {
    double count = 1;
    for (size_t d = 0; d < op.sizes.size(); ++d)
      if (op.reduced >> d & 1) count *= static_cast<double>(op.sizes[d]);
    return count;
  }

  void add_reduction(Op op) {
    if (op.sizes.empty()) return;
    op.reduced = random_mask(op);
    op.inputs = {input_view(op.sizes)};
    DType out = op.common;
    switch (below(5)) {
      case 0:
        op.opcode = Opcode::mean;
        op.inputs.emplace_back(reduced_count(op), DType::kF64);
        break;
      case 1:
        op.opcode = Opcode::var;
        op.inputs.emplace_back(reduced_count(op), DType::kF64);
        op.inputs.emplace_back(std::max(1.0, reduced_count(op) - 1), DType::kF64);
        if (one_in(2)) op.outputs.push_back(kept_view(op, out));
        break;
      case 2:
        op.opcode = one_in(2) ? Opcode::any : Opcode::all;
        op.common = out = DType::kBool;
        op.outputs = {kept_view(op, out)};
        op.outputs[0] = program_.dtypes[op.outputs[0].buffer] == DType::kBool ? op.outputs[0] : View{};
        if (op.outputs[0].strides.size() != op.sizes.size()) return;
        program_.ops.push_back(std::move(op));
        return;
      default:
        op.opcode = pick(kReduction);
        if (op.opcode == Opcode::norm) op.attributes = {below(3)};
        if (op.opcode == Opcode::sum && one_in(4)) op.common = out = DType::kI64;
    }
    op.outputs.push_back(kept_view(op, out));
    program_.ops.push_back(std::move(op));
  }

  void add_row_operator(Op op) {
    if (op.sizes.empty()) return;
    op.reduced = one_in(2) ? 1u << (op.sizes.size() - 1) : 1u << below(op.sizes.size());
    switch (below(4)) {
      case 0: op.opcode = Opcode::softmax; break;
      case 1: op.opcode = Opcode::log_softmax; break;
      case 2: op.opcode = Opcode::softmax_backward; break;
      default: op.opcode = Opcode::log_softmax_backward;
    }
    op.inputs = {input_view(op.sizes)};
    if (op.opcode == Opcode::softmax_backward || op.opcode == Opcode::log_softmax_backward)
      op.inputs.push_back(input_view(op.sizes));
    finish(op, op.common);
  }

  void add_layer_norm(Op op) {
    if (op.sizes.empty()) return;
    const int normalized = 1 + below(op.sizes.size());
    for (int d = 0; d < normalized; ++d) op.reduced |= 1u << (op.sizes.size() - 1 - d);
    const double count = reduced_count(op);
    const DType statistics = compute_type(op.common);
    switch (below(3)) {
      case 0: {
        op.opcode = Opcode::layer_norm;
        op.inputs = {input_view(op.sizes), Input(count, DType::kF64), Input(1e-5, DType::kF64)};
        const int64_t flags = below(4);
        op.attributes = {flags};
        for (int64_t bit : {1, 2})
          if (flags & bit) op.inputs.push_back(input_view(op.sizes));
        op.outputs.push_back(output_view(op.sizes, op.inputs, op.common));
        op.outputs.push_back(kept_view(op, statistics));
        op.outputs.push_back(kept_view(op, statistics));
        program_.ops.push_back(std::move(op));
        return;
      }
      case 1:
        op.opcode = Opcode::layer_norm_backward;
        op.inputs = {input_view(op.sizes), input_view(op.sizes), kept_input(op), kept_input(op),
                     Input(count, DType::kF64)};
        if (one_in(2)) op.inputs.push_back(input_view(op.sizes));
        return finish(op, op.common);
      default:
        op.opcode = Opcode::layer_norm_backward_affine;
        op.attributes = {3};
        op.inputs = {input_view(op.sizes), input_view(op.sizes), kept_input(op), kept_input(op)};
        op.reduced = ~op.reduced & ((1u << op.sizes.size()) - 1);
        op.outputs = {kept_view(op, statistics)};
        op.outputs.push_back(kept_view(op, statistics));
        program_.ops.push_back(std::move(op));
    }
  }

  void add_library() {
    const int64_t count = count_of(shape_);
    const auto whole = [&](int buffer) {
      View view = dense(buffer, {count});
      view.sizes = {count};
      return view;
    };
    std::vector<int> candidates;
    for (size_t b = 0; b < program_.buffers.size(); ++b)
      if (program_.dtypes[b] == DType::kF32 && elements_of(static_cast<int>(b), DType::kF32) >= count)
        candidates.push_back(static_cast<int>(b));
    if (candidates.empty()) return;
    const int from = pick(candidates);
    const bool in_place = one_in(3);
    int to = in_place ? from : pick(candidates);
    if (!in_place && (to == from || one_in(2))) to = new_buffer(count, DType::kF32, true);
    if (in_place)
      program_.library(kAddInPlace, {whole(from)}, {whole(to)}, {0.75});
    else
      program_.library(kReverseAdd, {whole(from)}, {whole(to)});
    program_.ops.back().fence = one_in(4);
  }

  std::mt19937 engine_;
  Program program_;
  Sizes shape_;
};

}  // namespace

Program random_program(uint32_t seed) { return Generator(seed).make(); }

std::vector<bool> random_cuts(const Program& program, uint32_t seed) {
  std::mt19937 engine(seed * 7919 + 1);
  std::vector<bool> cuts(program.ops.size());
  for (size_t i = 0; i < cuts.size(); ++i) cuts[i] = engine() % 4 == 0;
  return cuts;
}

}  // namespace ae::fusion::testing
