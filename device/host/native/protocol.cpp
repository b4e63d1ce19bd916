#include "device/host/native/protocol.h"

#include <sys/socket.h>

#include <cerrno>

namespace ae::device::host::native {

bool receive(int socket, void* to, size_t size) {
  for (auto* at = static_cast<char*>(to); size > 0;) {
    const ssize_t got = ::recv(socket, at, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

bool send(int socket, const void* from, size_t size) {
  for (auto* at = static_cast<const char*>(from); size > 0;) {
    const ssize_t put = ::send(socket, at, size, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    at += put;
    size -= static_cast<size_t>(put);
  }
  return true;
}

namespace {

template <class T>
void append(std::string& bytes, const std::vector<T>& items) {
  static_assert(std::is_trivially_copyable_v<T>);
  const uint64_t count = items.size();
  bytes.append(reinterpret_cast<const char*>(&count), sizeof(count));
  bytes.append(reinterpret_cast<const char*>(items.data()), count * sizeof(T));
}

template <class T>
void take(const std::string& bytes, size_t& at, std::vector<T>& items) {
  uint64_t count = 0;
  const auto need = [&](size_t size) {
    if (bytes.size() - at < size) throw std::runtime_error("native code: a damaged request");
  };
  need(sizeof(count));
  std::memcpy(&count, bytes.data() + at, sizeof(count));
  at += sizeof(count);
  if (count > bytes.size() / sizeof(T)) throw std::runtime_error("native code: a damaged request");
  need(count * sizeof(T));
  items.resize(count);
  std::memcpy(items.data(), bytes.data() + at, count * sizeof(T));
  at += count * sizeof(T);
}

}  // namespace

std::string pack_runs(const std::vector<Run>& runs) {
  std::string bytes;
  for (const Run& run : runs) {
    append(bytes, run.inputs);
    append(bytes, run.ops);
    append(bytes, run.outputs);
  }
  return bytes;
}

std::vector<Run> unpack_runs(const std::string& bytes) {
  std::vector<Run> runs;
  for (size_t at = 0; at < bytes.size();) {
    Run& run = runs.emplace_back();
    take(bytes, at, run.inputs);
    take(bytes, at, run.ops);
    take(bytes, at, run.outputs);
  }
  return runs;
}

}  // namespace ae::device::host::native
