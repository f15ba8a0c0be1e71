// Numbers that are objects of a program.
//
// An array or a mapping of memory (array.array, mmap.mmap) checks an index, then asks an object of
// the program for a number (`__index__`). CPython before the mending of these faults does not look
// again: an array that the object has emptied meanwhile is written at the address 0 plus the index,
// which may be any address below the size that the array had. Here the objects become plain numbers
// before the original is called, so that it runs no code of the program.

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "metrics/sandbox/guest/tables.h"

// Parts of Python's ABI since 3.8. The interpreter that loads this library defines them.
extern "C" {
extern PyObject* PyExc_IndexError;
extern PyObject PySlice_Type;
double PyFloat_AsDouble(PyObject* number);
PyObject* PyFloat_FromDouble(double number);
PyObject* PyNumber_Index(PyObject* object);
int PyIndex_Check(PyObject* object);
PyObject* PyObject_CallFunction(PyObject* callable, const char* format, ...);
PyObject* PySlice_New(PyObject* start, PyObject* stop, PyObject* step);
PyObject* PyTuple_GetItem(PyObject* tuple, Py_ssize_t index);
PyObject* PyTuple_New(Py_ssize_t count);
int PyTuple_SetItem(PyObject* tuple, Py_ssize_t index, PyObject* item);
Py_ssize_t PyTuple_Size(PyObject* tuple);
}

namespace evald::guest {
namespace {

/// arraydescr: an array has one for its kind of items.
struct Items {
  char kind;
  int bytes;
  PyObject* (*get)(PyObject* array, Py_ssize_t index);
  int (*set)(PyObject* array, Py_ssize_t index, PyObject* value);
};

constexpr char kKinds[] = "bBuhHiIlLqQfdw";
decltype(Items::set) g_set[sizeof(kKinds)];

/// An object's number of items, its memory, the room there, and the kind of items follow what all
/// objects have.
struct Array {
  Py_ssize_t count;
  char* memory;
  Py_ssize_t room;
  Items* items;
};

const Array& ArrayOf(PyObject* array) {
  return *reinterpret_cast<Array*>(reinterpret_cast<char*>(array) + HeadBytes());
}

PyObject* NewReference(PyObject* object) {
  Py_IncRef(object);
  return object;
}

/// A plain int for whatever can be one; every other object as it is. A new reference.
PyObject* PlainInt(PyObject* object) {
  if (TypeOf(object) == &PyLong_Type || PyIndex_Check(object) == 0) return NewReference(object);
  return PyNumber_Index(object);
}

PyObject* PlainItem(char kind, PyObject* value) {
  if (kind == 'u' || kind == 'w') return NewReference(value);  // runs no code of the program
  if (kind != 'f' && kind != 'd') return PlainInt(value);
  const double number = PyFloat_AsDouble(value);
  if (number == -1.0 && PyErr_Occurred() != nullptr) return nullptr;
  return PyFloat_FromDouble(number);
}

/// In place of the functions that set an item. An index below 0 only tries the value.
int SetItem(PyObject* array, Py_ssize_t index, PyObject* value) {
  const char kind = ArrayOf(array).items->kind;
  PyObject* const plain = PlainItem(kind, value);
  if (plain == nullptr) return -1;
  int result = -1;
  if (index >= ArrayOf(array).count) {
    PyErr_SetString(PyExc_IndexError, "array assignment index out of range");
  } else {
    result = g_set[strchr(kKinds, kind) - kKinds](array, index, plain);
  }
  Py_DecRef(plain);
  return result;
}

/// The table is constant for the compiler, and may lie in memory that is only for reading.
bool ReplaceSet(Items* items, size_t kind) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = reinterpret_cast<uintptr_t>(items) & ~(page - 1);
  const uintptr_t end = reinterpret_cast<uintptr_t>(items + 1);
  if (mprotect(reinterpret_cast<void*>(begin), end - begin, PROT_READ | PROT_WRITE) != 0)
    return false;
  g_set[kind] = items->set;
  items->set = SetItem;
  return true;
}

bool CheckArrays() {
  PyObject* const type = FindAttribute("array", nullptr, "array");
  if (type == nullptr) return true;
  for (size_t i = 0; kKinds[i] != '\0'; ++i) {
    PyObject* const array = PyObject_CallFunction(type, "C", static_cast<int>(kKinds[i]));
    PyErr_Clear();
    if (array == nullptr) continue;  // a kind of other versions
    const Array& fields = ArrayOf(array);
    if (fields.count != 0 || fields.memory != nullptr || fields.items == nullptr ||
        fields.items->kind != kKinds[i] || !ReplaceSet(fields.items, i)) {
      return false;
    }
  }
  return true;
}

using Subscript = PyObject* (*)(PyObject* self, PyObject* key);
using SetSubscript = int (*)(PyObject* self, PyObject* key, PyObject* value);
Subscript g_get_mapped = nullptr;
SetSubscript g_set_mapped = nullptr;

/// A slice of plain numbers.
PyObject* PlainSlice(PyObject* slice) {
  PyObject* bounds[3] = {};
  const char* const names[] = {"start", "stop", "step"};
  bool good = true;
  for (int i = 0; i < 3 && good; ++i) {
    PyObject* const bound = PyObject_GetAttrString(slice, names[i]);
    bounds[i] = bound == nullptr ? nullptr : PlainInt(bound);
    if (bound != nullptr) Py_DecRef(bound);
    good = bounds[i] != nullptr;
  }
  PyObject* const plain = good ? PySlice_New(bounds[0], bounds[1], bounds[2]) : nullptr;
  for (PyObject* bound : bounds) {
    if (bound != nullptr) Py_DecRef(bound);
  }
  return plain;
}

PyObject* PlainKey(PyObject* key) {
  return TypeOf(key) == &PySlice_Type ? PlainSlice(key) : PlainInt(key);
}

PyObject* GetMapped(PyObject* self, PyObject* key) {
  PyObject* const plain = PlainKey(key);
  PyObject* const result = plain == nullptr ? nullptr : g_get_mapped(self, plain);
  if (plain != nullptr) Py_DecRef(plain);
  return result;
}

int SetMapped(PyObject* self, PyObject* key, PyObject* value) {
  PyObject* const plain_key = PlainKey(key);
  PyObject* const plain_value =
      plain_key == nullptr || value == nullptr ? nullptr : PlainInt(value);
  int result = -1;
  if (plain_key != nullptr && (value == nullptr || plain_value != nullptr)) {
    result = g_set_mapped(self, plain_key, plain_value);
  }
  if (plain_key != nullptr) Py_DecRef(plain_key);
  if (plain_value != nullptr) Py_DecRef(plain_value);
  return result;
}

/// The methods of mmap.mmap that take numbers.
constexpr const char* kMappedMethods[] = {"find",   "flush", "madvise", "move",      "read",
                                          "resize", "rfind", "seek",    "write_byte"};
constexpr size_t kMappedCount = sizeof(kMappedMethods) / sizeof(kMappedMethods[0]);
Method g_mapped[kMappedCount];

PyObject* PlainArguments(PyObject* arguments) {
  const Py_ssize_t count = PyTuple_Size(arguments);
  PyObject* const plain = PyTuple_New(count);
  for (Py_ssize_t i = 0; plain != nullptr && i < count; ++i) {
    PyObject* const argument = PlainInt(PyTuple_GetItem(arguments, i));
    if (argument == nullptr) {
      Py_DecRef(plain);
      return nullptr;
    }
    PyTuple_SetItem(plain, i, argument);
  }
  return plain;
}

template <size_t kMethod>
PyObject* CallMapped(PyObject* self, PyObject* arguments) {
  PyObject* const plain = PlainArguments(arguments);
  PyObject* const result = plain == nullptr ? nullptr : g_mapped[kMethod].call(self, plain);
  if (plain != nullptr) Py_DecRef(plain);
  return result;
}

template <size_t kMethod>
bool CheckMappedMethod(PyObject* mapped) {
  if constexpr (kMethod == kMappedCount) {
    return true;
  } else {
    const char* const name = kMappedMethods[kMethod];
    PyObject* const function = PyObject_GetAttrString(mapped, name);
    PyErr_Clear();
    Method* const method = function == nullptr ? nullptr : MethodOf(function, name);
    // A version that takes other arguments has looked at them before it looks at the mapping.
    if (method != nullptr && method->flags == kTupleOfArguments) {
      g_mapped[kMethod] = *method;
      method->call = CallMapped<kMethod>;
    }
    return CheckMappedMethod<kMethod + 1>(mapped);
  }
}

bool CheckMappings() {
  PyObject* const type = FindAttribute("mmap", nullptr, "mmap");
  if (type == nullptr) return true;
  PyObject* const mapped = PyObject_CallFunction(type, "ii", -1, 1);
  PyErr_Clear();
  if (mapped == nullptr) return false;
  return ReplaceSlot(type, "__getitem__", reinterpret_cast<void*>(GetMapped),
                     reinterpret_cast<void**>(&g_get_mapped)) &&
         ReplaceSlot(type, "__setitem__", reinterpret_cast<void*>(SetMapped),
                     reinterpret_cast<void**>(&g_set_mapped)) &&
         CheckMappedMethod<0>(mapped);
}

}  // namespace

bool CheckIndexes() { return CheckArrays() && CheckMappings(); }

}  // namespace evald::guest
