#include <numeric>

#include "fusion/ir/element.h"
#include "fusion/ir/kernel.h"

namespace ae::fusion {
namespace {

using Values = std::vector<Element>;

/// The points of one level in row-major order; an index is a multi-index into the whole space.
class Points {
 public:
  Points(const device::Space& space, Level level) : space_(space), level_(level) {
    for (int d = 0; d < space.rank; ++d) {
      if (runs_over(d)) count_ *= space.sizes[d];
    }
  }
  int64_t count() const { return count_; }

  /// Calls f(number of the point, its indices); dimensions that the level does not run over have index 0.
  template <class F>
  void for_each(F f) const {
    for (int64_t point = 0; point < count_; ++point) {
      int64_t index[device::kMaxRank] = {};
      int64_t rest = point;
      for (int d = space_.rank - 1; d >= 0; --d) {
        if (!runs_over(d)) continue;
        index[d] = rest % space_.sizes[d];
        rest /= space_.sizes[d];
      }
      f(point, index);
    }
  }

  /// Number of the point that has these indices.
  int64_t number_of(const int64_t* index) const {
    int64_t number = 0;
    for (int d = 0; d < space_.rank; ++d) {
      if (runs_over(d)) number = number * space_.sizes[d] + index[d];
    }
    return number;
  }

 private:
  bool runs_over(int d) const { return level_ == Level::full || !(space_.reduced >> d & 1); }

  const device::Space& space_;
  Level level_;
  int64_t count_ = 1;
};

class Interpreter {
 public:
  Interpreter(const Kernel& kernel, const device::Space& space, const std::vector<InterpreterOperand>& operands,
              const std::vector<uint64_t>& scalars)
      : kernel_(kernel),
        space_(space),
        operands_(operands),
        scalars_(scalars),
        full_(space, Level::full),
        kept_(space, Level::kept) {}

  void run() {
    for (const Instr& instr : kernel_.instrs) values_.push_back(compute(instr));
  }

 private:
  const Points& points(Level level) const { return level == Level::full ? full_ : kept_; }
  bool is_scalar(ValueId id) const { return kernel_.instrs[id].op == Primitive::scalar; }

  /// Element of a value at a point of the level it is used at; scalars are the same everywhere.
  Element at(ValueId id, int64_t point) const {
    if (id == kNoValue) return {};
    return values_[id][is_scalar(id) ? 0 : point];
  }

  int64_t offset_of(int32_t operand, const int64_t* index) const {
    const device::OperandView& view = operands_[operand].view;
    return std::inner_product(index, index + space_.rank, view.strides, view.offset);
  }
  char* address(const Instr& instr, const int64_t* index) const {
    return static_cast<char*>(operands_[instr.index].base) + offset_of(instr.index, index) * size_of(instr.type);
  }

  Values compute(const Instr& instr) const {
    if (instr.op == Primitive::scalar) return {scalar_element(scalars_[instr.index], instr.type)};
    if (is_reduction(instr.op)) return reduced(instr);
    Values result(instr.op == Primitive::store ? 0 : points(instr.level).count());
    points(instr.level).for_each([&](int64_t point, const int64_t* index) {
      if (instr.op == Primitive::store) {
        std::memcpy(address(instr, index), at(instr.a, point).bytes, size_of(instr.type));
      } else {
        result[point] = element(instr, point, index);
      }
    });
    return result;
  }

  Element element(const Instr& instr, int64_t point, const int64_t* index) const {
    switch (instr.op) {
      case Primitive::load: {
        Element value;
        std::memcpy(value.bytes, address(instr, index), size_of(instr.type));
        return value;
      }
      case Primitive::iota: return Element::of(offset_of(instr.index, index));
      case Primitive::cast: return convert(at(instr.a, point), instr.type, instr.out);
      case Primitive::broadcast: return at(instr.a, kept_.number_of(index));
      case Primitive::random_bits:
        return Element::of(random_bits(at(instr.a, point).get<int64_t>(), at(instr.b, point).get<int64_t>(),
                                       at(instr.c, point).get<int64_t>()));
      default: return evaluate(instr.op, instr.type, at(instr.a, point), at(instr.b, point), at(instr.c, point));
    }
  }

  Values reduced(const Instr& instr) const {
    std::vector<Values> groups(kept_.count());
    full_.for_each(
        [&](int64_t point, const int64_t* index) { groups[kept_.number_of(index)].push_back(at(instr.a, point)); });
    Values result;
    for (const Values& group : groups) result.push_back(reduce(instr.op, instr.type, group));
    return result;
  }

  const Kernel& kernel_;
  const device::Space& space_;
  const std::vector<InterpreterOperand>& operands_;
  const std::vector<uint64_t>& scalars_;
  Points full_, kept_;
  std::vector<Values> values_;
};

}  // namespace

void interpret(const Kernel& kernel, const device::Space& space, const std::vector<InterpreterOperand>& operands,
               const std::vector<uint64_t>& scalars) {
  Interpreter(kernel, space, operands, scalars).run();
}

}  // namespace ae::fusion
