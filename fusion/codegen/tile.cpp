#include "fusion/codegen/tile.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace ae::fusion {
namespace {

using device::TileInstr;
using device::TileProgram;
using device::TileRegister;
using device::TileSource;

bool runs_at_full_level(const Instr& instr) { return instr.level == Level::full || is_reduction(instr.op); }

/// One translation. Values are named by their instruction's index in the kernel.
///
/// Instructions are sorted by phase. Full-level ones have even phases, kept-level ones odd phases: what a reduction of
/// phase 2k gives is used by kept-level code of phase 2k+1 and later, and by full-level code from phase 2k+2 on. Kept
/// values that depend on no reduction are computed in phase -1. So a machine goes through a row's elements once per
/// even phase.
class Translator {
 public:
  explicit Translator(const Kernel& kernel) : kernel_(kernel), sources_(kernel.instrs.size()) {}

  TileProgram translate() {
    program_.operands = kernel_.operands;
    program_.scalars = kernel_.scalars;
    find_live();
    assign_phases();
    order();
    assign_registers();
    emit();
    program_.name = name();
    return std::move(program_);
  }

 private:
  const Instr& at(ValueId id) const { return kernel_.instrs[id]; }
  int count() const { return static_cast<int>(kernel_.instrs.size()); }

  template <typename Function>
  void for_each_input(ValueId id, Function function) const {
    for (ValueId input : {at(id).a, at(id).b, at(id).c}) {
      if (input != kNoValue && !is_scalar(input)) function(input);
    }
  }

  /// Scalars, and broadcasts of them, are read by each instruction directly; they are no instructions of the program.
  bool is_scalar(ValueId id) const { return sources_[id].kind == TileSource::scalar; }

  void find_live() {
    for (ValueId id = 0; id < count(); ++id) {
      const Instr& instr = at(id);
      if (instr.op == Primitive::scalar) sources_[id] = {TileSource::scalar, static_cast<uint16_t>(instr.index)};
      if (instr.op == Primitive::broadcast && is_scalar(instr.a)) sources_[id] = sources_[instr.a];
    }
    live_.assign(count(), false);
    for (ValueId id = count() - 1; id >= 0; --id) {
      if (at(id).op == Primitive::store) live_[id] = true;
      if (live_[id]) for_each_input(id, [&](ValueId input) { live_[input] = true; });
    }
  }

  /// Stores stay behind the loads that precede them, whose memory may be the same, and behind stores to the same
  /// operand. (No load reads what the kernel has stored: such a value is used directly.)
  void assign_phases() {
    phase_.assign(count(), -1);
    int after_loads = -1;
    std::vector<int> after_stores(kernel_.operands.size(), -1);
    for (ValueId id = 0; id < count(); ++id) {
      if (!live_[id] || is_scalar(id)) continue;
      const Instr& instr = at(id);
      int phase = -1;
      for_each_input(id, [&](ValueId input) { phase = std::max(phase, phase_[input] + is_reduction(at(input).op)); });
      if (instr.op == Primitive::store) phase = std::max({phase, after_loads, after_stores[instr.index]});
      const bool wants_even = runs_at_full_level(instr);
      if ((phase % 2 == 0) != wants_even) ++phase;
      phase_[id] = phase;
      if (instr.op == Primitive::load) after_loads = std::max(after_loads, phase);
      if (instr.op == Primitive::store) after_stores[instr.index] = phase;
      if (wants_even && phase > 0) program_.separable = false;
    }
  }

  /// Depth first from each store, so that a value is made just before its first use and stored as soon as it exists.
  /// What needs more registers goes first, then all is sorted by phase.
  void order() {
    weigh();
    placed_.assign(count(), false);
    std::vector<ValueId> loads;
    size_t next_load = 0;
    for (ValueId id = 0; id < count(); ++id) {
      if (!live_[id]) continue;
      if (at(id).op == Primitive::load) loads.push_back(id);
      if (at(id).op != Primitive::store) continue;
      for_each_input(id, [&](ValueId input) { place(input); });
      for (; next_load < loads.size(); ++next_load) place(loads[next_load]);
      order_.push_back(id);
    }
    std::stable_sort(order_.begin(), order_.end(), [&](ValueId x, ValueId y) { return phase_[x] < phase_[y]; });
  }

  /// Registers that computing a value takes if nothing is shared (Sethi and Ullman's number).
  void weigh() {
    weight_.assign(count(), 1);
    for (ValueId id = 0; id < count(); ++id) {
      std::vector<int> weights;
      for_each_input(id, [&](ValueId input) { weights.push_back(weight_[input]); });
      std::sort(weights.rbegin(), weights.rend());
      for (size_t i = 0; i < weights.size(); ++i) weight_[id] = std::max(weight_[id], weights[i] + static_cast<int>(i));
    }
  }

  void place(ValueId root) {
    std::vector<std::pair<ValueId, bool>> stack{{root, false}};  // value, its inputs have been pushed
    while (!stack.empty()) {
      auto [id, expanded] = stack.back();
      stack.pop_back();
      if (placed_[id] || is_scalar(id)) continue;
      if (expanded) {
        placed_[id] = true;
        order_.push_back(id);
        continue;
      }
      stack.emplace_back(id, true);
      const size_t first = stack.size();
      for_each_input(id, [&](ValueId input) { stack.emplace_back(input, false); });
      // The last one pushed is placed first: the heaviest; among equals the one written first.
      std::reverse(stack.begin() + first, stack.end());
      std::stable_sort(stack.begin() + first, stack.end(),
                       [&](const auto& x, const auto& y) { return weight_[x.first] < weight_[y.first]; });
    }
  }

  /// Linear scan in the program's order. Kept registers that full-level code reads, or reductions fill, are never used
  /// for anything else: that code runs again for each block of a row, and for several rows in turn.
  void assign_registers() {
    std::vector<int> last_use(count(), -1);
    std::vector<bool> pinned(count(), false);
    for (size_t i = 0; i < order_.size(); ++i) {
      const ValueId id = order_[i];
      if (is_reduction(at(id).op)) pinned[id] = true;
      for_each_input(id, [&](ValueId input) {
        last_use[input] = static_cast<int>(i);
        if (at(input).level == Level::kept && phase_[input] != phase_[id]) pinned[input] = true;
      });
    }
    std::map<std::pair<Level, int64_t>, std::vector<uint16_t>> free;
    for (size_t i = 0; i < order_.size(); ++i) {
      const ValueId id = order_[i];
      const auto key_of = [&](ValueId value) { return std::pair(at(value).level, size_of(at(value).out)); };
      for_each_input(id, [&](ValueId input) {
        if (last_use[input] != static_cast<int>(i) || pinned[input]) return;
        last_use[input] = -1;  // an input named twice dies once
        free[key_of(input)].push_back(sources_[input].index);
      });
      if (at(id).op == Primitive::store) continue;
      auto& candidates = free[key_of(id)];
      uint16_t index;
      if (candidates.empty() || pinned[id]) {
        index = static_cast<uint16_t>(program_.registers.size());
        program_.registers.push_back({at(id).level, static_cast<uint8_t>(size_of(at(id).out))});
      } else {
        index = candidates.back();
        candidates.pop_back();
      }
      sources_[id] = {TileSource::reg, index};
    }
  }

  void emit() {
    for (ValueId id : order_) {
      const Instr& instr = at(id);
      TileInstr out{};
      out.op = instr.op;
      out.type = instr.type;
      out.out = instr.out;
      out.level = is_reduction(instr.op) ? Level::full : instr.level;
      out.dst = instr.op == Primitive::store ? 0 : sources_[id].index;
      if (instr.index >= 0) out.operand = static_cast<uint16_t>(instr.index);
      const std::pair<ValueId, TileSource*> inputs[] = {{instr.a, &out.a}, {instr.b, &out.b}, {instr.c, &out.c}};
      for (auto [value, source] : inputs) {
        if (value != kNoValue) *source = sources_[value];
      }
      program_.instrs.push_back(out);
    }
  }

  /// What it computes, in the kernel's order; data movement is left out unless there is nothing else.
  std::string name() const {
    constexpr int kMaxWords = 8;
    std::string text;
    int words = 0;
    for (ValueId id = 0; id < count(); ++id) {
      if (!live_[id] || at(id).op <= Primitive::broadcast) continue;
      if (words++ < kMaxWords) text += (text.empty() ? "" : " ") + std::string(name_of(at(id).op));
    }
    if (words > kMaxWords) text += " (+" + std::to_string(words - kMaxWords) + ")";
    return words > 0 ? text : "copy";
  }

  const Kernel& kernel_;
  TileProgram program_;
  std::vector<TileSource> sources_;
  std::vector<bool> live_, placed_;
  std::vector<int> phase_, weight_;
  std::vector<ValueId> order_;
};

}  // namespace

TileProgram to_tile_program(const Kernel& kernel) { return Translator(kernel).translate(); }

}  // namespace ae::fusion
