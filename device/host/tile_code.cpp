#include "device/host/tile_code.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace ae::device::host {

namespace {

/// Cells of scalars while the number of values is not known yet.
constexpr uint16_t kScalarMark = 0x8000;

[[noreturn]] void reject(const TileInstr& instr, const std::string& why) {
  throw std::invalid_argument(std::string("tile program: ") + name_of(instr.op) + "(" + name_of(instr.type) +
                              "): " + why);
}

}  // namespace

/// State of the translation.
struct TileCode::Draft {
  std::vector<int> current;   // value that each register holds, -1: none
  std::vector<bool> reduced;  // per value: depends on a reduction

  uint16_t cell_of(const TileInstr& instr, TileSource source) const {
    if (source.kind == TileSource::scalar) return kScalarMark | source.index;
    if (source.kind != TileSource::reg || source.index >= current.size() || current[source.index] < 0) {
      reject(instr, "reads a register that holds nothing");
    }
    return static_cast<uint16_t>(current[source.index]);
  }
  bool depends(uint16_t cell) const { return !(cell & kScalarMark) && reduced[cell]; }
};

TileCode::TileCode(const TileProgram& program) : program_(program) {
  Draft draft;
  draft.current.assign(program.registers.size(), -1);
  for (const TileInstr& instr : program.instrs) translate(instr, draft);
  if (values_.size() + program.scalars.size() >= kScalarMark) throw std::invalid_argument("tile program: too long");

  const auto resolve = [&](uint16_t& cell) {
    if (cell & kScalarMark) cell = static_cast<uint16_t>(scalar_cell(cell & ~kScalarMark));
  };
  for (CodeInstr& instr : instrs_) {
    if (instr.kind == CodeInstr::load || instr.kind == CodeInstr::iota) continue;
    for (uint16_t* cell : {&instr.a, &instr.b, &instr.c}) resolve(*cell);
  }
  find_last_uses();
  assign_buffers();
}

void TileCode::find_last_uses() {
  for (size_t i = 0; i < instrs_.size(); ++i) {
    for_reads(*this, instrs_[i], [&](uint16_t cell) {
      if (cell < values_.size()) values_[cell].last_use = std::max(values_[cell].last_use, static_cast<int32_t>(i));
    });
  }
}

void TileCode::translate(const TileInstr& instr, Draft& draft) {
  CodeInstr out{};
  out.op = instr.op;
  out.type = instr.type;
  out.out = instr.out;
  out.level = instr.level;
  out.size = static_cast<uint8_t>(size_of(instr.op == Primitive::store ? instr.type : instr.out));
  out.operand = instr.operand;
  const bool names_operand = instr.op == Primitive::load || instr.op == Primitive::store || instr.op == Primitive::iota;
  if (names_operand && instr.operand >= program_.operands.size()) reject(instr, "no such operand");
  (instr.level == Level::full ? full_cost_ : kept_cost_) += cost_of(instr.op, instr.type);

  switch (instr.op) {
    case Primitive::load: out.kind = CodeInstr::load; break;
    case Primitive::iota: out.kind = CodeInstr::iota; break;
    case Primitive::store: out.kind = CodeInstr::store; break;
    case Primitive::broadcast:
      out.kind = instr.a.kind == TileSource::scalar ? CodeInstr::element : CodeInstr::broadcast;
      break;
    default: out.kind = is_reduction(instr.op) ? CodeInstr::reduce : CodeInstr::element;
  }
  if (out.kind == CodeInstr::reduce) {
    out.level = Level::full;
    out.reducer = reduce_kernels(instr.op, instr.type);
    if (!out.reducer) reject(instr, "no such reduction");
    out.reduction = static_cast<uint16_t>(reductions_.size());
    reductions_.push_back(out.size);
  }
  element_instr(instr, draft, out);
}

void TileCode::element_instr(const TileInstr& instr, Draft& draft, CodeInstr out) {
  const auto emit_value = [&](CodeInstr value, Level level, bool reduced) {
    value.dst = static_cast<uint16_t>(values_.size());
    const auto at = static_cast<int32_t>(instrs_.size());
    values_.push_back({level, value.size, 0, at, at});
    draft.reduced.push_back(reduced);
    instrs_.push_back(value);
    return value.dst;
  };
  // Scalars where a kernel wants a block of elements.
  const auto materialize = [&](uint16_t& cell, DType type) {
    if (!(cell & kScalarMark)) return;
    CodeInstr fill = out;
    fill.kind = CodeInstr::element;
    fill.op = Primitive::scalar;
    fill.type = fill.out = type;
    fill.size = static_cast<uint8_t>(size_of(type));
    fill.kernel = fill_kernel(fill.size);
    fill.a = fill.b = fill.c = cell;
    fill.phase = fill.level == Level::full ? Phase::full : Phase::before;
    cell = emit_value(fill, fill.level, false);
  };

  const int input_size = static_cast<int>(size_of(instr.type));
  const int arity = arity_of(instr.op);
  if (arity > 0) out.a = draft.cell_of(instr, instr.a);
  if (arity > 1) out.b = draft.cell_of(instr, instr.b);
  if (arity > 2) out.c = draft.cell_of(instr, instr.c);

  if (out.kind == CodeInstr::element) {
    if (instr.op == Primitive::scalar || instr.op == Primitive::broadcast) {
      if (instr.a.kind != TileSource::scalar) reject(instr, "wants a scalar");
      out.a = kScalarMark | instr.a.index;
      out.op = Primitive::scalar;
      out.type = out.out;
      out.kernel = fill_kernel(out.size);
    } else if (instr.op == Primitive::select) {
      materialize(out.a, DType::kBool);
      if ((out.b & kScalarMark) && (out.c & kScalarMark)) materialize(out.b, instr.type);
      out.kernel = select_kernel(input_size, out.b & kScalarMark   ? Operands::sv
                                             : out.c & kScalarMark ? Operands::vs
                                                                   : Operands::vv);
    } else if (instr.op == Primitive::random_bits) {
      materialize(out.a, DType::kI64);
      const bool scalar_key = (out.b & kScalarMark) && (out.c & kScalarMark);
      if (!scalar_key) {
        materialize(out.b, DType::kI64);
        materialize(out.c, DType::kI64);
      }
      out.kernel = random_kernel(scalar_key);
    } else if (arity == 2) {
      if ((out.a & kScalarMark) && (out.b & kScalarMark)) materialize(out.a, instr.type);
      out.kernel = binary_kernel(instr.op, instr.type,
                                 out.a & kScalarMark   ? Operands::sv
                                 : out.b & kScalarMark ? Operands::vs
                                                       : Operands::vv);
    } else {
      materialize(out.a, instr.type);
      out.kernel =
          instr.op == Primitive::cast ? cast_kernel(instr.type, instr.out) : unary_kernel(instr.op, instr.type);
    }
    if (!out.kernel) reject(instr, "not defined for this dtype");
  } else if (arity == 1) {
    materialize(out.a, instr.type);
  }
  if (arity < 2) out.b = out.a;
  if (arity < 3) out.c = out.b;

  bool reduced = out.kind == CodeInstr::reduce;
  for (uint16_t cell : {out.a, out.b, out.c}) reduced |= arity > 0 && draft.depends(cell);
  out.phase = out.level == Level::full                  ? Phase::full
              : reduced || out.kind == CodeInstr::store ? Phase::after
                                                        : Phase::before;
  if (program_.separable && out.phase == Phase::full && out.kind != CodeInstr::reduce && reduced) {
    reject(instr, "depends on a reduction in a program that says it is separable");
  }
  if (out.kind == CodeInstr::store) {
    instrs_.push_back(out);
    return;
  }
  const Level level = out.kind == CodeInstr::reduce ? Level::kept : out.level;
  const uint16_t value = emit_value(out, level, reduced);
  if (instr.dst >= draft.current.size()) reject(instr, "no such register");
  draft.current[instr.dst] = value;
}

/// Full-level values share buffers in the order of the program; kept-level ones, which are small and may live across
/// phases, have one each.
void TileCode::assign_buffers() {
  std::vector<uint16_t> spare[9];  // by element size
  std::vector<std::vector<int>> dying(instrs_.size());
  for (size_t v = 0; v < values_.size(); ++v) dying[values_[v].last_use].push_back(static_cast<int>(v));
  const auto place = [&](uint16_t cell, int32_t at) {
    CodeValue& value = values_[cell];
    auto& pool = spare[value.size];
    if (value.level == Level::full && !pool.empty()) {
      value.buffer = pool.back();
      pool.pop_back();
    } else {
      value.buffer = static_cast<uint16_t>(buffers_.size());
      buffers_.push_back({value.level, value.size});
    }
    if (value.last_use == at && value.level == Level::full) pool.push_back(value.buffer);
  };
  for (size_t i = 0; i < instrs_.size(); ++i) {
    const CodeInstr& instr = instrs_[i];
    // An element-wise result may take the place of an operand that is read here for the last time.
    const bool in_place = instr.kind == CodeInstr::element || instr.kind == CodeInstr::compiled;
    const auto release_dying = [&] {
      for (int v : dying[i]) {
        if (values_[v].level == Level::full && values_[v].definition != static_cast<int32_t>(i)) {
          spare[values_[v].size].push_back(values_[v].buffer);
        }
      }
    };
    if (in_place) release_dying();
    if (instr.kind == CodeInstr::compiled) {
      for (const uint16_t cell : runs_[instr.run].writes) place(cell, static_cast<int32_t>(i));
    } else if (instr.kind != CodeInstr::store) {
      place(instr.dst, static_cast<int32_t>(i));
    }
    if (!in_place) release_dying();
  }
}

}  // namespace ae::device::host
