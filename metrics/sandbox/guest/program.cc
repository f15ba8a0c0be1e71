// Executes a program in the forked interpreter and records its end.

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "metrics/sandbox/guest/guest.h"

// Parts of Python's stable ABI. The interpreter that loads this library defines them.
extern "C" {
using Py_ssize_t = ssize_t;
void PyOS_AfterFork_Child(void);
PyObject* PyUnicode_DecodeUTF8(const char* text, Py_ssize_t bytes, const char* errors);
PyObject* PyUnicode_AsEncodedString(PyObject* text, const char* encoding, const char* errors);
char* PyBytes_AsString(PyObject* bytes);
Py_ssize_t PyBytes_Size(PyObject* bytes);
PyObject* PyDict_New(void);
PyObject* PyObject_CallFunctionObjArgs(PyObject* callable, ...);
PyObject* PyObject_GetAttrString(PyObject* object, const char* name);
PyObject* PyObject_Str(PyObject* object);
void PyErr_Fetch(PyObject** type, PyObject** value, PyObject** traceback);
void PyErr_NormalizeException(PyObject** type, PyObject** value, PyObject** traceback);
void PyErr_Clear(void);
PyObject* PySys_GetObject(const char* name);
}

namespace evald::guest {
namespace {

void AppendText(CompletionPage* page, const char* text) {
  uint32_t used = page->detail_bytes;
  while (*text != '\0' && used < sandbox::kDetailBytes) page->detail[used++] = *text++;
  page->detail_bytes = used;
}

/// Appends a Python string. A string that cannot be read (str() may itself raise) is left out.
void AppendObject(CompletionPage* page, PyObject* text) {
  PyObject* bytes = text == nullptr ? nullptr : PyUnicode_AsEncodedString(text, "utf-8", "replace");
  const char* data = bytes == nullptr ? nullptr : PyBytes_AsString(bytes);
  if (data != nullptr) AppendText(page, data);
  PyErr_Clear();
}

constexpr uint64_t kHalf = sandbox::kOutputBytes / 2;

PyObject* CallMethod(PyObject* object, const char* name) {
  PyObject* method = object == nullptr ? nullptr : PyObject_GetAttrString(object, name);
  return method == nullptr ? nullptr : PyObject_CallFunctionObjArgs(method, nullptr);
}

/// Keeps the beginning and the end of a text in memory (a ProgramStream, zygote.py).
void KeepText(CompletionPage* page, const char* text, uint64_t bytes) {
  page->output_bytes = bytes;
  const bool all = bytes <= sandbox::kOutputBytes;
  memcpy(page->output, text, all ? bytes : kHalf);
  if (!all) memcpy(page->output + kHalf, text + bytes - kHalf, kHalf);
}

/// The same of the file that standard output is, if it is one: tests of whole outputs make it one.
void KeepFile(CompletionPage* page) {
  struct stat file;
  if (fstat(1, &file) != 0 || !S_ISREG(file.st_mode) || file.st_size <= 0) return;
  const auto bytes = static_cast<uint64_t>(file.st_size);
  const bool all = bytes <= sandbox::kOutputBytes;
  const uint64_t first = all ? bytes : kHalf;
  if (pread(1, page->output, first, 0) != static_cast<ssize_t>(first)) return;
  if (!all && pread(1, page->output + kHalf, kHalf, file.st_size - static_cast<off_t>(kHalf)) !=
                  static_cast<ssize_t>(kHalf))
    return;
  page->output_bytes = bytes;
}

/// Records what the program had printed when it failed, for people.
void RecordOutput(CompletionPage* page) {
  PyObject* stream = PySys_GetObject("stdout");
  PyObject* text = CallMethod(stream, "getvalue");
  PyErr_Clear();
  PyObject* bytes = text == nullptr ? nullptr : PyUnicode_AsEncodedString(text, "utf-8", "replace");
  const char* data = bytes == nullptr ? nullptr : PyBytes_AsString(bytes);
  if (data != nullptr) {
    KeepText(page, data, static_cast<uint64_t>(PyBytes_Size(bytes)));
  } else {
    CallMethod(stream, "flush");
    KeepFile(page);
  }
  PyErr_Clear();
}

/// Records the exception that the program raised, unless this process was forked by the program.
void RecordException() {
  CompletionPage* const page = OwnCompletion();
  if (page == nullptr) return;
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  AppendText(page, "failed: ");
  AppendObject(page, type == nullptr ? nullptr : PyObject_GetAttrString(type, "__name__"));
  AppendText(page, ": ");
  AppendObject(page, value == nullptr ? nullptr : PyObject_Str(value));
  RecordOutput(page);
}

}  // namespace

void RunProgram(const Program& program) {
  PyOS_AfterFork_Child();
  // From here on the program can at most fake its own end, but not a failure of the sandbox.
  munmap(program.setup, sizeof(*program.setup));
  PyObject* source = PyUnicode_DecodeUTF8(
      program.source, static_cast<Py_ssize_t>(program.request.source_bytes), "replace");
  PyObject* globals = source == nullptr ? nullptr : PyDict_New();
  PyObject* result =
      globals == nullptr
          ? nullptr
          : PyObject_CallFunctionObjArgs(program.zygote->exec_function, source, globals, nullptr);
  if (result == nullptr) {
    RecordException();
    _exit(1);
  }
  // A fork must not learn from its status how the tests went
  if (OwnCompletion() == nullptr) _exit(1);
  RecordCompletion();
  _exit(0);
}

}  // namespace evald::guest
