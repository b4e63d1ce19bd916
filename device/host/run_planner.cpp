#include "device/host/run_planner.h"

#include <algorithm>
#include <array>
#include <utility>

namespace ae::device::host {

namespace {
constexpr std::ptrdiff_t kShortestRun = 2;  // operations: a single one has its tile kernel
constexpr size_t kLongestRun = 256;         // instructions: compilers take more than linear time
constexpr double kNativeShare = 0.35;       // of an operation's cost is left when its operands are in registers
}  // namespace

class RunPlanner {
 public:
  RunPlanner(const TileCode& code, bool rows, native::CompilerProcess& compiler)
      : code_(code), rows_(rows), compiler_(compiler), done_(code.instrs().size(), 0) {}

  std::shared_ptr<const TileCode> plan() {
    schedule();
    if (std::none_of(groups_.begin(), groups_.end(), [](const Group& group) { return group.is_run; })) return nullptr;
    std::shared_ptr<TileCode> native(new TileCode);
    native_ = native.get();
    native_->program_ = code_.program_;
    native_->reductions_ = code_.reductions_;
    native_->kept_cost_ = code_.kept_cost_;
    for (const Group& group : groups_) {
      if (group.is_run)
        add_run(group.members);
      else
        for (const int i : group.members) add_instr(code_.instrs()[i]);
    }
    name_scalars();
    native_->find_last_uses();
    native_->assign_buffers();
    native_->run_code_ = compiler_.compile(drafts_);
    for (size_t r = 0; r < drafts_.size(); ++r) native_->runs_[r].function = native_->run_code_->functions()[r];
    return native;
  }

 private:
  struct Group {
    std::vector<int> members;  // instructions
    bool is_run = false;
  };

  // ---------------------------------------------------------------------------------------------------- The order

  /// Alternates between everything that can be done outside of runs and the longest run that is then possible. Loads
  /// may move up, since no instruction reads what a store before it wrote; stores keep their order.
  void schedule() {
    const auto count = static_cast<int>(code_.instrs().size());
    for (int left = count; left > 0;) {
      Group singles{take(done_.size(), [&](int i) { return !in_runs(i) && !is_store(i); })};
      Group run{take(kLongestRun, [&](int i) { return in_runs(i); })};
      Group stores{take_stores()};
      const auto operations = std::count_if(run.members.begin(), run.members.end(),
                                            [&](int i) { return code_.instrs()[i].kind == CodeInstr::element; });
      run.is_run = operations >= kShortestRun;
      for (Group* group : {&singles, &run, &stores}) {
        left -= static_cast<int>(group->members.size());
        if (!group->members.empty()) groups_.push_back(std::move(*group));
      }
    }
  }

  bool is_store(int i) const { return code_.instrs()[i].kind == CodeInstr::store; }

  bool in_runs(int i) const {
    const CodeInstr& instr = code_.instrs()[i];
    if (instr.kind == CodeInstr::broadcast) return true;
    return instr.kind == CodeInstr::element && instr.level == Level::full &&
           compiler_.can_compile(instr.op, instr.type, instr.out);
  }

  bool is_ready(int i) const {
    bool ready = true;
    for_reads(code_, code_.instrs()[i], [&](uint16_t cell) {
      if (cell < code_.values().size()) ready &= done_[code_.values()[cell].definition] != 0;
    });
    return ready;
  }

  /// Takes ready instructions, in the order of the program; one makes those ready that read it.
  template <class F>
  std::vector<int> take(size_t at_most, F wanted) {
    std::vector<int> taken;
    for (size_t i = 0; i < done_.size() && taken.size() < at_most; ++i) {
      const auto at = static_cast<int>(i);
      if (done_[i] || !wanted(at) || !is_ready(at)) continue;
      done_[i] = 1;
      taken.push_back(at);
    }
    return taken;
  }

  std::vector<int> take_stores() {
    std::vector<int> taken;
    for (size_t i = 0; i < done_.size(); ++i) {
      const auto at = static_cast<int>(i);
      if (done_[i] || !is_store(at)) continue;
      if (!is_ready(at)) break;
      done_[i] = 1;
      taken.push_back(at);
    }
    return taken;
  }

  // ----------------------------------------------------------------------------------------------------- The code

  bool is_scalar(uint16_t cell) const { return cell >= code_.values().size(); }

  uint16_t new_value(uint16_t old) {
    CodeValue value = code_.values()[old];
    value.definition = value.last_use = static_cast<int32_t>(native_->instrs_.size());
    native_->values_.push_back(value);
    cell_of_[old] = static_cast<uint16_t>(native_->values_.size() - 1);
    return cell_of_[old];
  }

  void add_instr(CodeInstr instr) {
    if (instr.kind != CodeInstr::load && instr.kind != CodeInstr::iota) {
      for (uint16_t* cell : {&instr.a, &instr.b, &instr.c}) *cell = translated(*cell);
    }
    if (instr.kind != CodeInstr::store) instr.dst = new_value(instr.dst);
    if (instr.level == Level::full) native_->full_cost_ += cost_of(instr.op, instr.type);
    native_->instrs_.push_back(instr);
  }

  /// Cells of scalars come after those of values, whose number is not known yet.
  uint16_t translated(uint16_t cell) const {
    return is_scalar(cell) ? static_cast<uint16_t>(cell - code_.values().size() + kScalarMark) : cell_of_[cell];
  }
  void name_scalars() {
    const auto name = [&](uint16_t& cell) {
      if (cell >= kScalarMark) cell = static_cast<uint16_t>(native_->scalar_cell(cell - kScalarMark));
    };
    for (CodeInstr& instr : native_->instrs_) {
      for (uint16_t* cell : {&instr.a, &instr.b, &instr.c}) name(*cell);
    }
    for (size_t r = 0; r < drafts_.size(); ++r) {
      for (native::RunInput& input : drafts_[r].inputs) name(input.cell);
      for (uint16_t& cell : native_->runs_[r].reads) name(cell);
    }
  }

  /// Where an operand of an operation comes from, until the number of the run's inputs is known.
  struct Source {
    bool is_input;
    uint16_t index;
  };

  void add_run(const std::vector<int>& members) {
    native::Run run;
    CodeRun code_run{};
    std::vector<std::array<Source, 3>> sources;
    std::vector<std::pair<uint16_t, Source>> made;  // by old cell
    const auto input = [&](uint16_t cell, DType type, native::RunInput::Kind kind) {
      const uint16_t own = translated(cell);
      for (size_t i = 0; i < run.inputs.size(); ++i) {
        const native::RunInput& known = run.inputs[i];
        if (known.cell == own && known.type == type && known.kind == kind)
          return Source{true, static_cast<uint16_t>(i)};
      }
      run.inputs.push_back({own, type, kind});
      code_run.reads.push_back(own);
      return Source{true, static_cast<uint16_t>(run.inputs.size() - 1)};
    };
    const auto operand = [&](uint16_t cell, DType type) {
      for (const auto& [value, source] : made) {
        if (value == cell) return source;
      }
      return input(cell, type, is_scalar(cell) ? native::RunInput::scalar : native::RunInput::block);
    };
    for (const int i : members) {
      const CodeInstr& instr = code_.instrs()[i];
      if (instr.kind == CodeInstr::broadcast) {
        made.emplace_back(instr.dst,
                          input(instr.a, instr.out, rows_ ? native::RunInput::per_row : native::RunInput::per_column));
        code_run.by_row = true;
        continue;
      }
      const Source a = operand(instr.a, instr.op == Primitive::select ? DType::kBool : instr.type);
      sources.push_back({a, arity_of(instr.op) > 1 ? operand(instr.b, instr.type) : a,
                         arity_of(instr.op) > 2 ? operand(instr.c, instr.type) : a});
      made.emplace_back(instr.dst, Source{false, static_cast<uint16_t>(run.ops.size())});
      run.ops.push_back({instr.op, instr.type, instr.out, 0, 0, 0});
      native_->full_cost_ += kNativeShare * cost_of(instr.op, instr.type);
    }
    const auto number = [&](Source source) {
      return static_cast<uint16_t>(source.is_input ? source.index : run.inputs.size() + source.index);
    };
    for (size_t i = 0; i < run.ops.size(); ++i) {
      run.ops[i].a = number(sources[i][0]);
      run.ops[i].b = number(sources[i][1]);
      run.ops[i].c = number(sources[i][2]);
    }
    CodeInstr instr{};
    instr.kind = CodeInstr::compiled;
    instr.level = Level::full;
    instr.phase = Phase::full;
    instr.run = static_cast<uint16_t>(drafts_.size());
    for (const auto& [value, source] : made) {
      if (!is_read_outside(value, members)) continue;
      const uint16_t cell = new_value(value);
      run.outputs.push_back({cell, number(source)});
      code_run.writes.push_back(cell);
    }
    native_->instrs_.push_back(instr);
    native_->runs_.push_back(std::move(code_run));
    drafts_.push_back(std::move(run));
  }

  bool is_read_outside(uint16_t cell, const std::vector<int>& members) const {
    for (size_t i = 0; i < code_.instrs().size(); ++i) {
      bool reads = false;
      for_reads(code_, code_.instrs()[i], [&](uint16_t read) { reads |= read == cell; });
      if (reads && !std::binary_search(members.begin(), members.end(), static_cast<int>(i))) return true;
    }
    return false;
  }

  static constexpr uint16_t kScalarMark = 0x8000;

  const TileCode& code_;
  const bool rows_;
  native::CompilerProcess& compiler_;
  std::vector<uint8_t> done_;
  std::vector<Group> groups_;
  TileCode* native_ = nullptr;
  std::vector<native::Run> drafts_;
  std::vector<uint16_t> cell_of_ = std::vector<uint16_t>(code_.values().size(), 0);  // by old cell
};

std::shared_ptr<const TileCode> compile_runs(const TileCode& code, bool rows, native::CompilerProcess& compiler) {
  return RunPlanner(code, rows, compiler).plan();
}

}  // namespace ae::device::host
