#include "metrics/sandbox/guest/tables.h"

#include <string.h>

// Parts of Python's ABI since 3.8. The interpreter that loads this library defines them.
extern "C" {
extern PyObject PyBaseObject_Type;
extern PyObject PyType_Type;
void* PyCFunction_GetFunction(PyObject* function);
PyObject* PyImport_ImportModule(const char* name);
Py_ssize_t PyLong_AsSsize_t(PyObject* number);
PyObject* PyMapping_GetItemString(PyObject* mapping, const char* key);
PyObject* PyObject_Type(PyObject* object);
unsigned long PyType_GetFlags(PyObject* type);
}

namespace evald::guest {
namespace {

/// A type that a module has made at its start, with its tables behind it (Py_TPFLAGS_HEAPTYPE).
constexpr unsigned long kHeapType = 1ul << 9;

// PyTypeObject, whose beginning has been the same since CPython 3.8
constexpr size_t kTypeBytes = 400;
constexpr size_t kMappingWord = 14;      // tp_as_mapping
constexpr size_t kMappingFunctions = 3;  // PyMappingMethods

/// False if there is no such word.
bool ReplaceWord(void** words, size_t count, const void* word, void* replacement) {
  bool found = false;
  for (size_t i = 0; i < count; ++i) {
    if (words[i] != word) continue;
    words[i] = replacement;
    found = true;
  }
  return found;
}

Py_ssize_t BytesOfInstances(PyObject* type) {
  PyObject* const size = PyObject_GetAttrString(type, "__basicsize__");
  const Py_ssize_t bytes = size == nullptr ? -1 : PyLong_AsSsize_t(size);
  if (size != nullptr) Py_DecRef(size);
  PyErr_Clear();
  return bytes;
}

/// The field of a slot wrapper with its function, after the type, the name, the qualified name and
/// the slot's description.
void** FunctionOf(PyObject* type, const char* name) {
  PyObject* const members = PyObject_GetAttrString(type, "__dict__");
  PyObject* const wrapper = members == nullptr ? nullptr : PyMapping_GetItemString(members, name);
  PyErr_Clear();
  if (wrapper == nullptr || HeadBytes() <= 0) return nullptr;
  PyObject* const owner = PyObject_GetAttrString(wrapper, "__objclass__");
  PyErr_Clear();
  char* const fields = reinterpret_cast<char*>(wrapper) + HeadBytes();
  // The first field is the type.
  if (owner != type || *reinterpret_cast<PyObject**>(fields) != type) return nullptr;
  return reinterpret_cast<void**>(fields) + 4;
}

}  // namespace

const PyObject* TypeOf(PyObject* object) {
  PyObject* const type = PyObject_Type(object);
  Py_DecRef(type);  // the object keeps it
  return type;
}

PyObject* FindAttribute(const char* module_name, const char* owner_name, const char* name) {
  PyObject* owner = PyImport_ImportModule(module_name);
  if (owner != nullptr && owner_name != nullptr) owner = PyObject_GetAttrString(owner, owner_name);
  PyObject* const found = owner == nullptr ? nullptr : PyObject_GetAttrString(owner, name);
  PyErr_Clear();
  return found;
}

Py_ssize_t HeadBytes() {
  static Py_ssize_t bytes = 0;
  if (bytes == 0) bytes = BytesOfInstances(&PyBaseObject_Type);
  return bytes;
}

Method* MethodOf(PyObject* function, const char* name) {
  void* const call = function == nullptr ? nullptr : PyCFunction_GetFunction(function);
  PyErr_Clear();
  if (HeadBytes() <= 0 || call == nullptr) return nullptr;
  Method* const method =
      *reinterpret_cast<Method* const*>(reinterpret_cast<const char*>(function) + HeadBytes());
  if (reinterpret_cast<void*>(method->call) != call || strcmp(method->name, name) != 0)
    return nullptr;
  return method;
}

bool ReplaceSlot(PyObject* type, const char* name, void* replacement, void** original) {
  void** const function = FunctionOf(type, name);
  if (function == nullptr || *function == nullptr) return false;
  // A type object ends with tables of its own if it was made at run time. Otherwise one of its
  // words leads to the table of what mappings can do.
  const bool made = (PyType_GetFlags(type) & kHeapType) != 0;
  const size_t bytes = made ? static_cast<size_t>(BytesOfInstances(&PyType_Type)) : kTypeBytes;
  void** const words = reinterpret_cast<void**>(type);
  bool found = ReplaceWord(words, bytes / sizeof(void*), *function, replacement);
  if (!made && words[kMappingWord] != nullptr) {
    auto* const mapping = static_cast<void**>(words[kMappingWord]);
    found = ReplaceWord(mapping, kMappingFunctions, *function, replacement) || found;
  }
  if (!found) return false;
  *original = *function;
  *function = replacement;
  return true;
}

}  // namespace evald::guest
