// The native tier's compiler: a program of its own over LLVM, which serves one engine (see protocol.h) until that ends.
#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <sys/resource.h>
#include <unistd.h>

#include <stdexcept>
#include <string>

#include "device/host/native/compiler/ir_vec.h"
#include "device/host/native/compiler/primitives.h"
#include "device/host/native/compiler/run_function.h"
#include "device/host/native/protocol.h"

namespace ae::device::host::native {
namespace {

constexpr int kNiceness = 5;  // the engine's own threads come first

struct Text {
  char* text;
  ~Text() { LLVMDisposeMessage(text); }
};

/// A context with a module and a builder, which ir_target() names while this lives.
class ModuleScope {
 public:
  ModuleScope() {
    IrTarget& target = ir_target();
    target.context = LLVMContextCreate();
    target.module = LLVMModuleCreateWithNameInContext("runs", target.context);
    target.builder = LLVMCreateBuilderInContext(target.context);
  }
  ~ModuleScope() {
    IrTarget& target = ir_target();
    LLVMDisposeBuilder(target.builder);
    LLVMDisposeModule(target.module);
    LLVMContextDispose(target.context);
    target = {};
  }
  ModuleScope(const ModuleScope&) = delete;
  ModuleScope& operator=(const ModuleScope&) = delete;
};

class Compiler {
 public:
  Compiler() {
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    const Text triple{LLVMGetDefaultTargetTriple()}, cpu{LLVMGetHostCPUName()}, features{LLVMGetHostCPUFeatures()};
    LLVMTargetRef target = nullptr;
    char* error = nullptr;
    if (LLVMGetTargetFromTriple(triple.text, &target, &error)) throw std::runtime_error(Text{error}.text);
    triple_ = triple.text;
    machine_ = LLVMCreateTargetMachine(target, triple.text, cpu.text, features.text, LLVMCodeGenLevelDefault,
                                       LLVMRelocPIC, LLVMCodeModelSmall);
  }

  /// Writes the primitive into a function that is thrown away.
  bool can_compile(const Query& query) const {
    const ModuleScope scope;
    const IrTarget& target = ir_target();
    const LLVMTypeRef signature = LLVMFunctionType(LLVMVoidTypeInContext(target.context), nullptr, 0, false);
    const LLVMValueRef function = LLVMAddFunction(target.module, "probe", signature);
    LLVMPositionBuilderAtEnd(target.builder, LLVMAppendBasicBlockInContext(target.context, function, ""));
    const LLVMValueRef operand = LLVMGetUndef(vector_type(element_type_of(query.type)));
    const LLVMValueRef mask = LLVMGetUndef(vector_type(int_type(8)));
    return emit_primitive(query.op, query.type, query.out, query.op == Primitive::select ? mask : operand, operand,
                          operand) != nullptr;
  }

  /// The object file.
  std::string compile(const std::vector<Run>& runs) const {
    const ModuleScope scope;
    for (size_t i = 0; i < runs.size(); ++i) add_run_function(runs[i], ("run_" + std::to_string(i)).c_str());
    const LLVMModuleRef module = ir_target().module;
    LLVMSetTarget(module, triple_.c_str());
    const LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine_);
    LLVMSetModuleDataLayout(module, layout);
    LLVMDisposeTargetData(layout);
    const LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    const LLVMErrorRef failed = LLVMRunPasses(module, "function(early-cse,instcombine,early-cse)", machine_, options);
    LLVMDisposePassBuilderOptions(options);
    if (failed) {
      char* message = LLVMGetErrorMessage(failed);
      const std::string text = message;
      LLVMDisposeErrorMessage(message);
      throw std::runtime_error(text);
    }
    LLVMMemoryBufferRef object = nullptr;
    char* error = nullptr;
    if (LLVMTargetMachineEmitToMemoryBuffer(machine_, module, LLVMObjectFile, &error, &object))
      throw std::runtime_error(Text{error}.text);
    std::string bytes(LLVMGetBufferStart(object), LLVMGetBufferSize(object));
    LLVMDisposeMemoryBuffer(object);
    return bytes;
  }

 private:
  std::string triple_;
  LLVMTargetMachineRef machine_ = nullptr;
};

bool answer_compile(const Compiler& compiler, int socket) {
  uint64_t size = 0;
  if (!receive(socket, &size, sizeof(size))) return false;
  std::string text(size, 0);
  if (!receive(socket, text.data(), size)) return false;
  uint8_t fine = 1;
  try {
    text = compiler.compile(unpack_runs(text));
  } catch (const std::runtime_error& error) {
    fine = 0;
    text = error.what();
  }
  size = text.size();
  return send(socket, &fine, sizeof(fine)) && send(socket, &size, sizeof(size)) && send(socket, text.data(), size);
}

bool answer_query(const Compiler& compiler, int socket) {
  Query query;
  if (!receive(socket, &query, sizeof(query))) return false;
  const uint8_t answer = compiler.can_compile(query);
  return send(socket, &answer, sizeof(answer));
}

void serve(int socket) {
  const Compiler compiler;
  Request request;
  while (receive(socket, &request, sizeof(request))) {
    if (!(request == Request::query ? answer_query(compiler, socket) : answer_compile(compiler, socket))) return;
  }
}

}  // namespace
}  // namespace ae::device::host::native

int main() {
  if (fork() != 0) _exit(0);  // see CompilerProcess::start
  setsid();                   // signals from the terminal are for the engine
  setpriority(PRIO_PROCESS, 0, ae::device::host::native::kNiceness);
  try {
    ae::device::host::native::serve(STDIN_FILENO);
  } catch (const std::exception&) {
    return 1;
  }
  return 0;
}
