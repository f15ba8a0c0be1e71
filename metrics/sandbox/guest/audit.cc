// What a program may not import: modules that read and write memory by its address. SQLite is made
// safe when it is imported. The hook is the interpreter's own (PEP 578), in machine code, and
// cannot be taken away from Python.

#include <string.h>
#include <unistd.h>

#include "metrics/sandbox/guest/guest.h"

// Of Python's ABI since 3.8; the interpreter that loads this library defines them.
extern "C" {
using Py_ssize_t = ssize_t;
extern PyObject* PyExc_ImportError;
extern PyObject* PyExc_PermissionError;
int PySys_AddAuditHook(int (*hook)(const char* event, PyObject* arguments, void* data), void* data);
PyObject* PyTuple_GetItem(PyObject* tuple, Py_ssize_t index);
const char* PyUnicode_AsUTF8AndSize(PyObject* text, Py_ssize_t* bytes);
void PyErr_SetString(PyObject* type, const char* message);
void PyErr_Clear(void);
}

namespace evald::guest {
namespace {

/// ctypes and cffi call any function at any address; CPython's own test modules write beside
/// objects.
constexpr const char* kRefused[] = {"_ctypes", "_cffi", "_test", "_xxtest"};

/// The argument of an event as UTF-8, which may hold zeros; "" where it is no text.
const char* TextOf(PyObject* arguments, Py_ssize_t index, Py_ssize_t* bytes) {
  *bytes = 0;
  PyObject* const argument = PyTuple_GetItem(arguments, index);
  const char* const text = argument == nullptr ? nullptr : PyUnicode_AsUTF8AndSize(argument, bytes);
  PyErr_Clear();
  return text == nullptr ? "" : text;
}

/// The last part of a dotted name, by which the interpreter finds an extension module's start
/// function. The interpreter takes it from the whole text and then reads it up to a zero.
const char* LastPart(PyObject* arguments) {
  Py_ssize_t bytes = 0;
  const char* const name = TextOf(arguments, 0, &bytes);
  const auto* const dot = static_cast<const char*>(memrchr(name, '.', static_cast<size_t>(bytes)));
  return dot == nullptr ? name : dot + 1;
}

bool IsRefused(const char* module) {
  for (const char* prefix : kRefused) {
    if (strncmp(module, prefix, strlen(prefix)) == 0) return true;
  }
  return false;
}

int Refuse(PyObject* type, const char* message) {
  PyErr_SetString(type, message);
  return -1;
}

/// The event has the module's name and, where it is a file that is about to be loaded, the path of
/// that.
int AuditImport(PyObject* arguments) {
  const char* const module = LastPart(arguments);
  if (IsRefused(module)) {
    return Refuse(PyExc_ImportError,
                  "the sandbox refuses modules that write memory by its address, such as ctypes");
  }
  Py_ssize_t ignored = 0;
  const char* const path = strcmp(module, "_sqlite3") == 0 ? TextOf(arguments, 1, &ignored) : "";
  if (path[0] == '\0' || TameSqlite(path)) return 0;
  return Refuse(PyExc_ImportError,
                "the sandbox refuses sqlite3: its function fts3_tokenizer, which calls any "
                "address, cannot be replaced "
                "in this interpreter");
}

int Audit(const char* event, PyObject* arguments, void*) {
  switch (event[0]) {
    case 'i':
      return strcmp(event, "import") == 0 ? AuditImport(arguments) : 0;
    case 'c':
      if (strncmp(event, "ctypes.", 7) != 0) return 0;
      return Refuse(PyExc_PermissionError, "the sandbox refuses ctypes");
    case 's':
      if (strcmp(event, "sqlite3.enable_load_extension") != 0) return 0;
      return Refuse(PyExc_PermissionError, "the sandbox refuses extensions of SQLite");
    default:
      return 0;
  }
}

}  // namespace

bool RefuseMemoryAccess() {
  TameSqlite("");  // one that the interpreter has built in: no event has its file
  return PySys_AddAuditHook(Audit, nullptr) == 0;
}

}  // namespace evald::guest
