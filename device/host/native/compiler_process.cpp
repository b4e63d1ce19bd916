#include "device/host/native/compiler_process.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>

#include "device/host/native/protocol.h"

namespace ae::device::host::native {
namespace {

constexpr const char* kProgram = "ae_native_compiler";

/// The compiler lies beside the library (or the program) that this code is in.
std::string compiler_path() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void*>(&compiler_path), &info) || !info.dli_fname) return {};
  const std::string own = info.dli_fname;
  const size_t slash = own.rfind('/');
  return (slash == std::string::npos ? std::string(".") : own.substr(0, slash)) + "/" + kProgram;
}

}  // namespace

std::unique_ptr<CompilerProcess> CompilerProcess::start() {
  const std::string path = compiler_path();
  int sockets[2];
  if (access(path.c_str(), X_OK) != 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
    return nullptr;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, sockets[1], STDIN_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  char* const arguments[] = {const_cast<char*>(kProgram), nullptr};
  pid_t child = 0;
  const int failed = posix_spawn(&child, path.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(sockets[1]);
  if (failed) {
    close(sockets[0]);
    return nullptr;
  }
  // It forks once more and ends, so that the program that we are part of has no child which it did not start.
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return std::unique_ptr<CompilerProcess>(new CompilerProcess(sockets[0]));
}

CompilerProcess::~CompilerProcess() { close(socket_); }

bool CompilerProcess::can_compile(Primitive op, DType type, DType out) {
  const auto [known, is_new] = known_.try_emplace({op, type, out}, false);
  if (!is_new) return known->second;
  const Request kind = Request::query;
  const Query query{op, type, out};
  uint8_t answer = 0;
  if (!send(socket_, &kind, sizeof(kind)) || !send(socket_, &query, sizeof(query)) ||
      !receive(socket_, &answer, sizeof(answer))) {
    throw std::runtime_error("native code: the compiler's process has ended");
  }
  return known->second = answer != 0;
}

std::shared_ptr<const ObjectCode> CompilerProcess::compile(const std::vector<Run>& runs) {
  const Request kind = Request::compile;
  const std::string request = pack_runs(runs);
  uint64_t size = request.size();
  uint8_t fine = 0;
  std::string answer;
  bool alive = send(socket_, &kind, sizeof(kind)) && send(socket_, &size, sizeof(size)) &&
               send(socket_, request.data(), request.size()) && receive(socket_, &fine, sizeof(fine)) &&
               receive(socket_, &size, sizeof(size));
  if (alive) {
    answer.resize(size);
    alive = receive(socket_, answer.data(), size);
  }
  if (!alive) throw std::runtime_error("native code: the compiler's process has ended");
  if (!fine) throw std::runtime_error("native code: " + answer);
  return std::make_shared<const ObjectCode>(answer, runs.size());
}

}  // namespace ae::device::host::native
