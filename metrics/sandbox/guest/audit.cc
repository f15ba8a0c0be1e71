// What a program may not import: modules that read and write memory by its address. The hook is the
// interpreter's own (PEP 578), in machine code, and cannot be taken away from Python.

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

/// The last part of a module's dotted name, by which an extension module's start function is found.
bool IsRefused(PyObject* name) {
  const char* text = name == nullptr ? nullptr : PyUnicode_AsUTF8AndSize(name, nullptr);
  if (text == nullptr) {
    PyErr_Clear();
    return false;
  }
  const char* const dot = strrchr(text, '.');
  const char* const last = dot == nullptr ? text : dot + 1;
  for (const char* prefix : kRefused) {
    if (strncmp(last, prefix, strlen(prefix)) == 0) return true;
  }
  return false;
}

int Refuse(PyObject* type, const char* message) {
  PyErr_SetString(type, message);
  return -1;
}

int Audit(const char* event, PyObject* arguments, void*) {
  switch (event[0]) {
    case 'i':
      if (strcmp(event, "import") != 0 || !IsRefused(PyTuple_GetItem(arguments, 0))) return 0;
      return Refuse(PyExc_ImportError,
                    "the sandbox refuses modules that write memory by its address, such as ctypes");
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

bool RefuseMemoryAccess() { return PySys_AddAuditHook(Audit, nullptr) == 0; }

}  // namespace evald::guest
