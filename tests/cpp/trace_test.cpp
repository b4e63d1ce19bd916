#include "fusion/trace/trace.h"

#include <gtest/gtest.h>

namespace ae::fusion {
namespace {

BufferRef make(int64_t nbytes = 64) { return BufferRef::adopt(new Buffer(nbytes)); }

std::vector<int64_t> list(const int64_t* values, int count) { return {values, values + count}; }

TEST(Trace, DecodesWhatWasEncoded) {
  Trace trace;
  const BufferRef a = make(), b = make();
  const int64_t sizes[] = {2, 3}, strides[] = {3, 1}, kept[] = {1, 0};
  {
    NodeWriter writer(trace, Opcode::mean, DType::kBF16, 2, sizes, 0b10);
    writer.attribute(-7);
    writer.input(a.get(), DType::kF16, 5, strides);
    writer.scalar(DType::kF64, scalar_word(3.0));
    writer.output(b.get(), DType::kI32, 1, kept);
    writer.finish();
  }
  const NodeView node = NodeView::decode(trace.words.data(), 10);
  EXPECT_EQ(node.opcode, Opcode::mean);
  EXPECT_EQ(node.common, DType::kBF16);
  EXPECT_FALSE(node.fence);
  EXPECT_EQ(list(node.sizes, node.rank), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(node.reduced, 0b10u);
  EXPECT_EQ(std::vector<int64_t>(node.attributes.begin(), node.attributes.end()), std::vector<int64_t>{-7});
  EXPECT_EQ(node.words, trace.words.size());
  ASSERT_EQ(node.inputs.size(), 2u);
  EXPECT_FALSE(node.inputs[0].is_scalar);
  EXPECT_EQ(node.inputs[0].buffer, 0u);
  EXPECT_EQ(node.inputs[0].dtype, DType::kF16);
  EXPECT_EQ(node.inputs[0].offset, 5);
  EXPECT_EQ(list(node.inputs[0].sizes, 2), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(list(node.inputs[0].strides, 2), (std::vector<int64_t>{3, 1}));
  EXPECT_TRUE(node.inputs[1].is_scalar);
  EXPECT_EQ(node.inputs[1].scalar, 10u);
  EXPECT_EQ(node.inputs[1].dtype, DType::kF64);
  EXPECT_EQ(trace.scalars, std::vector<uint64_t>{scalar_word(3.0)});
  ASSERT_EQ(node.outputs.size(), 1u);
  EXPECT_EQ(node.outputs[0].buffer, 1u);
  EXPECT_EQ(node.outputs[0].dtype, DType::kI32);
  EXPECT_EQ(list(node.outputs[0].strides, 2), (std::vector<int64_t>{1, 0}));
}

TEST(Trace, DecodesLibraryOperatorsWithShapesOfTheirOwn) {
  Trace trace;
  const BufferRef a = make(), b = make();
  const int64_t sizes_a[] = {4, 5}, strides_a[] = {1, 4}, sizes_b[] = {20}, strides_b[] = {1};
  {
    NodeWriter writer(trace, Opcode::library, DType::kF32);
    writer.attribute(3);
    writer.attribute(2);
    writer.fence();
    writer.library_scalar(1);
    writer.library_scalar(2);
    writer.input(a.get(), DType::kF32, 2, 7, sizes_a, strides_a);
    writer.output(b.get(), DType::kF32, 1, 0, sizes_b, strides_b);
    writer.finish();
  }
  const NodeView node = NodeView::decode(trace.words.data(), 4);
  EXPECT_TRUE(node.fence);
  EXPECT_EQ(node.rank, 0);
  EXPECT_EQ(node.first_scalar, 4u);
  EXPECT_EQ(node.inputs[0].rank, 2);
  EXPECT_EQ(node.inputs[0].offset, 7);
  EXPECT_EQ(list(node.inputs[0].sizes, 2), (std::vector<int64_t>{4, 5}));
  EXPECT_EQ(list(node.inputs[0].strides, 2), (std::vector<int64_t>{1, 4}));
  EXPECT_EQ(list(node.outputs[0].sizes, 1), std::vector<int64_t>{20});
  EXPECT_EQ(trace.scalars.size(), 2u);
  EXPECT_EQ(node.words, trace.words.size());
}

TEST(Trace, TakesBackANodeThatWasNotFinished) {
  Trace trace;
  const BufferRef a = make();
  {
    NodeWriter writer(trace, Opcode::fill, DType::kF32);
    writer.scalar(DType::kF32, 1);
    writer.output(a.get(), DType::kF32, 0, nullptr);
  }
  EXPECT_TRUE(trace.empty());
  EXPECT_TRUE(trace.words.empty());
  EXPECT_TRUE(trace.scalars.empty());
}

TEST(Trace, NumbersBuffersAtTheirFirstUseAndAnewInEachTrace) {
  Trace trace;
  const BufferRef a = make(), b = make();
  EXPECT_EQ(trace.index_of(b.get()), 0u);
  EXPECT_EQ(trace.index_of(a.get()), 1u);
  EXPECT_EQ(trace.index_of(b.get()), 0u);
  EXPECT_TRUE(trace.uses(a.get()));
  trace.clear();
  EXPECT_FALSE(trace.uses(a.get()));
  EXPECT_EQ(trace.index_of(a.get()), 0u);
}

TEST(Trace, WordsDoNotHoldScalars) {
  const auto words_with = [](double value, DType dtype) -> std::vector<uint64_t> {
    Trace trace;
    const BufferRef a = make();
    const int64_t size = 4, stride = 1;
    NodeWriter writer(trace, Opcode::fill, DType::kF32, 1, &size);
    writer.scalar(dtype, scalar_word(value));
    writer.output(a.get(), DType::kF32, 0, &stride);
    writer.finish();
    return trace.words;
  };
  EXPECT_EQ(words_with(1, DType::kF32), words_with(2, DType::kF32));
  EXPECT_NE(words_with(1, DType::kF32), words_with(1, DType::kF64));
}

TEST(Buffer, AStoragesSpareReferenceGoesToTheFirstTrace) {
  int released = 0;
  const auto make_owned = [&] {
    Buffer* buffer = make().release();
    buffer->failure = {new Failure, [&](const Failure* failure) {
                         ++released;
                         delete failure;
                       }};
    buffer->own_by_storage();
    return buffer;
  };
  make_owned()->release_by_storage();  // never recorded
  EXPECT_EQ(released, 1);
  Trace one, other;
  Buffer* buffer = make_owned();
  one.index_of(buffer);
  other.index_of(buffer);
  BufferRef shared = BufferRef::share(buffer);
  buffer->release_by_storage();
  one.clear();
  other.clear();
  EXPECT_EQ(released, 1);
  shared = {};
  EXPECT_EQ(released, 2);
}

TEST(Trace, EpochsOfAllTracesDiffer) {
  Trace one, other;
  const uint64_t before = one.epoch();
  EXPECT_NE(before, other.epoch());
  one.clear();
  EXPECT_NE(one.epoch(), before);
  EXPECT_NE(one.epoch(), other.epoch());
}

}  // namespace
}  // namespace ae::fusion
