// math_probe FUNCTION f32|f64: reads numbers in binary from stdin, writes the function's values to stdout. Functions of
// two arguments read them in turn. Used by tests/python/test_math_accuracy.py.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/cpp/math_functions.h"

namespace {

using ae::math::Vec;

template <class T>
std::vector<T> read_all() {
  std::vector<T> numbers(4096);
  size_t used = 0;
  while (const size_t got = std::fread(numbers.data() + used, sizeof(T), numbers.size() - used, stdin)) {
    used += got;
    if (used == numbers.size()) numbers.resize(2 * used);
  }
  numbers.resize(used);
  return numbers;
}

template <class T, int Arity, class F>
int evaluate(F f) {
  constexpr size_t kLanes = 16;
  using V = Vec<T, kLanes>;
  const std::vector<T> in = read_all<T>();
  const size_t count = in.size() / Arity;
  std::vector<T> out(count);
  for (size_t start = 0; start < count; start += kLanes) {
    const size_t used = count - start < kLanes ? count - start : kLanes;
    T columns[2][kLanes] = {};
    for (size_t i = 0; i < used * Arity; ++i) columns[i % Arity][i / Arity] = in[start * Arity + i];
    T values[kLanes];
    if constexpr (Arity == 1) {
      f(V::load(columns[0])).store(values);
    } else {
      f(V::load(columns[0]), V::load(columns[1])).store(values);
    }
    std::copy(values, values + used, out.data() + start);
  }
  return std::fwrite(out.data(), sizeof(T), count, stdout) == count ? 0 : 1;
}

template <class T>
int run(const std::string& name) {
#define AE_X(f) \
  if (name == #f) return evaluate<T, 1>([](auto x) { return ae::math::f(x); });
  AE_UNARY_MATH(AE_X)
  AE_SPECIAL_MATH(AE_X)
#undef AE_X
#define AE_X(f) \
  if (name == #f) return evaluate<T, 2>([](auto x, auto y) { return ae::math::f(x, y); });
  AE_BINARY_MATH(AE_X)
#undef AE_X
  std::fprintf(stderr, "math_probe: no function %s\n", name.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string type = argc == 3 ? argv[2] : "";
  if (type == "f32") return run<float>(argv[1]);
  if (type == "f64") return run<double>(argv[1]);
  std::fprintf(stderr, "usage: math_probe FUNCTION f32|f64 < numbers > values\n");
  return 2;
}
