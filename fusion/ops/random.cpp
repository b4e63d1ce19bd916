// Random operators; inputs as in opcode.h. Element p of a node takes word 0 from position p of the generator's stream
// {seed, offset}; where it needs more words it takes word k from position p + k * 2^60, which no element reaches. So an
// offset may serve one node only. fp64 results are made of two words where the others take one.
#include <cmath>

#include "fusion/ops/expression.h"

namespace ae::fusion {
namespace {

constexpr double kTwoTo32 = 4294967296.0;

/// Random words of one node.
class Words {
 public:
  /// `seed` is the number of the input that holds the seed; the offset follows.
  Words(OpContext& context, int seed)
      : seed_(raw_input(context, seed).as(DType::kI64)),
        offset_(raw_input(context, seed + 1).as(DType::kI64)),
        position_{&context, context.position()} {}

  /// i64 in [0, 2^32).
  Expr word(int k) const {
    const Expr at = k == 0 ? position_ : position_ + std::ldexp(k, 60);
    return {at.context, at.context->emit(Primitive::random_bits, DType::kI64, at.id, seed_.id, offset_.id)};
  }
  /// i64 in [0, 2^53), of words k and k + 1.
  Expr wide(int k) const { return ((word(k) >> 5.0) << 26.0) + (word(k + 1) >> 6.0); }

 private:
  Expr seed_, offset_, position_;
};

/// Uniform in [0, 1) with as many random bits as the dtype has digits, so that 1 does not come out by rounding.
Expr unit(const Words& words, DType common) {
  if (common == DType::kF64) return words.wide(0).as(DType::kF64) * std::ldexp(1, -53);
  const int digits = common == DType::kF16 ? 11 : common == DType::kBF16 ? 8 : 24;
  return (words.word(0) >> (32.0 - digits)).as(DType::kF32) * std::ldexp(1, -digits);
}

/// Uniform in (0, 1] with all bits there are, in `type` (f32 or f64): what a logarithm is taken of.
Expr positive_unit(const Words& words, DType type, int k) {
  if (type == DType::kF64) return (words.wide(k) + 1.0).as(type) * std::ldexp(1, -53);
  return (words.word(k) + 1.0).as(type) * std::ldexp(1, -32);
}

void uniform(OpContext& context) {
  const Words words(context, 2);
  const Expr from = parameter(context, 0), to = parameter(context, 1);
  context.store_result(0, (unit(words, context.common_type()) * (to - from) + from).id);
}

/// Box and Muller; one of the pair is used.
void normal(OpContext& context) {
  const DType type = compute_type(context.common_type());
  const Words words(context, 2);
  const int words_of_one = type == DType::kF64 ? 2 : 1;
  const Expr radius = sqrt(-2.0 * log(positive_unit(words, type, 0)));
  const Expr angle = 2 * std::acos(-1.0) * positive_unit(words, type, words_of_one);
  context.store_result(0, (radius * cos(angle) * parameter(context, 1) + parameter(context, 0)).id);
}

/// bits < p * 2^32, exactly.
Expr happens(const Words& words, Expr probability) {
  return words.word(0).as(DType::kF64) < probability.as(DType::kF64) * kTwoTo32;
}

void bernoulli(OpContext& context) {
  const Expr result = happens(Words(context, 1), raw_input(context, 0));
  context.store(0, result.as(context.output_type(0)).id);
}

void random_int(OpContext& context) {
  const Words words(context, 2);
  const Expr low = raw_input(context, 0).as(DType::kI64), range = raw_input(context, 1);
  Expr bits = words.word(0);
  if (context.attribute(0) == 1) {
    bits = ((words.word(1) << 32.0) | bits).as(DType::kU64);
    bits = remainder(bits, range.as(DType::kU64)).as(DType::kI64);
  } else {
    bits = remainder(bits, range.as(DType::kI64));
  }
  context.store_result(0, (low + bits).id);
}

/// -log(u) / lambda, kept above 0 where u rounds to 1.
void exponential(OpContext& context) {
  const DType type = compute_type(context.common_type());
  const Expr u = positive_unit(Words(context, 1), type, 0);
  const double least = std::ldexp(1, type == DType::kF64 ? -54 : -25);
  context.store_result(0, (maximum(-log(u), least) / parameter(context, 0)).id);
}

/// a * mask * scale, so that a NaN stays one where it is dropped, as in PyTorch.
void dropout(OpContext& context) {
  const Expr keep = happens(Words(context, 3), raw_input(context, 1));
  const Expr a = input(context, 0);
  context.store_result(0, (a * keep.as(a.type()) * parameter(context, 2)).id);
  if (context.outputs() > 1) context.store(1, keep.as(context.output_type(1)).id);
}

constexpr BuilderEntry kBuilders[] = {
    {Opcode::uniform, uniform},       {Opcode::normal, normal},           {Opcode::bernoulli, bernoulli},
    {Opcode::random_int, random_int}, {Opcode::exponential, exponential}, {Opcode::dropout, dropout},
};

}  // namespace

std::span<const BuilderEntry> random_builders() { return kBuilders; }

}  // namespace ae::fusion
