#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>

#include "fusion/ir/text.h"
#include "tests/cpp/ops_node.h"

namespace ae::fusion {
namespace {

using testing::from_memory;
using testing::Node;
using testing::NodeContext;
using testing::NodeOperand;
using testing::to_memory;

constexpr const char* kCases =
#include "tests/cpp/ops_cases.inc"
    ;

Opcode opcode_named(const std::string& name) {
  for (int i = 0; i <= static_cast<int>(Opcode::library); ++i) {
    if (name == name_of(static_cast<Opcode>(i))) return static_cast<Opcode>(i);
  }
  throw std::invalid_argument("no operator " + name);
}

/// A line of ops_cases.inc: a node whose outputs hold the values that torch gives.
struct Case {
  Node node;
  double tolerance;
};

class CaseReader {
 public:
  explicit CaseReader(const std::string& line) : words_(line) {}

  Case read() {
    Case result;
    Node& node = result.node;
    node.opcode = opcode_named(word());
    node.common = *dtype_named(word());
    result.tolerance = number();
    node.reduced = static_cast<uint32_t>(number());
    node.attributes = integers();
    node.sizes = integers();
    for (std::vector<NodeOperand>* list : {&node.inputs, &node.outputs}) {
      list->resize(static_cast<size_t>(number()));
      for (NodeOperand& operand : *list) operand = this->operand(node.sizes.size());
    }
    if (!words_) throw std::invalid_argument("short line");
    return result;
  }

 private:
  std::string word() {
    std::string text;
    words_ >> text;
    return text;
  }
  double number() { return std::stod(word()); }
  std::vector<int64_t> integers() {
    std::vector<int64_t> list(static_cast<size_t>(number()));
    for (int64_t& item : list) item = std::stoll(word());
    return list;
  }
  NodeOperand operand(size_t rank) {
    NodeOperand operand;
    operand.is_scalar = word() == "scalar";
    operand.type = *dtype_named(word());
    if (!operand.is_scalar) {
      operand.strides.resize(rank);
      for (int64_t& stride : operand.strides) stride = std::stoll(word());
    }
    operand.values.resize(operand.is_scalar ? 1 : static_cast<size_t>(number()));
    for (double& value : operand.values) value = number();
    return operand;
  }

  std::istringstream words_;
};

/// Relative to the larger of 1 and the value; infinities and NaNs must be the same, and so must the signs of zeros.
bool is_close(double actual, double expected, double tolerance) {
  if (std::isnan(expected)) return std::isnan(actual);
  if (std::isinf(expected)) return actual == expected;
  if (expected == 0 && actual == 0) return std::signbit(expected) == std::signbit(actual);
  return std::fabs(actual - expected) <= tolerance * std::max(1.0, std::fabs(expected));
}

TEST(OpsBuilder, operators_give_torch_s_values) {
  std::istringstream lines(kCases);
  std::set<Opcode> tested;
  for (std::string line; std::getline(lines, line);) {
    const Case each = CaseReader(line).read();
    tested.insert(each.node.opcode);
    NodeContext context(each.node);
    const auto results = context.run();
    for (size_t i = 0; i < results.size(); ++i) {
      const NodeOperand& output = each.node.outputs[i];  // its values are written as short as its dtype allows
      const std::vector<double> expected = from_memory(output.type, to_memory(output.type, output.values));
      ASSERT_EQ(results[i].size(), expected.size());
      for (size_t k = 0; k < expected.size(); ++k) {
        EXPECT_TRUE(is_close(results[i][k], expected[k], each.tolerance))
            << name_of(each.node.opcode) << " output " << i << "[" << k << "]: " << results[i][k] << ", torch "
            << expected[k] << "\n"
            << line.substr(0, 160);
      }
    }
  }
  // Random operators have no values to compare with: ops_random_test.cpp.
  const std::set<Opcode> random = {Opcode::uniform,    Opcode::normal,      Opcode::bernoulli,
                                   Opcode::random_int, Opcode::exponential, Opcode::dropout};
  for (int i = 0; i < static_cast<int>(Opcode::library); ++i) {
    const auto opcode = static_cast<Opcode>(i);
    EXPECT_TRUE(tested.count(opcode) || random.count(opcode)) << "no case for " << name_of(opcode);
  }
}

TEST(OpsBuilder, library_operators_have_no_builder) {
  const Node node{Opcode::library, DType::kF32, {}, {1}, 0, {}, {}};
  NodeContext context(node);
  EXPECT_THROW(build(context), std::logic_error);
}

TEST(OpsBuilder, only_operators_that_keep_their_dimensions_read_an_index) {
  const NodeOperand flat{DType::kF32, false, {1}, {0, 0}};
  const Node pointwise{Opcode::relu, DType::kF32, {}, {2}, 0, {flat}, {flat}};
  EXPECT_THROW(NodeContext(pointwise).index(0), std::logic_error);
  const Node indexed{Opcode::eye, DType::kF32, {}, {2, 2}, 0, {}, {{DType::kF32, false, {2, 1}, {0, 0, 0, 0}}}};
  EXPECT_NO_THROW(NodeContext(indexed).index(-1));
  const Node reducing{Opcode::sum, DType::kF32, {}, {2}, 1, {flat}, {{DType::kF32, false, {0}, {0}}}};
  EXPECT_NO_THROW(NodeContext(reducing).index(0));
}

TEST(OpsBuilder, half_results_are_rounded_once_at_the_operator_s_end) {
  // 0.1 * 3 in fp32 is rounded to bf16 once: 0.30078125; rounding 0.1 first would give 0.298828125 (0.099609375 * 3).
  const NodeOperand out{DType::kBF16, false, {1}, {0}};
  const Node node{
      Opcode::mul, DType::kBF16, {}, {1}, 0, {{DType::kBF16, false, {1}, {3}}, {DType::kF64, true, {}, {0.1}}}, {out}};
  EXPECT_EQ(NodeContext(node).run()[0][0], 0.30078125);
}

}  // namespace
}  // namespace ae::fusion
