// Modules that programs do not get, or get once.

#include <string.h>

#include "metrics/sandbox/guest/tables.h"

// Parts of Python's ABI since 3.8. The interpreter that loads this library defines them.
extern "C" {
extern PyObject* PyExc_ImportError;
extern PyObject* PyExc_TypeError;
int PyObject_SetAttrString(PyObject* object, const char* name, PyObject* value);
const char* PyUnicode_AsUTF8AndSize(PyObject* text, Py_ssize_t* bytes);
}

namespace evald::guest {
namespace {

/// The beginnings of names. ctypes and cffi call any function at any address. CPython's own test
/// modules write beside objects. Tcl's command `load` loads any library. Another interpreter makes
/// types anew, of which this one has changed functions.
constexpr const char* kRefused[] = {
    "_ctypes", "_cffi", "_test", "_xxtest", "_tkinter", "_xxsubinterpreters", "_interp"};

/// Faster copies of modules that the standard library has in Python, too. Code of a program can
/// free what their C code works on, by callbacks and comparisons.
constexpr const char* kHidden[] = {"_asyncio", "_elementtree", "_zoneinfo"};

/// A second copy would have types without what the guest has changed in them.
constexpr const char* kOnce[] = {"_bz2",      "_collections", "_csv",    "_functools",
                                 "_io",       "_lzma",        "_pickle", "_struct",
                                 "itertools", "mmap",         "pyexpat"};

template <size_t kCount>
bool IsIn(const char* const (&names)[kCount], const char* name) {
  for (const char* each : names) {
    if (strcmp(each, name) == 0) return true;
  }
  return false;
}

bool IsRefused(const char* module) {
  for (const char* prefix : kRefused) {
    if (strncmp(module, prefix, strlen(prefix)) == 0) return true;
  }
  return false;
}

PyObject* g_namespace = nullptr;  ///< types.SimpleNamespace
Method g_create_builtin;          ///< _imp.create_builtin as it was

/// A spec with a name that cannot change between this look and the interpreter's.
PyObject* FixedSpec(PyObject* name) {
  PyObject* const spec = PyObject_CallFunctionObjArgs(g_namespace, nullptr);
  if (spec == nullptr || PyObject_SetAttrString(spec, "name", name) == 0) return spec;
  Py_DecRef(spec);
  return nullptr;
}

PyObject* CreateNamed(PyObject* module, PyObject* name) {
  if (TypeOf(name) != &PyUnicode_Type) {
    PyErr_SetString(PyExc_TypeError, "the name of a spec is a str");
    return nullptr;
  }
  Py_ssize_t bytes = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(name, &bytes);
  if (text == nullptr) return nullptr;
  const char* const refusal = RefusalOfModule(text, text, true);
  if (refusal != nullptr) {
    PyErr_SetString(PyExc_ImportError, refusal);
    return nullptr;
  }
  PyObject* const spec = FixedSpec(name);
  if (spec == nullptr) return nullptr;
  PyObject* const created = g_create_builtin.call(module, spec);
  Py_DecRef(spec);
  return created;
}

/// In place of _imp.create_builtin, which raises no event for the audit hook.
PyObject* CreateBuiltin(PyObject* module, PyObject* spec) {
  PyObject* const name = PyObject_GetAttrString(spec, "name");
  if (name == nullptr) return nullptr;
  PyObject* const created = CreateNamed(module, name);
  Py_DecRef(name);
  return created;
}

}  // namespace

const char* RefusalOfModule(const char* name, const char* last_part, bool loads) {
  if (IsRefused(last_part)) {
    return "the sandbox refuses modules that write memory by its address, load libraries or start "
           "interpreters, such as ctypes";
  }
  // A package may have a module of such a name in Python.
  if (IsIn(kHidden, loads ? last_part : name)) {
    return "the sandbox has this module in Python only";
  }
  if (loads && IsIn(kOnce, last_part)) return "the sandbox refuses to load this module twice";
  return nullptr;
}

bool RefuseModules() {
  g_namespace = FindAttribute("types", nullptr, "SimpleNamespace");
  constexpr const char* kName = "create_builtin";
  Method* const method = MethodOf(FindAttribute("_imp", nullptr, kName), kName);
  if (g_namespace == nullptr || method == nullptr || method->flags != kOneArgument) return false;
  for (const char* name : kOnce) FindAttribute(name, nullptr, "__name__");
  g_create_builtin = *method;
  method->call = CreateBuiltin;
  return true;
}

}  // namespace evald::guest
