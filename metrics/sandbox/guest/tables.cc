#include "metrics/sandbox/guest/tables.h"

#include <string.h>

// Parts of Python's ABI since 3.8. The interpreter that loads this library defines them.
extern "C" {
extern PyObject PyBaseObject_Type;
extern PyObject PyType_Type;
void* PyCFunction_GetFunction(PyObject* function);
PyObject* PyImport_ImportModule(const char* name);
PyObject* PyList_GetItem(PyObject* list, Py_ssize_t index);
Py_ssize_t PyList_Size(PyObject* list);
Py_ssize_t PyLong_AsSsize_t(PyObject* number);
PyObject* PyMapping_GetItemString(PyObject* mapping, const char* key);
PyObject* PyObject_CallMethod(PyObject* object, const char* name, const char* format, ...);
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

/// The words of a type object in which functions of its own can be.
size_t WordsOf(PyObject* type) {
  // A type object ends with tables of its own if it was made at run time.
  const bool made = (PyType_GetFlags(type) & kHeapType) != 0;
  const Py_ssize_t bytes = made ? NumberOf(&PyType_Type, "__basicsize__") : Py_ssize_t{kTypeBytes};
  return bytes <= 0 ? 0 : static_cast<size_t>(bytes) / sizeof(void*);
}

/// Replaces the word also in the types below, which inherited a copy of it when they were made.
void ReplaceBelow(PyObject* type, const void* word, void* replacement) {
  PyObject* const below = PyObject_CallMethod(&PyType_Type, "__subclasses__", "O", type);
  const Py_ssize_t count = below == nullptr ? 0 : PyList_Size(below);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* const inherits = PyList_GetItem(below, i);
    ReplaceWord(reinterpret_cast<void**>(inherits), WordsOf(inherits), word, replacement);
    ReplaceBelow(inherits, word, replacement);
  }
  if (below != nullptr) Py_DecRef(below);
  PyErr_Clear();
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
  if (bytes == 0) bytes = NumberOf(&PyBaseObject_Type, "__basicsize__");
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

Py_ssize_t NumberOf(PyObject* object, const char* name) {
  PyObject* const value = PyObject_GetAttrString(object, name);
  const Py_ssize_t number = value == nullptr ? -1 : PyLong_AsSsize_t(value);
  if (value != nullptr) Py_DecRef(value);
  PyErr_Clear();
  return number;
}

bool HasSlot(PyObject* type, const char* name) { return FunctionOf(type, name) != nullptr; }

bool ReplaceSlot(PyObject* type, const char* name, void* replacement, void** original) {
  void** const function = FunctionOf(type, name);
  if (function == nullptr || *function == nullptr) return false;
  void* const found = *function;
  void** const words = reinterpret_cast<void**>(type);
  bool replaced = ReplaceWord(words, WordsOf(type), found, replacement);
  // One of the words of a type that was not made at run time leads to the table of what mappings
  // can do.
  const bool made = (PyType_GetFlags(type) & kHeapType) != 0;
  if (!made && words[kMappingWord] != nullptr) {
    auto* const mapping = static_cast<void**>(words[kMappingWord]);
    replaced = ReplaceWord(mapping, kMappingFunctions, found, replacement) || replaced;
  }
  if (!replaced && found != *original) return false;
  ReplaceBelow(type, found, replacement);
  *original = found;
  *function = replacement;
  return true;
}

}  // namespace evald::guest
