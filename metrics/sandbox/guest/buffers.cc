// Buffers that Python's library lends to code of a program.
//
// io.BufferedReader and pickle.Unpickler have a file written in Python fill a view of memory that
// belongs to nobody, io.BufferedWriter has it read one. A file that keeps the view can use the
// memory after it is freed, and so reads and writes any object. Here such a file is wrapped: the
// view ends before the file is called, and the file gets a bytearray or bytes of its own.
// io.RawIOBase.read takes a file's word for how much it has read; here the number is checked.

#include <string.h>

#include "metrics/sandbox/guest/tables.h"

// Parts of Python's ABI since 3.8. The interpreter that loads this library defines them.
extern "C" {
struct Py_buffer {  // begins so in every version; the rest is spare
  void* buf;
  PyObject* obj;
  Py_ssize_t len;
  void* rest[13];
};
struct PyType_Slot {
  int slot;
  void* function;
};
struct PyType_Spec {
  const char* name;
  int basicsize;
  int itemsize;
  unsigned int flags;
  PyType_Slot* slots;
};
extern PyObject* PyExc_AttributeError;
extern PyObject* PyExc_ValueError;
extern PyObject PyMemoryView_Type;
char* PyByteArray_AsString(PyObject* bytes);
PyObject* PyByteArray_FromStringAndSize(const char* text, Py_ssize_t bytes);
Py_ssize_t PyByteArray_Size(PyObject* bytes);
void PyBuffer_Release(Py_buffer* buffer);
PyObject* PyBytes_FromStringAndSize(const char* text, Py_ssize_t bytes);
PyObject* PyCFunction_NewEx(evald::guest::Method* method, PyObject* self, PyObject* module);
PyObject* PyDict_Copy(PyObject* dict);
PyObject* PyDict_GetItemString(PyObject* dict, const char* key);
void PyErr_SetObject(PyObject* type, PyObject* value);
int PyDict_SetItemString(PyObject* dict, const char* key, PyObject* value);
Py_ssize_t PyLong_AsSsize_t(PyObject* number);
PyObject* PyMemoryView_FromObject(PyObject* object);
PyObject* PyNumber_Index(PyObject* object);
int PyObject_GetBuffer(PyObject* object, Py_buffer* buffer, int flags);
PyObject* PyObject_CallMethodObjArgs(PyObject* object, PyObject* name, ...);
PyObject* PyObject_CallObject(PyObject* callable, PyObject* arguments);
void PyObject_Free(void* memory);
PyObject* PyObject_GetAttr(PyObject* object, PyObject* name);
int PyObject_HasAttrString(PyObject* object, const char* name);
int PyObject_SetAttr(PyObject* object, PyObject* name, PyObject* value);
PyObject* PyTuple_GetItem(PyObject* tuple, Py_ssize_t index);
PyObject* PyTuple_New(Py_ssize_t count);
int PyTuple_SetItem(PyObject* tuple, Py_ssize_t index, PyObject* item);
Py_ssize_t PyTuple_Size(PyObject* tuple);
PyObject* PyType_FromSpec(PyType_Spec* spec);
PyObject* PyType_GenericAlloc(PyObject* type, Py_ssize_t items);
int PyUnicode_CompareWithASCIIString(PyObject* text, const char* ascii);
PyObject* PyUnicode_InternFromString(const char* text);
}

namespace evald::guest {
namespace {

PyObject* g_file_type = nullptr;  ///< the wrapper's
PyObject* g_readinto = nullptr;   ///< names
PyObject* g_readall = nullptr;
PyObject* g_write = nullptr;
Method g_release;  ///< memoryview.release
Method g_load;     ///< _pickle.load as it was
Init g_init_reader = nullptr;
Init g_init_writer = nullptr;
Init g_init_random = nullptr;
Init g_init_unpickler = nullptr;

/// A file, and the functions that stand in for two of its methods. They are made beforehand: to
/// make one would give the collector's callbacks a moment in which to find the lent view.
struct File {
  PyObject* file;
  PyObject* readinto;
  PyObject* write;
};

File* FileOf(PyObject* wrapper) {
  return reinterpret_cast<File*>(reinterpret_cast<char*>(wrapper) + HeadBytes());
}

struct Loan {
  char* data;
  Py_ssize_t bytes;
};

/// Takes the memory of a lent view and ends the view. False if the view belongs to some object,
/// which keeps its memory, or is none: then the call came from Python code. False with an exception
/// set if the view cannot be ended.
bool TakeLoan(PyObject* view, Loan* loan) {
  if (TypeOf(view) != &PyMemoryView_Type) return false;
  PyObject* const owner = PyObject_GetAttrString(view, "obj");
  PyErr_Clear();
  if (owner != nullptr) Py_DecRef(owner);
  if (owner != &_Py_NoneStruct) return false;
  Py_buffer buffer;
  if (PyObject_GetBuffer(view, &buffer, 0) != 0) return false;
  *loan = {static_cast<char*>(buffer.buf), buffer.len};
  PyBuffer_Release(&buffer);
  PyObject* const released = g_release.call(view, nullptr);
  if (released != nullptr) Py_DecRef(released);
  return released != nullptr;
}

/// Copies what a file has put into its own buffer. If the file claims more bytes than it has put
/// there, the rest is zeros.
void Repay(const Loan& loan, PyObject* own, Py_ssize_t claimed) {
  if (claimed <= 0 || claimed > loan.bytes) return;  // the caller refuses the number
  const Py_ssize_t there = PyByteArray_Size(own);
  const Py_ssize_t copied = claimed < there ? claimed : there;
  memcpy(loan.data, PyByteArray_AsString(own), static_cast<size_t>(copied));
  memset(loan.data + copied, 0, static_cast<size_t>(claimed - copied));
}

/// A number that a file returned, as a plain int; None stays None.
PyObject* PlainNumber(PyObject* result, Py_ssize_t* number) {
  *number = 0;
  if (result == nullptr || result == &_Py_NoneStruct) return result;
  PyObject* const plain = PyNumber_Index(result);
  Py_DecRef(result);
  if (plain == nullptr) return nullptr;
  *number = PyLong_AsSsize_t(plain);
  if (*number != -1 || PyErr_Occurred() == nullptr) return plain;
  Py_DecRef(plain);
  return nullptr;
}

/// After TakeLoan has failed.
PyObject* PassOn(PyObject* file, PyObject* method, PyObject* buffer) {
  if (PyErr_Occurred() != nullptr) return nullptr;
  return PyObject_CallMethodObjArgs(file, method, buffer, nullptr);
}

/// In place of the file's readinto.
PyObject* ReadInto(PyObject* file, PyObject* buffer) {
  Loan loan;
  if (!TakeLoan(buffer, &loan)) return PassOn(file, g_readinto, buffer);
  PyObject* const own = PyByteArray_FromStringAndSize(nullptr, loan.bytes);
  if (own == nullptr) return nullptr;
  memset(PyByteArray_AsString(own), 0, static_cast<size_t>(loan.bytes));
  Py_ssize_t claimed = 0;
  PyObject* const result =
      PlainNumber(PyObject_CallMethodObjArgs(file, g_readinto, own, nullptr), &claimed);
  if (result != nullptr) Repay(loan, own, claimed);
  Py_DecRef(own);
  return result;
}

/// In place of the file's write.
PyObject* Write(PyObject* file, PyObject* buffer) {
  Loan loan;
  if (!TakeLoan(buffer, &loan)) return PassOn(file, g_write, buffer);
  PyObject* const own = PyBytes_FromStringAndSize(loan.data, loan.bytes);
  if (own == nullptr) return nullptr;
  PyObject* const result = PyObject_CallMethodObjArgs(file, g_write, own, nullptr);
  Py_DecRef(own);
  return result;
}

Method g_readinto_method = {"readinto", ReadInto, kOneArgument, nullptr};
Method g_write_method = {"write", Write, kOneArgument, nullptr};

PyObject* GetAttribute(PyObject* wrapper, PyObject* name) {
  const File& file = *FileOf(wrapper);
  const bool reads = PyUnicode_CompareWithASCIIString(name, "readinto") == 0;
  const bool writes = PyUnicode_CompareWithASCIIString(name, "write") == 0;
  if (!reads && !writes) return PyObject_GetAttr(file.file, name);
  PyObject* const own = reads ? file.readinto : file.write;
  if (own == nullptr) {
    PyErr_SetObject(PyExc_AttributeError, name);
  } else {
    Py_IncRef(own);
  }
  return own;
}

int SetAttribute(PyObject* wrapper, PyObject* name, PyObject* value) {
  return PyObject_SetAttr(FileOf(wrapper)->file, name, value);
}

void Free(PyObject* wrapper) {
  const File file = *FileOf(wrapper);
  PyObject_Free(wrapper);
  PyObject* const held[] = {file.file, file.readinto, file.write};
  for (PyObject* object : held) {
    if (object != nullptr) Py_DecRef(object);
  }
  Py_DecRef(g_file_type);
}

bool MakeFileType() {
  // typeslots.h: tp_dealloc, tp_getattro, tp_setattro
  static PyType_Slot slots[] = {{52, reinterpret_cast<void*>(Free)},
                                {58, reinterpret_cast<void*>(GetAttribute)},
                                {69, reinterpret_cast<void*>(SetAttribute)},
                                {0, nullptr}};
  // No instances but those of Wrap, and no changes by programs (object.h: VERSION_TAG,
  // IMMUTABLETYPE, DISALLOW_INSTANTIATION)
  static PyType_Spec spec = {"io.File", static_cast<int>(HeadBytes() + Py_ssize_t{sizeof(File)}), 0,
                             1u << 18 | 1u << 8 | 1u << 7, slots};
  g_file_type = PyType_FromSpec(&spec);
  PyErr_Clear();
  return g_file_type != nullptr;
}

/// A new reference, or nullptr with an exception set. A method that the file lacks now stays
/// lacking: the file must never be asked for one while a view is lent.
PyObject* Wrap(PyObject* object) {
  if (TypeOf(object) == g_file_type) {
    Py_IncRef(object);
    return object;
  }
  const bool reads = PyObject_HasAttrString(object, "readinto") != 0;
  const bool writes = PyObject_HasAttrString(object, "write") != 0;
  PyObject* const wrapper = PyType_GenericAlloc(g_file_type, 0);
  if (wrapper == nullptr) return nullptr;
  File& file = *FileOf(wrapper);
  Py_IncRef(object);
  file.file = object;
  file.readinto = reads ? PyCFunction_NewEx(&g_readinto_method, object, nullptr) : nullptr;
  file.write = writes ? PyCFunction_NewEx(&g_write_method, object, nullptr) : nullptr;
  if ((!reads || file.readinto != nullptr) && (!writes || file.write != nullptr)) return wrapper;
  Py_DecRef(wrapper);
  return nullptr;
}

/// The arguments with a wrapper in place of the first. A new reference; nullptr with an exception.
PyObject* WithFirstWrapped(PyObject* arguments) {
  const Py_ssize_t count = PyTuple_Size(arguments);
  PyObject* const wrapped = Wrap(PyTuple_GetItem(arguments, 0));
  PyObject* const changed = wrapped == nullptr ? nullptr : PyTuple_New(count);
  if (changed == nullptr) return nullptr;
  PyTuple_SetItem(changed, 0, wrapped);
  for (Py_ssize_t i = 1; i < count; ++i) {
    PyObject* const argument = PyTuple_GetItem(arguments, i);
    Py_IncRef(argument);
    PyTuple_SetItem(changed, i, argument);
  }
  return changed;
}

/// The named arguments with a wrapper in place of `name`, which is there.
PyObject* WithNamedWrapped(PyObject* names, const char* name) {
  PyObject* const wrapped = Wrap(PyDict_GetItemString(names, name));
  PyObject* const changed = wrapped == nullptr ? nullptr : PyDict_Copy(names);
  if (changed != nullptr) PyDict_SetItemString(changed, name, wrapped);
  if (wrapped != nullptr) Py_DecRef(wrapped);
  return changed;
}

int InitWrapped(Init original, const char* name, PyObject* self, PyObject* arguments,
                PyObject* names) {
  if (PyTuple_Size(arguments) > 0) {
    PyObject* const changed = WithFirstWrapped(arguments);
    const int result = changed == nullptr ? -1 : original(self, changed, names);
    if (changed != nullptr) Py_DecRef(changed);
    return result;
  }
  if (names == nullptr || PyDict_GetItemString(names, name) == nullptr) {
    return original(self, arguments, names);
  }
  PyObject* const changed = WithNamedWrapped(names, name);
  const int result = changed == nullptr ? -1 : original(self, arguments, changed);
  if (changed != nullptr) Py_DecRef(changed);
  return result;
}

int InitReader(PyObject* self, PyObject* arguments, PyObject* names) {
  return InitWrapped(g_init_reader, "raw", self, arguments, names);
}

int InitWriter(PyObject* self, PyObject* arguments, PyObject* names) {
  return InitWrapped(g_init_writer, "raw", self, arguments, names);
}

int InitRandom(PyObject* self, PyObject* arguments, PyObject* names) {
  return InitWrapped(g_init_random, "raw", self, arguments, names);
}

int InitUnpickler(PyObject* self, PyObject* arguments, PyObject* names) {
  return InitWrapped(g_init_unpickler, "file", self, arguments, names);
}

/// In place of pickle.load.
PyObject* LoadPickle(PyObject* module, PyObject* const* arguments, Py_ssize_t count,
                     PyObject* names) {
  constexpr Py_ssize_t kMost = 16;
  const Py_ssize_t named = names == nullptr ? 0 : PyTuple_Size(names);
  PyObject* changed[kMost];
  PyObject* wrapped = nullptr;
  if (count + named > kMost) {
    PyErr_SetString(PyExc_ValueError, "load() takes fewer arguments");
    return nullptr;
  }
  for (Py_ssize_t i = 0; i < count + named; ++i) {
    PyObject* const name = i < count ? nullptr : PyTuple_GetItem(names, i - count);
    const bool is_file =
        name == nullptr ? i == 0 : PyUnicode_CompareWithASCIIString(name, "file") == 0;
    if (is_file && wrapped == nullptr && (wrapped = Wrap(arguments[i])) == nullptr) return nullptr;
    changed[i] = is_file ? wrapped : arguments[i];
  }
  PyObject* const result = CallOf<KeywordCall>(g_load)(module, changed, count, names);
  if (wrapped != nullptr) Py_DecRef(wrapped);
  return result;
}

/// In place of io.RawIOBase.read.
PyObject* ReadRaw(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  Py_ssize_t wanted = -1;
  if (count > 0 && arguments[0] != &_Py_NoneStruct) {
    Py_IncRef(arguments[0]);
    PyObject* const plain = PlainNumber(arguments[0], &wanted);
    if (plain == nullptr) return nullptr;
    Py_DecRef(plain);
  }
  if (wanted < 0) return PyObject_CallMethodObjArgs(self, g_readall, nullptr);
  PyObject* const own = PyByteArray_FromStringAndSize(nullptr, wanted);
  if (own == nullptr) return nullptr;
  memset(PyByteArray_AsString(own), 0, static_cast<size_t>(wanted));
  Py_ssize_t got = 0;
  PyObject* result = PlainNumber(PyObject_CallMethodObjArgs(self, g_readinto, own, nullptr), &got);
  if (result != nullptr && result != &_Py_NoneStruct) {
    Py_DecRef(result);
    result = nullptr;
    if (got < 0 || got > PyByteArray_Size(own)) {
      PyErr_SetString(PyExc_ValueError, "readinto() returned a number outside of the buffer");
    } else {
      result = PyBytes_FromStringAndSize(PyByteArray_AsString(own), got);
    }
  }
  Py_DecRef(own);
  return result;
}

bool ReplaceInit(const char* module, const char* type, Init replacement, Init* original) {
  PyObject* const found = FindAttribute(module, nullptr, type);
  return found != nullptr && ReplaceSlot(found, "__init__", reinterpret_cast<void*>(replacement),
                                         reinterpret_cast<void**>(original));
}

bool KeepRelease() {
  PyObject* const bytes = PyBytes_FromStringAndSize("", 0);
  PyObject* const view = PyMemoryView_FromObject(bytes);
  Method* const method = MethodOf(PyObject_GetAttrString(view, "release"), "release");
  if (method == nullptr) return false;
  g_release = *method;
  return true;
}

bool CheckRawRead() {
  PyObject* const type = FindAttribute("_io", nullptr, "_RawIOBase");
  PyObject* const file = type == nullptr ? nullptr : PyObject_CallObject(type, nullptr);
  Method* const method =
      file == nullptr ? nullptr : MethodOf(PyObject_GetAttrString(file, "read"), "read");
  if (method == nullptr || method->flags != kFastArguments) return false;
  SetCall(method, ReadRaw);
  return true;
}

bool KeepPickles() {
  Method* const method = MethodOf(FindAttribute("_pickle", nullptr, "load"), "load");
  if (method == nullptr || method->flags != kKeywordArguments) return false;
  g_load = *method;
  SetCall(method, LoadPickle);
  return ReplaceInit("_pickle", "Unpickler", InitUnpickler, &g_init_unpickler);
}

}  // namespace

bool KeepBuffers() {
  g_readinto = PyUnicode_InternFromString("readinto");
  g_readall = PyUnicode_InternFromString("readall");
  g_write = PyUnicode_InternFromString("write");
  return MakeFileType() && KeepRelease() && CheckRawRead() && KeepPickles() &&
         ReplaceInit("_io", "BufferedReader", InitReader, &g_init_reader) &&
         ReplaceInit("_io", "BufferedWriter", InitWriter, &g_init_writer) &&
         ReplaceInit("_io", "BufferedRandom", InitRandom, &g_init_random);
}

}  // namespace evald::guest
