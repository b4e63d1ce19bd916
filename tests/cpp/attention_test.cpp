// Attention against a plain reference in double precision, over shapes, layouts, tails, masks and grouped heads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "device/host/attention/attention.h"

namespace {

using namespace ae::device::host::attention;

constexpr float kInf = std::numeric_limits<float>::infinity();

enum class Layout { heads_first, length_first, one_matrix };

/// Numbers of [batch, heads, length, width], or the first, second or third part of a matrix that holds all three.
struct Tensor {
  std::vector<float> numbers;
  Rows<float> rows;

  Tensor(int64_t batch, int64_t heads, int64_t length, int64_t width, Layout layout, int part = 0) {
    const int64_t parts = layout == Layout::one_matrix ? 3 : 1;
    numbers.assign(static_cast<size_t>(batch * heads * length * width * parts), 0.0f);
    const int64_t row = heads * width * parts;
    if (layout == Layout::heads_first)
      rows = {numbers.data(), heads * length * width, length * width, width};
    else
      rows = {numbers.data() + (parts == 3 ? part * heads * width : 0), length * row, width, row};
  }
  void fill(unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (float& x : numbers) x = normal(random);
  }
  Rows<const float> read() const { return {rows.data, rows.batch, rows.head, rows.row}; }
  float at(int64_t b, int64_t h, int64_t l, int64_t w = 0) const { return rows.of(b, h)[l][w]; }
};

struct Case {
  Shape shape;
  Layout layout = Layout::length_first;
  bool masked = false;
  float scale = 0.25f;
};

/// A call, its memory and what it must give.
class Attention {
 public:
  explicit Attention(const Case& c)
      : case_(c),
        query_(tensor(c.shape.heads, c.shape.queries, 0)),
        key_(tensor(c.shape.key_heads, c.shape.keys, 1)),
        value_(tensor(c.shape.key_heads, c.shape.keys, 2)),
        grad_(tensor(c.shape.heads, c.shape.queries, 0)),
        out_(Tensor(c.shape.batch, c.shape.heads, c.shape.queries, c.shape.width, Layout::length_first)),
        logsumexp_(Tensor(c.shape.batch, c.shape.heads, c.shape.queries, 1, Layout::length_first)),
        grad_query_(out_),
        grad_key_(Tensor(c.shape.batch, c.shape.key_heads, c.shape.keys, c.shape.width, Layout::length_first)),
        grad_value_(grad_key_) {
    query_.fill(1);
    key_.fill(2);
    value_.fill(3);
    grad_.fill(4);
    for (Tensor* t : {&grad_query_, &grad_key_, &grad_value_}) {
      t->fill(5);  // what is there before must not matter
      t->rows.data = t->numbers.data();
    }
    out_.fill(6);
    if (c.masked) {
      std::mt19937 random(7);
      std::normal_distribution<float> normal;
      for (int64_t i = 0; i < c.shape.heads * c.shape.queries * c.shape.keys; ++i)
        mask_.push_back(random() % 4 == 0 ? -kInf : normal(random));
      for (int64_t j = 0; j < c.shape.keys; ++j)
        mask_[static_cast<size_t>(c.shape.keys + j)] = -kInf;  // query 1 of head 0
    }
  }
  Attention(const Attention&) = delete;

  Forward forward_call() const {
    return {case_.shape, case_.scale, query_.read(), key_.read(), value_.read(), mask(), out_.rows, logsumexp_.rows};
  }
  Backward backward_call() const {
    return {case_.shape, case_.scale,       query_grad(), query_.read(),    key_.read(),    value_.read(),
            out_.read(), logsumexp_.read(), mask(),       grad_query_.rows, grad_key_.rows, grad_value_.rows};
  }
  void run() {
    const Forward call = forward_call();
    for (int64_t b = 0; b < case_.shape.batch; ++b)
      for (int64_t h = 0; h < case_.shape.heads; ++h) forward(call, b, h, 0, case_.shape.queries);
    const Backward gradient = backward_call();
    for (int64_t b = 0; b < case_.shape.batch; ++b)
      for (int64_t h = 0; h < case_.shape.key_heads; ++h) backward(gradient, b, h);
  }
  void compare() const;

  const Case case_;
  Tensor query_, key_, value_, grad_, out_, logsumexp_, grad_query_, grad_key_, grad_value_;
  std::vector<float> mask_;

 private:
  Tensor tensor(int64_t heads, int64_t length, int part) const {
    return Tensor(case_.shape.batch, heads, length, case_.shape.width, case_.layout, part);
  }
  Rows<const float> query_grad() const { return grad_.read(); }
  Mask mask() const {
    if (!case_.masked) return {};
    return {mask_.data(), 0, case_.shape.queries * case_.shape.keys, case_.shape.keys, 1};
  }
};

using Doubles = std::vector<double>;

/// Softmax of one row of scores; zeros where nothing is seen.
double softmax(Doubles& scores) {
  double most = -kInf, sum = 0;
  for (const double s : scores) most = std::max(most, s);
  if (most == -kInf) most = 0;
  for (double& s : scores) sum += s = std::exp(s - most);
  if (sum == 0) sum = 1;
  for (double& s : scores) s /= sum;
  return most + std::log(sum);
}

void expect_near(const Tensor& actual, int64_t b, int64_t h, int64_t l, const double* expected, int64_t width,
                 const char* what) {
  for (int64_t w = 0; w < width; ++w)
    ASSERT_NEAR(actual.at(b, h, l, w), expected[w], 2e-5 * (1 + std::abs(expected[w])))
        << what << " of batch item " << b << ", head " << h << ", row " << l << ", column " << w;
}

void Attention::compare() const {
  const Shape& s = case_.shape;
  const int64_t group = s.heads / s.key_heads, d = s.width;
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t kh = 0; kh < s.key_heads; ++kh) {
      Doubles grad_key(static_cast<size_t>(s.keys * d)), grad_value(grad_key);
      for (int64_t h = kh * group; h < (kh + 1) * group; ++h) {
        for (int64_t i = 0; i < s.queries; ++i) {
          const int64_t seen = s.causal ? std::min(s.keys, i + 1) : s.keys;
          Doubles p(static_cast<size_t>(seen)), out(d), grad_query(d);
          for (int64_t j = 0; j < seen; ++j) {
            double score = 0;
            for (int64_t w = 0; w < d; ++w) score += double(query_.at(b, h, i, w)) * key_.at(b, kh, j, w);
            p[j] = score * case_.scale;
            if (case_.masked) p[j] += mask_[static_cast<size_t>((h * s.queries + i) * s.keys + j)];
          }
          const double logsumexp = softmax(p);
          ASSERT_NEAR(logsumexp_.at(b, h, i), logsumexp, 1e-5 * (1 + std::abs(logsumexp)));
          for (int64_t j = 0; j < seen; ++j)
            for (int64_t w = 0; w < d; ++w) out[w] += p[j] * value_.at(b, kh, j, w);
          expect_near(out_, b, h, i, out.data(), d, "out");
          double all = 0;
          for (int64_t w = 0; w < d; ++w) all += out[w] * grad_.at(b, h, i, w);
          for (int64_t j = 0; j < seen; ++j) {
            double grad_p = 0;
            for (int64_t w = 0; w < d; ++w) grad_p += double(grad_.at(b, h, i, w)) * value_.at(b, kh, j, w);
            const double grad_score = p[j] * (grad_p - all) * case_.scale;
            for (int64_t w = 0; w < d; ++w) {
              grad_query[w] += grad_score * key_.at(b, kh, j, w);
              grad_key[j * d + w] += grad_score * query_.at(b, h, i, w);
              grad_value[j * d + w] += p[j] * grad_.at(b, h, i, w);
            }
          }
          expect_near(grad_query_, b, h, i, grad_query.data(), d, "grad_query");
        }
      }
      for (int64_t j = 0; j < s.keys; ++j) {
        expect_near(grad_key_, b, kh, j, &grad_key[j * d], d, "grad_key");
        expect_near(grad_value_, b, kh, j, &grad_value[j * d], d, "grad_value");
      }
    }
  }
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
  const Shape& s = info.param.shape;
  std::string name = std::to_string(info.index) + "_" + std::to_string(s.queries) + "x" + std::to_string(s.keys) +
                     "_width_" + std::to_string(s.width) + "_heads_" + std::to_string(s.heads) + "_of_" +
                     std::to_string(s.key_heads);
  if (s.causal) name += "_causal";
  if (info.param.masked) name += "_masked";
  return name;
}

class AttentionShapes : public testing::TestWithParam<Case> {};

TEST_P(AttentionShapes, agree_with_the_reference) {
  Attention attention(GetParam());
  attention.run();
  attention.compare();
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const bool causal : {false, true}) {
    for (const int64_t length : {1, 7, 8, 16, 50, 128, 197})
      for (const int64_t width : {16, 32, 48}) all.push_back({{2, 2, 2, length, length, width, causal}});
    for (const auto& [queries, keys] :
         {std::pair{2, 70}, {3, 40}, {40, 3}, {33, 64}, {130, 17}, {100, 600}, {600, 100}})
      all.push_back({{1, 2, 2, queries, keys, 32, causal}});
    all.push_back({{1, 1, 1, 1100, 1100, 16, causal}});
    for (const int64_t width : {64, 128, 256}) all.push_back({{1, 1, 1, 70, 70, width, causal}});
    for (const Layout layout : {Layout::heads_first, Layout::one_matrix})
      all.push_back({{2, 3, 3, 50, 50, 32, causal}, layout});
    for (const int64_t key_heads : {1, 2}) all.push_back({{2, 4, key_heads, 70, 150, 16, causal}});
    all.push_back({{2, 4, 2, 40, 50, 16, causal}, Layout::length_first, true});
    all.push_back({{2, 4, 2, 2, 50, 80, causal}, Layout::one_matrix, true});
    all.push_back({{1, 1, 1, 20, 1050, 16, causal}, Layout::length_first, true});
    all.push_back({{1, 2, 2, 20, 20, 16, causal}, Layout::length_first, false, -0.3f});
    all.push_back({{1, 2, 2, 20, 20, 16, causal}, Layout::length_first, false, 0.0f});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Attention, AttentionShapes, testing::ValuesIn(cases()), name_of);

TEST(Attention, parts_of_the_queries_give_the_bits_of_the_whole) {
  for (const bool causal : {false, true}) {
    for (const auto& [queries, keys] : {std::pair{128, 128}, {200, 1100}, {1100, 1100}, {300, 40}}) {
      const Case c{{1, 1, 1, queries, keys, 32, causal}};
      Attention whole(c), parts(c);
      const Forward call = whole.forward_call(), part = parts.forward_call();
      forward(call, 0, 0, 0, queries);
      for (int64_t i = 0; i < queries; i += 3 * kQueryUnit)
        forward(part, 0, 0, i, std::min<int64_t>(3 * kQueryUnit, queries - i));
      EXPECT_EQ(whole.out_.numbers, parts.out_.numbers) << queries << " x " << keys;
      EXPECT_EQ(whole.logsumexp_.numbers, parts.logsumexp_.numbers) << queries << " x " << keys;
    }
  }
}

TEST(Attention, a_head_gives_the_same_bits_in_every_layout_and_order) {
  const Shape shape{2, 3, 3, 77, 77, 32, true};
  Attention one({shape, Layout::length_first}), other({shape, Layout::length_first});
  one.run();
  // The other way round, with the heads of a matrix of three.
  Attention matrix({shape, Layout::one_matrix});
  for (const auto& [to, from] : {std::pair{&matrix.query_, &one.query_},
                                 {&matrix.key_, &one.key_},
                                 {&matrix.value_, &one.value_},
                                 {&matrix.grad_, &one.grad_}})
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t h = 0; h < 3; ++h)
        for (int64_t l = 0; l < 77; ++l) std::copy_n(from->rows.of(b, h)[l], 32, to->rows.of(b, h)[l]);
  for (int64_t b = 1; b >= 0; --b) {
    for (int64_t h = 2; h >= 0; --h) {
      forward(matrix.forward_call(), b, h, 0, 77);
      backward(matrix.backward_call(), b, h);
    }
  }
  EXPECT_EQ(one.out_.numbers, matrix.out_.numbers);
  EXPECT_EQ(one.logsumexp_.numbers, matrix.logsumexp_.numbers);
  EXPECT_EQ(one.grad_query_.numbers, matrix.grad_query_.numbers);
  EXPECT_EQ(one.grad_key_.numbers, matrix.grad_key_.numbers);
  EXPECT_EQ(one.grad_value_.numbers, matrix.grad_value_.numbers);
}

TEST(Attention, a_nan_reaches_what_depends_on_it_and_no_other_row) {
  Attention attention(Case{{1, 1, 1, 40, 40, 16, true}});
  attention.query_.rows.of(0, 0)[5][3] = std::numeric_limits<float>::quiet_NaN();
  attention.run();
  for (int64_t i = 0; i < 40; ++i) {
    EXPECT_EQ(std::isnan(attention.out_.at(0, 0, i, 0)), i == 5);
    EXPECT_EQ(std::isnan(attention.logsumexp_.at(0, 0, i)), i == 5);
    EXPECT_EQ(std::isnan(attention.grad_query_.at(0, 0, i, 0)), i == 5);
    EXPECT_EQ(std::isnan(attention.grad_value_.at(0, 0, i, 0)), i <= 5);
  }
}

TEST(Attention, infinite_scores_give_nan_and_scores_of_minus_infinity_nothing) {
  Attention attention(Case{{1, 1, 1, 2, 20, 16, false}});
  for (int64_t w = 0; w < 16; ++w) {
    attention.query_.rows.of(0, 0)[0][w] = w == 0 ? kInf : 0.0f;
    attention.query_.rows.of(0, 0)[1][w] = w == 0 ? -kInf : 0.0f;
  }
  for (int64_t j = 0; j < 20; ++j) attention.key_.rows.of(0, 0)[j][0] = 1;
  attention.run();
  EXPECT_TRUE(std::isnan(attention.out_.at(0, 0, 0, 0)));
  EXPECT_EQ(attention.out_.at(0, 0, 1, 0), 0.0f);
  EXPECT_EQ(attention.logsumexp_.at(0, 0, 1), 0.0f);
}

}  // namespace
