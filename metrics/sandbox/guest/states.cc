// States and parts of objects that a program exchanges while C code works with them.

#include <string.h>

#include "metrics/sandbox/guest/tables.h"

// Parts of Python's ABI since 3.8. The interpreter that loads this library defines them.
extern "C" {
extern PyObject* PyExc_PermissionError;
extern PyObject* PyExc_ValueError;
extern PyObject PyDict_Type;
extern PyObject PyList_Type;
extern PyObject PySlice_Type;
extern PyObject PyTuple_Type;
extern PyObject _Py_FalseStruct;
extern PyObject _Py_TrueStruct;
Py_ssize_t PyDict_Size(PyObject* dict);
PyObject* PyList_GetItem(PyObject* list, Py_ssize_t index);
Py_ssize_t PyList_Size(PyObject* list);
PyObject* PyObject_RichCompare(PyObject* left, PyObject* right, int operation);
int PyObject_RichCompareBool(PyObject* left, PyObject* right, int operation);
PyObject* PySequence_List(PyObject* items);
PyObject* PySequence_Tuple(PyObject* items);
PyObject* PyTuple_GetItem(PyObject* tuple, Py_ssize_t index);
PyObject* PyTuple_Pack(Py_ssize_t count, ...);
Py_ssize_t PyTuple_Size(PyObject* tuple);
int PyType_IsSubtype(PyObject* type, PyObject* base);
PyObject* PyUnicode_InternFromString(const char* text);
}

namespace evald::guest {
namespace {

using Compare = PyObject* (*)(PyObject* left, PyObject* right, int operation);
using SetSubscript = int (*)(PyObject* self, PyObject* key, PyObject* value);

constexpr int kEqual = 2;     // Py_EQ
constexpr int kNotEqual = 3;  // Py_NE

bool IsA(PyObject* object, PyObject* type) {
  return PyType_IsSubtype(const_cast<PyObject*>(TypeOf(object)), type) != 0;
}

PyObject* NewReference(PyObject* object) {
  Py_IncRef(object);
  return object;
}

// Partial functions. A call lends the arguments to the function that is called, which can exchange
// them by `__setstate__`. Only a fresh copy, as `copy` and `pickle` make, takes a state.

struct Partial {
  PyObject* function;
  PyObject* arguments;
  PyObject* names;
};
Method g_set_partial;

/// In place of functools.partial.__setstate__.
PyObject* SetPartial(PyObject* self, PyObject* state) {
  const Partial& partial = *reinterpret_cast<Partial*>(reinterpret_cast<char*>(self) + HeadBytes());
  const bool fresh = TypeOf(state) == &PyTuple_Type && PyTuple_Size(state) == 4 &&
                     PyTuple_GetItem(state, 0) == partial.function &&
                     PyTuple_Size(partial.arguments) == 0 && PyDict_Size(partial.names) == 0;
  PyErr_Clear();
  if (fresh) return g_set_partial.call(self, state);
  PyErr_SetString(PyExc_ValueError,
                  "the sandbox refuses to change a partial function: make a new one");
  return nullptr;
}

bool KeepPartials() {
  PyObject* const type = FindAttribute("_functools", nullptr, "partial");
  if (type == nullptr) return true;
  PyObject* const made = PyObject_CallFunctionObjArgs(type, &PyList_Type, nullptr);
  if (made == nullptr) return false;
  const Partial& fields = *reinterpret_cast<Partial*>(reinterpret_cast<char*>(made) + HeadBytes());
  Method* const method = MethodOf(PyObject_GetAttrString(made, "__setstate__"), "__setstate__");
  if (method == nullptr || method->flags != kOneArgument || fields.function != &PyList_Type ||
      TypeOf(fields.arguments) != &PyTuple_Type || TypeOf(fields.names) != &PyDict_Type) {
    return false;
  }
  g_set_partial = *method;
  method->call = SetPartial;
  return true;
}

// itertools.tee. Its `__setstate__` takes a position beyond the items that are there.

PyObject* RefuseState(PyObject*, PyObject*) {
  PyErr_SetString(PyExc_PermissionError,
                  "the sandbox refuses __setstate__ of itertools.tee: use copy.copy");
  return nullptr;
}

bool KeepTees() {
  PyObject* const tee = FindAttribute("itertools", nullptr, "tee");
  PyObject* const nothing = PyTuple_Pack(0);
  PyObject* const pair =
      tee == nullptr ? nullptr : PyObject_CallFunctionObjArgs(tee, nothing, nullptr);
  PyObject* const one = pair == nullptr ? nullptr : PyTuple_GetItem(pair, 0);
  PyObject* const set = one == nullptr ? nullptr : PyObject_GetAttrString(one, "__setstate__");
  PyErr_Clear();
  if (one == nullptr) return false;
  if (set == nullptr) return true;  // CPython 3.14 and later
  Method* const method = MethodOf(set, "__setstate__");
  if (method != nullptr) method->call = RefuseState;
  return method != nullptr;
}

// Parsers of XML. The one for an external entity uses its parent's memory and does not keep it.

Method g_make_parser;

using MethodCall = PyObject* (*)(PyObject* self, PyObject* type, PyObject* const* arguments,
                                 size_t count, PyObject* names);

/// The parent is never freed.
PyObject* MakeParserByType(PyObject* self, PyObject* type, PyObject* const* arguments, size_t count,
                           PyObject* names) {
  Py_IncRef(self);
  return CallOf<MethodCall>(g_make_parser)(self, type, arguments, count, names);
}

PyObject* MakeParserFast(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  Py_IncRef(self);
  return CallOf<FastCall>(g_make_parser)(self, arguments, count);
}

PyObject* MakeParser(PyObject* self, PyObject* arguments) {
  Py_IncRef(self);
  return g_make_parser.call(self, arguments);
}

bool KeepParsers() {
  constexpr const char* kName = "ExternalEntityParserCreate";
  PyObject* const create = FindAttribute("pyexpat", nullptr, "ParserCreate");
  if (create == nullptr) return true;
  PyObject* const parser = PyObject_CallFunctionObjArgs(create, nullptr);
  Method* const method =
      parser == nullptr ? nullptr : MethodOf(PyObject_GetAttrString(parser, kName), kName);
  if (method == nullptr) return false;
  g_make_parser = *method;
  if (method->flags == (kKeywordArguments | kTakesType)) {
    SetCall(method, MakeParserByType);
  } else if (method->flags == kFastArguments) {
    SetCall(method, MakeParserFast);
  } else if (method->flags == kTupleOfArguments) {
    method->call = MakeParser;
  } else {
    return false;
  }
  return true;
}

// Ordered dicts. Comparing walks the keys of both, which a key's `__eq__` can free.

PyObject* g_ordered = nullptr;          ///< collections.OrderedDict
PyObject* g_keys_of_ordered = nullptr;  ///< its __iter__
PyObject* g_equal_dicts = nullptr;      ///< dict.__eq__
Compare g_compare_ordered = nullptr;

/// A tuple, which no program can change. nullptr with an exception set.
PyObject* KeysOf(PyObject* ordered) {
  PyObject* const keys = PyObject_CallFunctionObjArgs(g_keys_of_ordered, ordered, nullptr);
  PyObject* const held = keys == nullptr ? nullptr : PySequence_Tuple(keys);
  if (keys != nullptr) Py_DecRef(keys);
  return held;
}

/// 1, 0, or -1 with an exception set.
int HaveEqualKeys(PyObject* left, PyObject* right) {
  PyObject* const left_keys = KeysOf(left);
  PyObject* const right_keys = left_keys == nullptr ? nullptr : KeysOf(right);
  const int equal =
      right_keys == nullptr ? -1 : PyObject_RichCompareBool(left_keys, right_keys, kEqual);
  if (left_keys != nullptr) Py_DecRef(left_keys);
  if (right_keys != nullptr) Py_DecRef(right_keys);
  return equal;
}

/// In place of the type's own.
PyObject* CompareOrdered(PyObject* left, PyObject* right, int operation) {
  const bool both = IsA(left, g_ordered) && IsA(right, g_ordered);
  if (!both || (operation != kEqual && operation != kNotEqual)) {
    return g_compare_ordered(left, right, operation);
  }
  PyObject* const dicts = PyObject_CallFunctionObjArgs(g_equal_dicts, left, right, nullptr);
  if (dicts == nullptr) return nullptr;
  int equal = dicts == &_Py_TrueStruct ? 1 : 0;
  Py_DecRef(dicts);
  if (equal == 1) equal = HaveEqualKeys(left, right);
  if (equal < 0) return nullptr;
  return NewReference((equal == 1) == (operation == kEqual) ? &_Py_TrueStruct : &_Py_FalseStruct);
}

/// The six special methods of comparison are one function.
bool ReplaceComparison(PyObject* type, Compare replacement, Compare* original) {
  constexpr const char* kNames[] = {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"};
  for (const char* name : kNames) {
    if (!ReplaceSlot(type, name, reinterpret_cast<void*>(replacement),
                     reinterpret_cast<void**>(original))) {
      return false;
    }
  }
  return true;
}

bool KeepOrdered() {
  g_ordered = FindAttribute("_collections", nullptr, "OrderedDict");
  if (g_ordered == nullptr) return true;
  g_keys_of_ordered = PyObject_GetAttrString(g_ordered, "__iter__");
  g_equal_dicts = PyObject_GetAttrString(&PyDict_Type, "__eq__");
  return g_keys_of_ordered != nullptr && g_equal_dicts != nullptr &&
         ReplaceComparison(g_ordered, CompareOrdered, &g_compare_ordered);
}

// Lists. A slice with steps is filled from items that code of the program may produce, which can
// empty the list; comparing by order lends the items in which two lists differ.

SetSubscript g_set_items = nullptr;
Compare g_compare_lists = nullptr;

/// In place of list.__setitem__: the items are there before the list is looked at.
int SetItems(PyObject* self, PyObject* key, PyObject* value) {
  const bool ready = value == nullptr || TypeOf(key) != &PySlice_Type ||
                     TypeOf(value) == &PyList_Type || TypeOf(value) == &PyTuple_Type;
  if (ready) return g_set_items(self, key, value);
  PyObject* const items = PySequence_List(value);
  if (items == nullptr) return -1;
  const int result = g_set_items(self, key, items);
  Py_DecRef(items);
  return result;
}

/// The result of comparing the items at `index`, at which both lists have one; or nullptr with no
/// exception set if they are equal.
PyObject* CompareItems(PyObject* left, PyObject* right, Py_ssize_t index, int operation) {
  PyObject* const one = NewReference(PyList_GetItem(left, index));
  PyObject* const other = NewReference(PyList_GetItem(right, index));
  PyObject* result = nullptr;
  if (PyObject_RichCompareBool(one, other, kEqual) == 0) {
    result = PyObject_RichCompare(one, other, operation);
  }
  Py_DecRef(one);
  Py_DecRef(other);
  return result;
}

/// In place of the type's own, which is safe for equality.
PyObject* CompareLists(PyObject* left, PyObject* right, int operation) {
  const bool by_order = operation != kEqual && operation != kNotEqual;
  if (!by_order || !IsA(left, &PyList_Type) || !IsA(right, &PyList_Type)) {
    return g_compare_lists(left, right, operation);
  }
  for (Py_ssize_t i = 0; i < PyList_Size(left) && i < PyList_Size(right); ++i) {
    PyObject* const result = CompareItems(left, right, i, operation);
    if (result != nullptr || PyErr_Occurred() != nullptr) return result;
  }
  const Py_ssize_t more = PyList_Size(left) - PyList_Size(right);
  const bool holds[] = {more < 0, more <= 0, false, false, more > 0, more >= 0};  // Py_LT to Py_GE
  return NewReference(holds[operation] ? &_Py_TrueStruct : &_Py_FalseStruct);
}

bool KeepLists() {
  return ReplaceComparison(&PyList_Type, CompareLists, &g_compare_lists) &&
         ReplaceSlot(&PyList_Type, "__setitem__", reinterpret_cast<void*>(SetItems),
                     reinterpret_cast<void**>(&g_set_items));
}

}  // namespace

bool KeepStates() {
  return KeepPartials() && KeepTees() && KeepParsers() && KeepOrdered() && KeepLists();
}

}  // namespace evald::guest
