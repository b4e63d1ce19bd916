#include "device/host/native/compiler/run_function.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "device/host/native/compiler/ir_vec.h"
#include "device/host/native/compiler/primitives.h"

namespace ae::device::host::native {
namespace {

void add_attribute(LLVMValueRef function, const char* key, const char* value) {
  const LLVMAttributeRef attribute =
      LLVMCreateStringAttribute(ir_target().context, key, static_cast<unsigned>(std::strlen(key)), value,
                                static_cast<unsigned>(std::strlen(value)));
  LLVMAddAttributeAtIndex(function, LLVMAttributeFunctionIndex, attribute);
}

/// Writes one function; the loops are
///     for (row = 0; row < rows; ++row) for (group = 0; group < groups; ++group) { load, compute, store }
class FunctionWriter {
 public:
  FunctionWriter(const Run& run, const char* name)
      : run_(run),
        target_(ir_target()),
        builder_(target_.builder),
        word_(int_type(64)),
        pointer_(LLVMPointerTypeInContext(target_.context, 0)) {
    LLVMTypeRef parameters[] = {pointer_, word_, word_};
    const LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(target_.context), parameters, 3, false);
    function_ = LLVMAddFunction(target_.module, name, type);
    // Whether denormal numbers are flushed is decided when the code runs.
    add_attribute(function_, "denormal-fp-math", "dynamic,dynamic");
    // The tile machine uses the machine's widest registers, so this does, too.
    add_attribute(function_, "prefer-vector-width", "512");
    add_attribute(function_, "min-legal-vector-width", "512");
    const unsigned no_unwind = LLVMGetEnumAttributeKindForName("nounwind", 8);
    LLVMAddAttributeAtIndex(function_, LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(target_.context, no_unwind, 0));
  }

  void write() {
    const LLVMValueRef zero = number(0), one = number(1);
    const LLVMValueRef rows = LLVMGetParam(function_, 1), groups = LLVMGetParam(function_, 2);
    const LLVMBasicBlockRef entry = block("entry"), row_block = block("row"), group_block = block("group"),
                            row_end = block("row_end"), done = block("done");
    start(entry);
    read_cells();
    const LLVMValueRef some = LLVMBuildAnd(builder_, LLVMBuildICmp(builder_, LLVMIntSGT, rows, zero, ""),
                                           LLVMBuildICmp(builder_, LLVMIntSGT, groups, zero, ""), "");
    LLVMBuildCondBr(builder_, some, row_block, done);

    start(row_block);
    const LLVMValueRef row = LLVMBuildPhi(builder_, word_, "row");
    read_row(row);
    const LLVMValueRef before = LLVMBuildMul(builder_, row, groups, "");
    LLVMBuildBr(builder_, group_block);

    start(group_block);
    const LLVMValueRef group = LLVMBuildPhi(builder_, word_, "group");
    const LLVMValueRef lanes = number(kLanes);
    const LLVMValueRef column = LLVMBuildMul(builder_, group, lanes, "");
    const LLVMValueRef element = LLVMBuildMul(builder_, LLVMBuildAdd(builder_, before, group, ""), lanes, "");
    compute(element, column);
    const LLVMValueRef next_group = LLVMBuildAdd(builder_, group, one, "");
    LLVMBuildCondBr(builder_, LLVMBuildICmp(builder_, LLVMIntSLT, next_group, groups, ""), group_block, row_end);

    start(row_end);
    const LLVMValueRef next_row = LLVMBuildAdd(builder_, row, one, "");
    LLVMBuildCondBr(builder_, LLVMBuildICmp(builder_, LLVMIntSLT, next_row, rows, ""), row_block, done);

    start(done);
    LLVMBuildRetVoid(builder_);
    join(row, zero, entry, next_row, row_end);
    join(group, zero, row_block, next_group, group_block);
  }

 private:
  LLVMValueRef number(int64_t n) const { return LLVMConstInt(word_, static_cast<uint64_t>(n), true); }
  LLVMBasicBlockRef block(const char* name) { return LLVMAppendBasicBlockInContext(target_.context, function_, name); }
  void start(LLVMBasicBlockRef at) { LLVMPositionBuilderAtEnd(builder_, at); }
  static void join(LLVMValueRef phi, LLVMValueRef a, LLVMBasicBlockRef from_a, LLVMValueRef b,
                   LLVMBasicBlockRef from_b) {
    LLVMValueRef values[] = {a, b};
    LLVMBasicBlockRef blocks[] = {from_a, from_b};
    LLVMAddIncoming(phi, values, blocks, 2);
  }

  LLVMValueRef cell(uint16_t index) {
    LLVMValueRef at = number(index);
    const LLVMValueRef address = LLVMBuildGEP2(builder_, pointer_, LLVMGetParam(function_, 0), &at, 1, "");
    return LLVMBuildLoad2(builder_, pointer_, address, "");
  }
  LLVMValueRef element_at(LLVMValueRef base, DType type, LLVMValueRef index) {
    return LLVMBuildGEP2(builder_, element_type_of(type), base, &index, 1, "");
  }
  LLVMValueRef load(LLVMTypeRef type, LLVMValueRef address, DType element) {
    const LLVMValueRef value = LLVMBuildLoad2(builder_, type, address, "");
    LLVMSetAlignment(value, static_cast<unsigned>(size_of(element)));
    return value;
  }
  /// One element in all lanes.
  LLVMValueRef load_splat(LLVMValueRef address, DType type) {
    const LLVMTypeRef vector = vector_type(element_type_of(type));
    const LLVMValueRef one = load(element_type_of(type), address, type);
    const LLVMValueRef first =
        LLVMBuildInsertElement(builder_, LLVMGetPoison(vector), one, LLVMConstInt(int_type(32), 0, false), "");
    return LLVMBuildShuffleVector(builder_, first, LLVMGetPoison(vector), LLVMConstNull(vector_type(int_type(32))), "");
  }

  void read_cells() {
    for (const RunInput& input : run_.inputs) {
      pointers_.push_back(cell(input.cell));
      values_.push_back(input.kind == RunInput::scalar ? load_splat(pointers_.back(), input.type) : nullptr);
    }
    for (const RunOutput& output : run_.outputs) out_pointers_.push_back(cell(output.cell));
  }

  void read_row(LLVMValueRef row) {
    for (size_t i = 0; i < run_.inputs.size(); ++i) {
      const RunInput& input = run_.inputs[i];
      if (input.kind == RunInput::per_row) {
        values_[i] = load_splat(element_at(pointers_[i], input.type, row), input.type);
      }
    }
  }

  void compute(LLVMValueRef element, LLVMValueRef column) {
    for (size_t i = 0; i < run_.inputs.size(); ++i) {
      const RunInput& input = run_.inputs[i];
      if (input.kind != RunInput::block && input.kind != RunInput::per_column) continue;
      const LLVMValueRef index = input.kind == RunInput::block ? element : column;
      values_[i] =
          load(vector_type(element_type_of(input.type)), element_at(pointers_[i], input.type, index), input.type);
    }
    std::vector<DType> types;
    for (const RunInput& input : run_.inputs) types.push_back(input.type);
    for (const RunOp& op : run_.ops) {
      values_.push_back(emit_primitive(op.op, op.type, op.out, values_[op.a], values_[op.b], values_[op.c]));
      types.push_back(op.out);
      if (!values_.back()) throw std::runtime_error(std::string("native code: ") + name_of(op.op) + " is not known");
    }
    for (size_t i = 0; i < run_.outputs.size(); ++i) {
      const RunOutput& output = run_.outputs[i];
      const DType type = types[output.value];
      const LLVMValueRef store =
          LLVMBuildStore(builder_, values_[output.value], element_at(out_pointers_[i], type, element));
      LLVMSetAlignment(store, static_cast<unsigned>(size_of(type)));
    }
  }

  const Run& run_;
  const IrTarget& target_;
  LLVMBuilderRef builder_;
  LLVMTypeRef word_, pointer_;
  LLVMValueRef function_ = nullptr;
  std::vector<LLVMValueRef> pointers_, out_pointers_;
  std::vector<LLVMValueRef> values_;  // inputs, then results
};

}  // namespace

void add_run_function(const Run& run, const char* name) { FunctionWriter(run, name).write(); }

}  // namespace ae::device::host::native
