// Random well-formed kernels with spaces, layouts and data to run them on; everything follows from the seed.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "fusion/ir/kernel.h"

namespace ae::fusion::testing {

/// Memory of one operand (empty for iota operands) and how it is seen.
struct TestOperand {
  std::vector<char> memory;
  device::OperandView view;
};

/// A kernel and what a launch of it needs.
struct TestLaunch {
  Kernel kernel;
  device::Space space;
  std::vector<TestOperand> operands;
  std::vector<uint64_t> scalars;
};

inline constexpr std::array kComputeTypes = {DType::kBool, DType::kU8,  DType::kI8,  DType::kI16,
                                             DType::kI32,  DType::kI64, DType::kU16, DType::kU32,
                                             DType::kU64,  DType::kF32, DType::kF64};
inline constexpr std::array kMemoryTypes = {DType::kBool, DType::kU8,  DType::kI8,  DType::kI16, DType::kI32,
                                            DType::kI64,  DType::kU16, DType::kU32, DType::kU64, DType::kF16,
                                            DType::kBF16, DType::kF32, DType::kF64, DType::kC64};

class RandomKernel {
 public:
  explicit RandomKernel(uint32_t seed) : engine_(seed) {}

  TestLaunch make(int instructions) {
    make_space();
    for (int i = 0, n = 2 + below(3); i < n; ++i) load();
    for (int i = 0, n = below(3); i < n; ++i) scalar();
    while (static_cast<int>(kernel().instrs.size()) < instructions) step();
    for (int i = 0, n = 1 + below(3); i < n; ++i) store(any_value());
    return std::move(launch_);
  }

 private:
  using P = Primitive;
  Kernel& kernel() { return launch_.kernel; }
  int below(int n) { return static_cast<int>(engine_() % static_cast<uint32_t>(n)); }
  bool one_in(int n) { return below(n) == 0; }
  template <class List>
  auto pick(const List& list) {
    return list[below(static_cast<int>(list.size()))];
  }
  bool is_reduced(int d) const { return launch_.space.reduced >> d & 1; }
  bool is_scalar(ValueId id) { return kernel().instrs[id].op == P::scalar; }
  bool has_reduced() const { return launch_.space.reduced != 0; }

  void make_space() {
    device::Space& space = launch_.space;
    int64_t points = 1;
    for (int d = 0, rank = below(5); d < rank; ++d) {
      const int64_t size = std::min<int64_t>(4000 / points, one_in(4) ? 2 + below(2100) : 2 + below(20));
      if (size < 2) break;  // dimensions of size 1 are no part of a space
      space.sizes[space.rank++] = size;
      points *= size;
    }
    if (space.rank > 0 && !one_in(3)) space.reduced = static_cast<uint32_t>(below(1 << space.rank));
  }

  /// Dense strides in a random order of the dimensions, sometimes with gaps; zero where the operand does not vary.
  device::OperandView layout(Level level, bool injective, int64_t* extent) {
    std::vector<int> order(launch_.space.rank);
    std::iota(order.begin(), order.end(), 0);
    if (one_in(2))
      std::reverse(order.begin(), order.end());  // row-major
    else
      std::shuffle(order.begin(), order.end(), engine_);
    device::OperandView view;
    view.offset = one_in(3) ? below(40) : 0;
    int64_t stride = one_in(4) ? 1 + below(3) : 1;
    *extent = view.offset + 1;
    for (int d : order) {
      const int64_t size = launch_.space.sizes[d];
      if ((level == Level::kept && is_reduced(d)) || (!injective && one_in(6))) continue;
      view.strides[d] = stride;
      *extent += stride * (size - 1);
      stride *= size;
      if (one_in(8)) stride += below(5);
    }
    return view;
  }

  int32_t add_operand(DType type, Level level, bool injective) {
    int64_t extent;
    TestOperand operand;
    operand.view = layout(level, injective, &extent);
    operand.memory.resize(extent * size_of(type));
    for (int64_t i = 0; i < extent; ++i) write_random(operand.memory.data() + i * size_of(type), type);
    launch_.operands.push_back(std::move(operand));
    kernel().operands.push_back(type);
    return static_cast<int32_t>(kernel().operands.size()) - 1;
  }

  double random_double() {
    static constexpr double kSpecial[] = {0.0,       -0.0, 1.0,    -1.0,    0.5,  INFINITY,
                                          -INFINITY, NAN,  1e-310, 65504.0, 3e38, 1e-40};
    if (one_in(16)) return pick(std::vector<double>(std::begin(kSpecial), std::end(kSpecial)));
    return std::normal_distribution<double>(0, one_in(4) ? 100 : 2)(engine_);
  }
  int64_t random_int() {
    if (one_in(16)) return one_in(2) ? std::numeric_limits<int64_t>::min() : -1;
    return one_in(3) ? static_cast<int64_t>(uint64_t{engine_()} << 32 | engine_()) : below(20) - 6;
  }
  void write_random(char* to, DType type) {
    const auto put = [&](auto value) { std::memcpy(to, &value, sizeof value); };
    switch (type) {
      case DType::kBool: return put(one_in(2));
      case DType::kF32: return put(static_cast<float>(random_double()));
      case DType::kF64: return put(random_double());
      case DType::kF16:
      case DType::kBF16: return put(static_cast<uint16_t>(engine_()));
      default: {
        const int64_t value = random_int();
        std::memcpy(to, &value, size_of(type));
      }
    }
  }

  ValueId append(P op, DType type, Level level, ValueId a = kNoValue, ValueId b = kNoValue, ValueId c = kNoValue,
                 int32_t index = -1) {
    kernel().instrs.push_back({op, type, result_type(op, type), level, index, a, b, c});
    return static_cast<ValueId>(kernel().instrs.size()) - 1;
  }

  Level random_level() { return has_reduced() && one_in(3) ? Level::kept : Level::full; }

  void load() {
    const Level level = random_level();
    const DType type = pick(kMemoryTypes);
    append(P::load, type, level, kNoValue, kNoValue, kNoValue, add_operand(type, level, one_in(2)));
  }

  void scalar() {
    const DType type = one_in(8) ? DType::kF16 : pick(kComputeTypes);
    kernel().scalars.push_back(type);
    const double number = random_double();
    uint64_t word = static_cast<uint64_t>(random_int());
    if (is_floating(type)) std::memcpy(&word, &number, sizeof word);
    launch_.scalars.push_back(word);
    append(P::scalar, type, Level::full, kNoValue, kNoValue, kNoValue,
           static_cast<int32_t>(launch_.scalars.size()) - 1);
  }

  void iota() {
    TestOperand operand;
    const Level level = random_level();
    operand.view.offset = below(200);
    for (int d = 0; d < launch_.space.rank; ++d) {
      operand.view.strides[d] = level == Level::kept && is_reduced(d) ? 0 : below(70);
    }
    if (one_in(2)) row_major(operand.view, level);
    launch_.operands.push_back(operand);
    kernel().operands.push_back(DType::kI64);
    append(P::iota, DType::kI64, level, kNoValue, kNoValue, kNoValue,
           static_cast<int32_t>(kernel().operands.size()) - 1);
  }
  void row_major(device::OperandView& view, Level level) {
    int64_t stride = 1;
    for (int d = launch_.space.rank - 1; d >= 0; --d) {
      if (level == Level::kept && is_reduced(d)) continue;
      view.strides[d] = stride;
      stride *= launch_.space.sizes[d];
    }
  }

  ValueId any_value() {
    while (true) {
      // Recent values are preferred, so that chains grow.
      const int n = static_cast<int>(kernel().instrs.size());
      const ValueId id = one_in(2) ? below(n) : n - 1 - below(std::min(n, 5));
      if (kernel().instrs[id].op != P::store) return id;
    }
  }
  ValueId value_of(DType type) {
    ValueId id = any_value();
    for (int i = 0; i < 4 && kernel().instrs[id].out != type; ++i) id = any_value();
    while (is_complex(kernel().instrs[id].out)) id = any_number();
    const Instr& instr = kernel().instrs[id];
    if (instr.out == type) return id;
    const DType from = instr.out;
    const Level level = is_scalar(id) ? random_level() : instr.level;
    kernel().instrs.push_back({P::cast, from, type, level, -1, id});
    return static_cast<ValueId>(kernel().instrs.size()) - 1;
  }
  /// A value that is not complex; there may be none yet, then one is made.
  ValueId any_number() {
    for (int i = 0; i < 20; ++i) {
      const ValueId id = any_value();
      if (!is_complex(kernel().instrs[id].out)) return id;
    }
    iota();
    return static_cast<ValueId>(kernel().instrs.size()) - 1;
  }

  ValueId at_full_level(ValueId id) {
    const Instr& instr = kernel().instrs[id];
    if (is_scalar(id) || instr.level == Level::full) return id;
    return append(P::broadcast, instr.out, Level::full, id);
  }

  /// One more instruction, with what it needs.
  void step() {
    if (one_in(12)) return load();
    if (one_in(15)) return iota();
    if (one_in(12)) return store(any_value());
    const P op = static_cast<P>(below(kPrimitiveCount));
    // A NaN's sign is not defined; copysign would make it visible.
    if (op <= P::broadcast || op == P::copysign) return;
    if (is_reduction(op) && (!has_reduced() || one_in(2))) return;
    std::vector<DType> types;
    for (DType type : kComputeTypes) {
      if (is_defined(op, type)) types.push_back(type);
    }
    const DType type = pick(types);
    std::array<ValueId, 3> inputs = {kNoValue, kNoValue, kNoValue};
    for (int i = 0; i < arity_of(op); ++i) inputs[i] = value_of(op == P::select && i == 0 ? DType::kBool : type);
    bool full = is_reduction(op), kept = false;
    for (ValueId id : inputs) {
      if (id == kNoValue || is_scalar(id)) continue;
      (kernel().instrs[id].level == Level::full ? full : kept) = true;
    }
    if (!full && !kept) full = random_level() == Level::full;
    if (full) {
      for (ValueId& id : inputs) id = id == kNoValue ? id : at_full_level(id);
    }
    append(op, type, full && !is_reduction(op) ? Level::full : Level::kept, inputs[0], inputs[1], inputs[2]);
  }

  /// Stores to an operand of its own, or in place of one that has been loaded.
  void store(ValueId id) {
    const Instr value = kernel().instrs[id];
    const Level level = is_scalar(id) ? random_level() : value.level;
    int32_t operand = -1;
    for (const Instr& instr : kernel().instrs) {
      if (instr.op == P::load && instr.type == value.out && instr.level == level && is_injective(instr.index, level) &&
          !is_stored(instr.index) && one_in(2)) {
        operand = instr.index;
      }
    }
    if (operand < 0) operand = add_operand(value.out, level, true);
    append(P::store, value.out, level, id, kNoValue, kNoValue, operand);
  }
  bool is_injective(int32_t operand, Level level) {
    for (int d = 0; d < launch_.space.rank; ++d) {
      const bool varies = level == Level::full || !is_reduced(d);
      if (varies && launch_.space.sizes[d] > 1 && launch_.operands[operand].view.strides[d] == 0) return false;
    }
    return true;
  }
  bool is_stored(int32_t operand) {
    return std::any_of(kernel().instrs.begin(), kernel().instrs.end(),
                       [&](const Instr& i) { return i.op == P::store && i.index == operand; });
  }

  std::mt19937 engine_;
  TestLaunch launch_;
};

}  // namespace ae::fusion::testing
