// What the engine and its compiler, a process of its own, say to each other over a pair of sockets. Both come from one
// build, so words go as they lie in memory.
//
//   request: Query, then Primitive, DType, DType (type, out)       answer: uint8_t, 1 if the primitive can be compiled
//   request: Compile, uint64_t size, the runs                      answer: uint8_t (1: an object file, 0: an error's
//                                                                  text), uint64_t size, the bytes
// Function i of the object file is named run_i.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "device/host/native/run.h"

namespace ae::device::host::native {

enum class Request : uint8_t { query, compile };

struct Query {
  Primitive op;
  DType type, out;
};

/// Reads or writes all of it; false at the end of the stream or on an error.
bool receive(int socket, void* to, size_t size);
bool send(int socket, const void* from, size_t size);

std::string pack_runs(const std::vector<Run>& runs);
/// Throws std::runtime_error on bytes that pack_runs did not make.
std::vector<Run> unpack_runs(const std::string& bytes);

}  // namespace ae::device::host::native
