#include "tests/cpp/tile_reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "device/host/native_tier.h"
#include "device/host/tile_machine.h"
#include "fusion/ir/element.h"

namespace ae::device::host::testing {
namespace {

using fusion::Element;
using Values = std::vector<Element>;  // of one kept point: one element, or one per reduced point

/// The canonical order, word by word as device/tile_program.h puts it.
Element reduce_canonically(Primitive op, DType type, const Values& x) {
  if (x.size() > 1024) {
    Values chunks;
    for (size_t at = 0; at < x.size(); at += 1024) {
      chunks.push_back(reduce_canonically(op, type, Values(x.begin() + at, x.begin() + std::min(at + 1024, x.size()))));
    }
    return reduce_canonically(op, type, chunks);
  }
  Values lanes(16, fusion::reduce(op, type, {}));
  for (size_t i = 0; i < x.size(); ++i) lanes[i % 16] = fusion::evaluate(op, type, lanes[i % 16], x[i], {});
  for (size_t step : {8, 4, 2, 1}) {
    for (size_t l = 0; l < step; ++l) lanes[l] = fusion::evaluate(op, type, lanes[l], lanes[l + step], {});
  }
  return lanes[0];
}

Element read(const std::vector<std::byte>& memory, int64_t index, DType type) {
  uint64_t bits = 0;
  std::memcpy(&bits, memory.data() + index * size_of(type), size_of(type));
  return Element::of(bits);
}

/// Evaluates a program at one kept point.
struct PointRun {
  const TileCase& tile_case;
  std::vector<std::vector<std::byte>>& memory;
  int64_t kept_point, reduced_points;
  std::vector<Values> registers;

  int64_t index_of(int operand, int64_t reduced_point) const {
    const Space& space = tile_case.space;
    const OperandView& view = tile_case.views[operand];
    int64_t kept = kept_point, index = view.offset;
    for (int d = space.rank - 1; d >= 0; --d) {
      if (space.sizes[d] == 0) continue;
      int64_t& rest = (space.reduced >> d) & 1 ? reduced_point : kept;
      index += rest % space.sizes[d] * view.strides[d];
      rest /= space.sizes[d];
    }
    return index;
  }

  Element source(TileSource from, int64_t i) const {
    if (from.kind == TileSource::scalar) {
      return fusion::scalar_element(tile_case.scalars[from.index], tile_case.program.scalars[from.index]);
    }
    if (from.kind == TileSource::none) return {};
    const Values& values = registers[from.index];
    return values.size() == 1 ? values[0] : values[i];
  }

  Element compute(const TileInstr& instr, int64_t i) const {
    const Element a = source(instr.a, i), b = source(instr.b, i), c = source(instr.c, i);
    switch (instr.op) {
      case Primitive::scalar:
      case Primitive::broadcast: return a;
      case Primitive::iota: return Element::of(index_of(instr.operand, i));
      case Primitive::cast: return fusion::convert(a, instr.type, instr.out);
      case Primitive::select: return a.get<bool>() ? b : c;
      case Primitive::random_bits:
        return Element::of(fusion::random_bits(a.get<int64_t>(), b.get<int64_t>(), c.get<int64_t>()));
      case Primitive::load: return read(memory[tile_case.slots[instr.operand]], index_of(instr.operand, i), instr.type);
      default: return fusion::evaluate(instr.op, instr.type, a, b, c);
    }
  }

  void run() {
    registers.resize(tile_case.program.registers.size());
    const bool reduces = tile_case.space.reduced != 0;
    for (const TileInstr& instr : tile_case.program.instrs) {
      const int64_t n = reduces && instr.level == Level::full ? reduced_points : 1;
      if (is_reduction(instr.op)) {
        Values x;
        for (int64_t i = 0; i < reduced_points; ++i) x.push_back(source(instr.a, i));
        registers[instr.dst] = {reduce_canonically(instr.op, instr.type, x)};
      } else if (instr.op == Primitive::store) {
        for (int64_t i = 0; i < n; ++i) {
          const Element value = source(instr.a, i);
          std::byte* to =
              memory[tile_case.slots[instr.operand]].data() + index_of(instr.operand, i) * size_of(instr.type);
          std::memcpy(to, &value, size_of(instr.type));
        }
      } else {
        Values result;
        for (int64_t i = 0; i < n; ++i) result.push_back(compute(instr, i));
        registers[instr.dst] = std::move(result);
      }
    }
  }
};

}  // namespace

std::vector<std::vector<std::byte>> run_slowly(const TileCase& tile_case) {
  auto memory = tile_case.memory;
  int64_t kept = 1, reduced = 1;
  const Space& space = tile_case.space;
  for (int d = 0; d < space.rank; ++d) ((space.reduced >> d) & 1 ? reduced : kept) *= space.sizes[d];
  for (int64_t k = 0; k < kept; ++k) PointRun{tile_case, memory, k, reduced, {}}.run();
  return memory;
}

std::vector<std::vector<std::byte>> run_on_machine(const TileCase& tile_case, const TileOptions& options, bool native) {
  auto memory = tile_case.memory;
  Segment segment;
  const auto code = std::make_shared<TileCode>(tile_case.program);
  segment.executable = code;
  if (native) {
    NativeTier tier(NativeTier::Mode::immediately);
    for (const bool rows : {false, true}) tier.request(code, rows);
  }
  segment.space = tile_case.space;
  for (size_t i = 0; i < tile_case.views.size(); ++i)
    segment.operands.push_back({tile_case.slots[i], tile_case.views[i]});
  for (size_t i = 0; i < tile_case.scalars.size(); ++i) segment.scalars.push_back(static_cast<int32_t>(i));
  const TilePlan plan = plan_tiles(segment, options);
  std::vector<void*> addresses;
  for (auto& block : memory) addresses.push_back(block.data());
  std::vector<std::byte> shared(plan.shared_bytes);
  run_tiles(plan, 0, plan.tiles, addresses.data(), tile_case.scalars.data(), shared.data());
  finish_tiles(plan, addresses.data(), tile_case.scalars.data(), shared.data());
  return memory;
}

std::string difference(const TileCase& tile_case, const std::vector<std::vector<std::byte>>& expected,
                       const std::vector<std::vector<std::byte>>& actual) {
  for (size_t m = 0; m < expected.size(); ++m) {
    const DType type = tile_case.memory_types[m];
    for (int64_t i = 0; i < static_cast<int64_t>(expected[m].size()) / size_of(type); ++i) {
      const Element x = read(expected[m], i, type), y = read(actual[m], i, type);
      if (std::memcmp(&x, &y, size_of(type)) == 0) continue;
      const auto number = [&](Element e) {
        return is_floating(type) ? fusion::convert(e, type, DType::kF64).get<double>() : 0;
      };
      if (is_floating(type) && std::isnan(number(x)) && std::isnan(number(y))) continue;
      return "block " + std::to_string(m) + " (" + name_of(type) + ") element " + std::to_string(i) + ": expected " +
             std::to_string(is_floating(type) ? number(x) : static_cast<double>(x.get<int64_t>())) + ", got " +
             std::to_string(is_floating(type) ? number(y) : static_cast<double>(y.get<int64_t>()));
    }
  }
  return {};
}

}  // namespace ae::device::host::testing
