#include "engine/python_state.h"

#include <Python.h>
#include <torch/csrc/Exceptions.h>

#include <string_view>
#include <utility>

namespace ae::engine {
namespace {

std::string g_torch_folder, g_own_folder;  // set once, at import

// A thread that never ran Python gets no thread state from us: it has no frame anyway.
bool has_python() { return Py_IsInitialized() && PyGILState_GetThisThreadState() != nullptr; }

class Gil {
 public:
  Gil() : state_(PyGILState_Ensure()) {}
  ~Gil() { PyGILState_Release(state_); }
  Gil(const Gil&) = delete;
  Gil& operator=(const Gil&) = delete;

 private:
  PyGILState_STATE state_;
};

bool is_skipped(std::string_view file) {
  return (!g_torch_folder.empty() && file.starts_with(g_torch_folder)) ||
         (!g_own_folder.empty() && file.starts_with(g_own_folder) &&
          !file.substr(g_own_folder.size()).starts_with("demo/"));
}

// The text of a code object's file name, which lives as long as the code object.
std::string_view file_of(PyFrameObject* frame) {
  PyCodeObject* code = PyFrame_GetCode(frame);
  Py_ssize_t length = 0;
  const char* text = PyUnicode_AsUTF8AndSize(code->co_filename, &length);
  if (text == nullptr) PyErr_Clear();
  Py_DECREF(code);
  return text ? std::string_view(text, static_cast<size_t>(length)) : std::string_view();
}

std::string text_of(PyFrameObject* frame) {
  return std::string(file_of(frame)) + ":" + std::to_string(PyFrame_GetLineNumber(frame));
}

}  // namespace

GilRelease::GilRelease() {
  if (has_python() && PyGILState_Check()) state_ = PyEval_SaveThread();
}

GilRelease::~GilRelease() {
  if (state_) PyEval_RestoreThread(static_cast<PyThreadState*>(state_));
}

std::string current_source_line() {
  if (!has_python()) return {};
  Gil gil;
  auto* frame = reinterpret_cast<PyFrameObject*>(Py_XNewRef(reinterpret_cast<PyObject*>(PyEval_GetFrame())));
  if (frame == nullptr) return {};
  const std::string innermost = is_skipped(file_of(frame)) ? text_of(frame) : std::string();
  while (frame != nullptr && is_skipped(file_of(frame))) {
    PyFrameObject* outer = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = outer;
  }
  if (frame == nullptr) return innermost;
  std::string line = text_of(frame);
  Py_DECREF(frame);
  return line;
}

void check_signals() {
  if (!has_python()) return;
  Gil gil;
  if (PyErr_CheckSignals() != 0) {
    python_error error;
    error.persist();
    throw error;
  }
}

void set_skipped_folders(std::string torch_folder, std::string own_folder) {
  g_torch_folder = std::move(torch_folder);
  g_own_folder = std::move(own_folder);
}

}  // namespace ae::engine
