// What the engine needs of the Python interpreter: the GIL, signals and the current source line.
#pragma once

#include <string>

namespace ae::engine {

/// Releases the GIL for its lifetime if this thread holds it.
class GilRelease {
 public:
  GilRelease();
  ~GilRelease();
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;

 private:
  void* state_ = nullptr;
};

/// "file:line" of the innermost Python frame of this thread that is neither in torch's package nor in ours (else of the
/// innermost one); empty when the thread runs no Python. Takes the GIL.
std::string current_source_line();

/// Runs signal handlers; throws python_error when one raised (KeyboardInterrupt). Takes the GIL.
void check_signals();

/// The folders whose frames current_source_line() passes over, each with a slash at its end. Our demo is a user's
/// program and is not passed over.
void set_skipped_folders(std::string torch_folder, std::string own_folder);

}  // namespace ae::engine
