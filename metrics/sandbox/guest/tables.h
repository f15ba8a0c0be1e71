#pragma once

#include <sys/types.h>

#include "metrics/sandbox/guest/guest.h"

// The tables from which the interpreter makes its own functions and types. A function that is
// changed there stays changed when a program makes the module anew, or finds the type by other
// ways.

extern "C" {
using Py_ssize_t = ssize_t;
extern PyObject PyLong_Type;
extern PyObject PyUnicode_Type;
extern PyObject _Py_NoneStruct;
void Py_IncRef(PyObject* object);
void Py_DecRef(PyObject* object);
void PyErr_Clear(void);
PyObject* PyErr_Occurred(void);
void PyErr_SetString(PyObject* type, const char* message);
PyObject* PyObject_CallFunctionObjArgs(PyObject* callable, ...);
PyObject* PyObject_GetAttrString(PyObject* object, const char* name);
extern PyObject* PyExc_PermissionError;
}

namespace evald::guest {

using Call = PyObject* (*)(PyObject* self, PyObject* arguments);
using FastCall = PyObject* (*)(PyObject* self, PyObject* const* arguments, Py_ssize_t count);
using KeywordCall = PyObject* (*)(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                                  PyObject* names);

/// A type's `__init__`.
using Init = int (*)(PyObject* self, PyObject* arguments, PyObject* names);

/// PyMethodDef: a module's or a type's table has one for each function.
struct Method {
  const char* name;
  Call call;
  int flags;
  const char* text;
};

/// The function of a table's entry, of the type that the entry's flags say.
template <typename Function>
Function CallOf(const Method& method) {
  return reinterpret_cast<Function>(reinterpret_cast<void*>(method.call));
}

template <typename Function>
void SetCall(Method* method, Function function) {
  method->call = reinterpret_cast<Call>(reinterpret_cast<void*>(function));
}

constexpr int kTupleOfArguments = 1;     ///< METH_VARARGS
constexpr int kOneArgument = 8;          ///< METH_O
constexpr int kFastArguments = 0x80;     ///< METH_FASTCALL
constexpr int kKeywordArguments = 0x82;  ///< METH_FASTCALL | METH_KEYWORDS
constexpr int kTakesType = 0x200;        ///< METH_METHOD

/// The type that an object has. (`__class__`, which isinstance asks, can lie.)
const PyObject* TypeOf(PyObject* object);

/// An attribute of a module, or of an attribute of a module. nullptr if there is none.
PyObject* FindAttribute(const char* module_name, const char* owner_name, const char* name);

/// The bytes that all objects have at their beginning.
Py_ssize_t HeadBytes();

/// The entry of a table that a built-in function was made from. It is the first field of such a
/// function after what all objects have. nullptr if this interpreter keeps it elsewhere.
Method* MethodOf(PyObject* function, const char* name);

/// An attribute that is a number, such as a type's `__basicsize__`. -1 if there is none.
Py_ssize_t NumberOf(PyObject* object, const char* name);

/// Whether the built-in type itself, not only a base, has this special method.
bool HasSlot(PyObject* type, const char* name);

/// Replaces the function behind a special method of a built-in type, in the type, in the types that
/// have inherited it so far, and in the method that Python code can call (`__init__`). Several
/// special methods can have one function, as those of comparison. False, with nothing changed, if
/// this interpreter keeps it elsewhere.
bool ReplaceSlot(PyObject* type, const char* name, void* replacement, void** original);

}  // namespace evald::guest
