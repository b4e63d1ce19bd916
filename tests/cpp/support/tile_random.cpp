// The maker of random tile programs.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "fusion/ir/element.h"
#include "tests/cpp/tile_reference.h"

namespace ae::device::host::testing {
namespace {

using fusion::Element;

constexpr DType kComputed[] = {DType::kF32, DType::kF32,  DType::kF32, DType::kF64, DType::kI64,
                               DType::kI32, DType::kBool, DType::kU8,  DType::kI8,  DType::kI16,
                               DType::kU16, DType::kU32,  DType::kU64};
constexpr DType kStored[] = {DType::kF32, DType::kF16,  DType::kBF16, DType::kF64, DType::kI64,
                             DType::kI32, DType::kBool, DType::kU8,   DType::kI8,  DType::kI16,
                             DType::kU16, DType::kU32,  DType::kU64};

int64_t pick(Random& random, int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); }
template <class T, size_t N>
T pick_from(Random& random, const T (&items)[N]) {
  return items[pick(random, N)];
}

/// Numbers of ordinary size, small integers, and now and then a special value.
double random_number(Random& random) {
  switch (pick(random, 20)) {
    case 0: return 0.0;
    case 1: return -0.0;
    case 2: return INFINITY;
    case 3: return NAN;
    case 4: return 1e30;
    default: return static_cast<double>(pick(random, 2001) - 1000) / (pick(random, 2) ? 1 : 64);
  }
}
Element random_element(Random& random, DType type) {
  if (is_floating(type)) return fusion::convert(Element::of(random_number(random)), DType::kF64, type);
  if (type == DType::kBool) return Element::of(pick(random, 2) == 1);
  if (pick(random, 10) == 0) return Element::of(random());
  return Element::of(pick(random, 41) - 20);
}

struct Maker {
  Random& random;
  TileCase result;
  struct Value {
    TileSource source;
    DType type;
    Level level;
  };
  std::vector<Value> values;
  std::vector<uint16_t> spare;  // registers
  bool reduces;

  Maker(Random& r, const Space& space) : random(r) {
    result.space = space;
    reduces = space.reduced != 0;
  }

  uint16_t register_for(DType type, Level level) {
    const TileRegister wanted{level, static_cast<uint8_t>(size_of(type))};
    for (size_t i = 0; i < spare.size(); ++i) {
      if (result.program.registers[spare[i]] != wanted) continue;
      const uint16_t reg = spare[i];
      spare.erase(spare.begin() + static_cast<ptrdiff_t>(i));
      return reg;
    }
    result.program.registers.push_back(wanted);
    return static_cast<uint16_t>(result.program.registers.size() - 1);
  }

  void emit(TileInstr instr) {
    instr.dst = register_for(instr.out, is_reduction(instr.op) ? Level::kept : instr.level);
    result.program.instrs.push_back(instr);
    values.push_back({{TileSource::reg, instr.dst}, instr.out, is_reduction(instr.op) ? Level::kept : instr.level});
  }

  /// Forgets a value, so that its register is used again.
  void forget_one() {
    const size_t v = pick(random, static_cast<int64_t>(values.size()));
    if (values[v].source.kind == TileSource::reg) spare.push_back(values[v].source.index);
    values.erase(values.begin() + static_cast<ptrdiff_t>(v));
  }

  bool in_level(int d, Level level) const { return level == Level::full || !((result.space.reduced >> d) & 1); }

  /// A view of a new block: dense in some order of the dimensions, with gaps, steps backwards or (only for reading)
  /// broadcast dimensions.
  int new_operand(DType type, Level level, bool for_reading) {
    const Space& space = result.space;
    std::vector<int> order;
    for (int d = 0; d < space.rank; ++d) order.push_back(d);
    if (pick(random, 3) == 0) std::shuffle(order.begin(), order.end(), random);
    OperandView view;
    int64_t extent = 1, lowest = 0;
    const int64_t gap = pick(random, 3) == 0 ? 2 : 1;
    for (int i = space.rank - 1; i >= 0; --i) {
      const int d = order[i];
      if (!in_level(d, level) || (for_reading && pick(random, 5) == 0)) continue;
      view.strides[d] = extent * gap;
      extent *= space.sizes[d];
      if (pick(random, 12) == 0) {
        lowest += (space.sizes[d] - 1) * view.strides[d];
        view.strides[d] = -view.strides[d];
      }
    }
    view.offset = lowest + pick(random, 5);
    const int64_t elements = extent * gap + view.offset + pick(random, 9);
    std::vector<std::byte> block(elements * size_of(type));
    for (int64_t e = 0; e < elements; ++e) {
      const Element x = random_element(random, type);
      std::memcpy(block.data() + e * size_of(type), &x, size_of(type));
    }
    result.memory.push_back(std::move(block));
    result.memory_types.push_back(type);
    return add_operand(type, view, static_cast<int>(result.memory.size()) - 1);
  }

  int add_operand(DType type, const OperandView& view, int slot) {
    result.program.operands.push_back(type);
    result.views.push_back(view);
    result.slots.push_back(slot);
    return static_cast<int>(result.views.size()) - 1;
  }

  void add_load() {
    const DType type = pick_from(random, kStored);
    const Level level = reduces && pick(random, 4) == 0 ? Level::kept : Level::full;
    TileInstr instr{};
    instr.op = Primitive::load;
    instr.type = instr.out = type;
    instr.level = level;
    instr.operand = static_cast<uint16_t>(new_operand(type, level, true));
    emit(instr);
  }

  void add_iota() {
    OperandView view;
    int64_t extent = 1;
    for (int d = result.space.rank - 1; d >= 0; --d) {
      view.strides[d] = extent;
      extent *= result.space.sizes[d];
    }
    view.offset = pick(random, 2) * pick(random, 200);
    TileInstr instr{};
    instr.op = Primitive::iota;
    instr.type = instr.out = DType::kI64;
    instr.level = Level::full;
    instr.operand = static_cast<uint16_t>(add_operand(DType::kI64, view, -1));
    emit(instr);
  }

  TileSource add_scalar(DType type) {
    uint64_t word;
    if (is_floating(type)) {
      const double number = random_number(random);
      std::memcpy(&word, &number, 8);
    } else {
      word = static_cast<uint64_t>(pick(random, 41) - 20);
      if (type == DType::kBool) word &= 1;
    }
    result.program.scalars.push_back(type);
    result.scalars.push_back(word);
    return {TileSource::scalar, static_cast<uint16_t>(result.scalars.size() - 1)};
  }

  /// A value of a type at a level; makes one when there is none.
  TileSource operand_of(DType type, Level level) {
    std::vector<size_t> fitting;
    for (size_t v = 0; v < values.size(); ++v) {
      if (values[v].type == type && values[v].level == level) fitting.push_back(v);
    }
    if (!fitting.empty() && pick(random, 8) != 0)
      return values[fitting[pick(random, static_cast<int64_t>(fitting.size()))]].source;
    if (pick(random, 3) == 0) return add_scalar(type);
    std::vector<size_t> others;
    for (size_t v = 0; v < values.size(); ++v) {
      if (values[v].level == level) others.push_back(v);
    }
    if (others.empty()) return add_scalar(type);
    const Value from = values[others[pick(random, static_cast<int64_t>(others.size()))]];
    TileInstr cast{};
    cast.op = Primitive::cast;
    cast.type = from.type;
    cast.out = type;
    cast.level = level;
    cast.a = from.source;
    emit(cast);
    return values.back().source;
  }

  static bool defined(Primitive op, DType type) {
    if (op == Primitive::select) return true;
    if (arity_of(op) == 2) {
      if (type == DType::kBool && (op == Primitive::sub || op == Primitive::maximum || op == Primitive::minimum ||
                                   op == Primitive::fmax || op == Primitive::fmin)) {
        return false;  // the reference has no meaning for them
      }
      return binary_kernel(op, type, Operands::vv) != nullptr;
    }
    if (type == DType::kBool && op != Primitive::logical_not && op != Primitive::bitwise_not) return false;
    return unary_kernel(op, type) != nullptr;
  }

  void add_pointwise(Level level) {
    const DType type = pick_from(random, kComputed);
    const auto op = static_cast<Primitive>(pick(random, kPrimitiveCount));
    const bool pointwise = op >= Primitive::neg && op <= Primitive::select;
    if (!pointwise || !defined(op, type)) return;
    TileInstr instr{};
    instr.op = op;
    instr.type = instr.out = type;
    instr.level = level;
    if (is_comparison(op) || op == Primitive::logical_not || op == Primitive::is_nan || op == Primitive::is_inf) {
      instr.out = DType::kBool;
    }
    if (op == Primitive::select) {
      instr.a = operand_of(DType::kBool, level);
      instr.b = operand_of(type, level);
      instr.c = operand_of(type, level);
    } else {
      instr.a = operand_of(type, level);
      if (arity_of(op) == 2) instr.b = operand_of(type, level);
    }
    emit(instr);
  }

  void add_random_bits() {
    TileInstr instr{};
    instr.op = Primitive::random_bits;
    instr.type = instr.out = DType::kI64;
    instr.level = Level::full;
    add_iota();
    instr.a = values.back().source;
    instr.b = pick(random, 4) == 0 ? operand_of(DType::kI64, Level::full) : add_scalar(DType::kI64);
    instr.c = pick(random, 4) == 0 ? operand_of(DType::kI64, Level::full) : add_scalar(DType::kI64);
    emit(instr);
  }

  void add_reduction() {
    const DType type = pick_from(random, kComputed);
    TileInstr instr{};
    instr.op = type == DType::kBool ? (pick(random, 2) ? Primitive::reduce_any : Primitive::reduce_all)
                                    : static_cast<Primitive>(static_cast<int>(Primitive::reduce_sum) + pick(random, 4));
    instr.type = instr.out = type;
    instr.level = Level::full;
    instr.a = operand_of(type, Level::full);
    emit(instr);
  }

  void add_broadcast() {
    std::vector<Value> kept;
    for (const Value& value : values) {
      if (value.level == Level::kept) kept.push_back(value);
    }
    if (kept.empty()) return;
    const Value from = kept[pick(random, static_cast<int64_t>(kept.size()))];
    TileInstr instr{};
    instr.op = Primitive::broadcast;
    instr.type = instr.out = from.type;
    instr.level = Level::full;
    instr.a = from.source;
    emit(instr);
  }

  void add_store(const Value& value) {
    TileInstr instr{};
    instr.op = Primitive::store;
    instr.type = instr.out = value.type;
    instr.level = value.level;
    instr.a = value.source;
    instr.operand = static_cast<uint16_t>(store_operand(value));
    result.program.instrs.push_back(instr);
  }

  /// A new block, or the memory of a load of the same type and level that has every element at its own place.
  int store_operand(const Value& value) {
    for (size_t i = 0; i < result.program.instrs.size() && pick(random, 2) == 0; ++i) {
      const TileInstr load = result.program.instrs[i];
      if (load.op != Primitive::load || load.type != value.type || load.level != value.level) continue;
      const int slot = result.slots[load.operand];
      bool taken = false;
      for (const TileInstr& other : result.program.instrs) {
        taken |= other.op == Primitive::store && result.slots[other.operand] == slot;
      }
      for (int d = 0; d < result.space.rank; ++d) {
        taken |= in_level(d, value.level) && result.space.sizes[d] > 1 && result.views[load.operand].strides[d] == 0;
      }
      if (!taken) return add_operand(value.type, OperandView(result.views[load.operand]), slot);
    }
    return new_operand(value.type, value.level, false);
  }
};

/// Whether full-level values depend on reductions.
bool is_separable(const TileProgram& program) {
  std::vector<bool> depends(program.registers.size());
  for (const TileInstr& instr : program.instrs) {
    bool reduced = is_reduction(instr.op);
    for (TileSource s : {instr.a, instr.b, instr.c}) reduced |= s.kind == TileSource::reg && depends[s.index];
    if (reduced && instr.level == Level::full && !is_reduction(instr.op)) return false;
    if (is_reduction(instr.op) && instr.a.kind == TileSource::reg && depends[instr.a.index]) return false;
    if (instr.op != Primitive::store) depends[instr.dst] = reduced;
  }
  return true;
}

}  // namespace

Space random_space(Random& random, int64_t points, bool with_reduction) {
  Space space;
  space.rank = static_cast<int>(1 + pick(random, 4));
  int64_t left = points;
  for (int d = 0; d < space.rank; ++d) {
    const int64_t size =
        d + 1 == space.rank ? left : std::max<int64_t>(2, 1 + pick(random, std::max<int64_t>(2, left / 2)));
    space.sizes[d] = std::max<int64_t>(1, size);
    left = std::max<int64_t>(1, left / space.sizes[d]);
  }
  std::shuffle(space.sizes, space.sizes + space.rank, random);
  if (with_reduction) space.reduced = static_cast<uint32_t>(1 + pick(random, (1 << space.rank) - 1));
  return space;
}

TileCase random_case(Random& random, const Space& space, int operations) {
  Maker maker(random, space);
  const bool split_friendly = maker.reduces && pick(random, 2) == 0;  // no broadcasts of reductions' results
  for (int64_t i = 0, n = 1 + pick(random, 3); i < n; ++i) maker.add_load();
  for (int i = 0; i < operations; ++i) {
    const int64_t kind = pick(random, 20);
    if (kind == 0)
      maker.add_load();
    else if (kind == 1)
      maker.add_random_bits();
    else if (kind < 5 && maker.reduces)
      maker.add_reduction();
    else if (kind < 8 && maker.reduces && !split_friendly)
      maker.add_broadcast();
    else if (kind == 8 && maker.values.size() > 4)
      maker.forget_one();
    else
      maker.add_pointwise(maker.reduces && pick(random, 3) == 0 ? Level::kept : Level::full);
  }
  if (maker.reduces) maker.add_reduction();
  std::shuffle(maker.values.begin(), maker.values.end(), random);
  const size_t stores = std::min<size_t>(maker.values.size(), 1 + pick(random, 4));
  for (size_t i = 0; i < stores; ++i) maker.add_store(maker.values[i]);
  maker.result.program.separable = is_separable(maker.result.program);
  return std::move(maker.result);
}

}  // namespace ae::device::host::testing
