#include <cctype>
#include <charconv>
#include <stdexcept>
#include <string_view>

#include "fusion/ir/kernel.h"
#include "fusion/ir/text.h"

namespace ae::fusion {
namespace {

/// Recursive descent over the text form; tokens are words, numbers and single punctuation characters.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Kernel parse() {
    expect_word("kernel");
    kernel_.operands = types();
    expect_word("scalars");
    kernel_.scalars = types();
    expect("{");
    while (!accept("}")) instruction();
    skip_space();
    if (position_ != text_.size()) fail("text after the end of the kernel");
    return std::move(kernel_);
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    throw std::invalid_argument("kernel text, line " + std::to_string(line_) + ": " + reason);
  }

  void skip_space() {
    while (position_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[position_]))) {
      if (text_[position_++] == '\n') ++line_;
    }
  }

  bool accept(std::string_view token) {
    skip_space();
    if (!text_.substr(position_).starts_with(token)) return false;
    position_ += token.size();
    return true;
  }

  void expect(std::string_view token) {
    if (!accept(token)) fail("expected '" + std::string(token) + "'");
  }

  std::string_view word() {
    skip_space();
    const size_t begin = position_;
    while (position_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[position_])) || text_[position_] == '_')) {
      ++position_;
    }
    if (position_ == begin) fail("expected a word");
    return text_.substr(begin, position_ - begin);
  }

  void expect_word(std::string_view expected) {
    if (word() != expected) fail("expected '" + std::string(expected) + "'");
  }

  int32_t number() {
    skip_space();
    int32_t value = 0;
    const char* begin = text_.data() + position_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc()) fail("expected a number");
    position_ += end - begin;
    return value;
  }

  DType type() {
    const std::string_view name = word();
    const auto type = dtype_named(name);
    if (!type) fail("unknown dtype '" + std::string(name) + "'");
    return *type;
  }

  std::vector<DType> types() {
    std::vector<DType> list;
    expect("(");
    if (accept(")")) return list;
    do list.push_back(type());
    while (accept(","));
    expect(")");
    return list;
  }

  Level level() {
    const std::string_view name = word();
    for (Level level : {Level::full, Level::kept}) {
      if (name == short_name(level)) return level;
    }
    fail("expected 'full' or 'kept'");
  }

  void instruction() {
    const bool has_result = accept("%");
    if (has_result) {
      if (number() != static_cast<int32_t>(kernel_.instrs.size())) fail("results are numbered by instruction");
      expect("=");
    }
    Instr instr{};
    const std::string_view name = word();
    const auto op = primitive_named(name);
    if (!op) fail("unknown primitive '" + std::string(name) + "'");
    if (has_result == (*op == Primitive::store)) fail("stores alone have no result");
    instr.op = *op;
    expect(".");
    instr.type = type();
    instr.out = accept("->") ? type() : instr.type;
    if (instr.op == Primitive::scalar) {
      instr.level = Level::full;
      expect("$");
      instr.index = number();
    } else {
      instr.level = level();
      inputs(instr);
    }
    kernel_.instrs.push_back(instr);
  }

  void inputs(Instr& instr) {
    bool first = true;
    const auto separate = [&] {
      if (!first) expect(",");
      first = false;
    };
    if (instr.op == Primitive::load || instr.op == Primitive::store || instr.op == Primitive::iota) {
      separate();
      expect("@");
      instr.index = number();
    }
    ValueId* slots[] = {&instr.a, &instr.b, &instr.c};
    for (int i = 0; i < arity_of(instr.op); ++i) {
      separate();
      expect("%");
      *slots[i] = number();
    }
  }

  std::string_view text_;
  size_t position_ = 0;
  int line_ = 1;
  Kernel kernel_;
};

}  // namespace

Kernel parse(const std::string& text) { return Parser(text).parse(); }

}  // namespace ae::fusion
