// Executes a program in the forked interpreter and records its end.

#include <sys/mman.h>
#include <unistd.h>

#include "metrics/sandbox/guest/guest.h"

// Parts of Python's stable ABI. The interpreter that loads this library defines them.
extern "C" {
using Py_ssize_t = ssize_t;
void PyOS_AfterFork_Child(void);
PyObject* PyUnicode_DecodeUTF8(const char* text, Py_ssize_t bytes, const char* errors);
PyObject* PyUnicode_AsEncodedString(PyObject* text, const char* encoding, const char* errors);
char* PyBytes_AsString(PyObject* bytes);
PyObject* PyDict_New(void);
PyObject* PyObject_CallFunctionObjArgs(PyObject* callable, ...);
PyObject* PyObject_GetAttrString(PyObject* object, const char* name);
PyObject* PyObject_Str(PyObject* object);
void PyErr_Fetch(PyObject** type, PyObject** value, PyObject** traceback);
void PyErr_NormalizeException(PyObject** type, PyObject** value, PyObject** traceback);
void PyErr_Clear(void);
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
