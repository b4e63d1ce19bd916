// Executables and programs of the functional device: everything is compiled for its sizes.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/conformance/functional_memory.h"
#include "tests/cpp/tile_reference.h"

namespace ae::device::conformance {

/// A kernel compiled for one geometry: space, views, which operands are one argument, and the arguments' bytes.
class StaticKernel {
 public:
  StaticKernel(const TileProgram& program, const Segment& segment, std::vector<int> argument_of,
               std::vector<int64_t> argument_bytes);
  /// The arguments after the call; throws std::logic_error when their sizes are others than it was compiled for.
  std::vector<Bytes> call(std::vector<Bytes> arguments, std::vector<uint64_t> scalars) const;
  const std::vector<int>& outputs() const { return outputs_; }  // arguments that it writes

 private:
  host::testing::TileCase fixed_;
  std::vector<int64_t> argument_bytes_;
  std::vector<int> outputs_;
};

class FunctionalExecutable final : public Executable {
 public:
  explicit FunctionalExecutable(TileProgram program) : program_(std::move(program)) {}
  const TileProgram& program() const { return program_; }
  /// The kernel for a segment's geometry; sets `made` if it is new.
  std::shared_ptr<const StaticKernel> compile(const Segment& segment, const std::vector<int>& argument_of,
                                              const std::vector<int64_t>& argument_bytes, bool& made) const;

 private:
  TileProgram program_;
  mutable std::mutex mutex_;
  mutable std::map<std::vector<int64_t>, std::shared_ptr<const StaticKernel>> kernels_;  // by geometry
};

struct StaticSegment {
  std::shared_ptr<const StaticKernel> kernel;
  std::vector<int32_t> arguments;  // slots
  std::vector<int32_t> scalars;
};

struct FunctionalLaunch {
  std::vector<StaticSegment> segments;
  LaunchSpec spec;
  std::vector<int32_t> writes;       // slots, each once
  std::vector<int32_t> last_writes;  // those of them that no later launch writes
};

class FunctionalProgram final : public Program {
 public:
  /// Adds to the counts of kernels made and found.
  FunctionalProgram(ProgramSpec spec, int64_t& made, int64_t& found);
  int32_t slots = 0;
  std::vector<int64_t> slot_bytes;
  std::vector<FunctionalLaunch> launches;

 private:
  StaticSegment compile(const Segment& segment, std::vector<int32_t>& writes, int64_t& made, int64_t& found) const;
};

}  // namespace ae::device::conformance
