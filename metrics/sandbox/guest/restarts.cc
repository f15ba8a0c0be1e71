// Objects that are started once.
//
// `__init__` of an object can be called again, also while a method of the object runs: the method
// has asked a program's object for a number, or a file for bytes. Types of Python's library then
// free what the method works on, or exchange a table for a longer one. Here such an object is
// started once.

#include <string.h>

#include "metrics/sandbox/guest/tables.h"

// Parts of Python's ABI since 3.8. The interpreter that loads this library defines them.
extern "C" {
extern PyObject* PyExc_ValueError;
PyObject* PyObject_CallMethod(PyObject* object, const char* name, const char* format, ...);
}

namespace evald::guest {
namespace {

/// The part of an object that its type's own C code knows.
constexpr size_t kFieldsMax = 512;

struct Once {
  const char* module;
  const char* type;
  Init original;
  size_t bytes;            ///< of an object
  size_t skipped[2];       ///< the fields for attributes and weak references
  char fresh[kFieldsMax];  ///< an object that was never started
};

/// `iter_unpack` and `pack_into` walk the table of codes. Buffered files, text files and decoders
/// call the file or decoder below. Picklers call methods of the program. Compressors work while
/// other threads run.
Once g_once[] = {
    {"_struct", "Struct", nullptr, 0, {}, {}},
    {"_io", "BufferedReader", nullptr, 0, {}, {}},
    {"_io", "BufferedWriter", nullptr, 0, {}, {}},
    {"_io", "BufferedRandom", nullptr, 0, {}, {}},
    {"_io", "TextIOWrapper", nullptr, 0, {}, {}},
    {"_io", "IncrementalNewlineDecoder", nullptr, 0, {}, {}},
    {"_pickle", "Pickler", nullptr, 0, {}, {}},
    {"_pickle", "Unpickler", nullptr, 0, {}, {}},
    {"_bz2", "BZ2Compressor", nullptr, 0, {}, {}},
    {"_bz2", "BZ2Decompressor", nullptr, 0, {}, {}},
    {"_lzma", "LZMACompressor", nullptr, 0, {}, {}},
    {"_lzma", "LZMADecompressor", nullptr, 0, {}, {}},
};
constexpr size_t kOnceCount = sizeof(g_once) / sizeof(g_once[0]);

/// An object that is being started, which may call code of the program.
struct Start {
  PyObject* self;
  Start* before;
  Start* after;
};
Start g_starts = {nullptr, &g_starts, &g_starts};  ///< a ring

bool IsStarting(PyObject* self) {
  for (const Start* start = g_starts.after; start != &g_starts; start = start->after) {
    if (start->self == self) return true;
  }
  return false;
}

bool IsFresh(const Once& once, PyObject* self) {
  const char* const fields = reinterpret_cast<const char*>(self);
  for (size_t at = static_cast<size_t>(HeadBytes()); at < once.bytes; at += sizeof(void*)) {
    if (at == once.skipped[0] || at == once.skipped[1]) continue;
    if (memcmp(fields + at, once.fresh + at, sizeof(void*)) != 0) return false;
  }
  return true;
}

int StartOnce(const Once& once, PyObject* self, PyObject* arguments, PyObject* names) {
  if (!IsFresh(once, self) || IsStarting(self)) {
    PyErr_SetString(PyExc_ValueError,
                    "the sandbox refuses to start this object twice: make a new one");
    return -1;
  }
  Start start = {self, &g_starts, g_starts.after};
  start.after->before = start.before->after = &start;
  const int result = once.original(self, arguments, names);
  start.before->after = start.after;
  start.after->before = start.before;
  return result;
}

template <size_t kIndex>
int InitOnce(PyObject* self, PyObject* arguments, PyObject* names) {
  return StartOnce(g_once[kIndex], self, arguments, names);
}

/// Fills `fresh` from an object that is made and not started. False if two such objects differ.
bool LearnFresh(PyObject* type, Once* once) {
  const Py_ssize_t bytes = NumberOf(type, "__basicsize__");
  if (bytes <= HeadBytes() || bytes > static_cast<Py_ssize_t>(kFieldsMax)) return false;
  once->bytes = static_cast<size_t>(bytes);
  once->skipped[0] = static_cast<size_t>(NumberOf(type, "__dictoffset__"));
  once->skipped[1] = static_cast<size_t>(NumberOf(type, "__weakrefoffset__"));
  PyObject* const one = PyObject_CallMethod(type, "__new__", "O", type);
  PyObject* const other = PyObject_CallMethod(type, "__new__", "O", type);
  PyErr_Clear();
  if (one == nullptr || other == nullptr) return false;
  memcpy(once->fresh, one, once->bytes);
  const bool same = IsFresh(*once, other);
  Py_DecRef(one);
  Py_DecRef(other);
  return same;
}

template <size_t kIndex>
bool StartEachOnce() {
  if constexpr (kIndex == kOnceCount) {
    return true;
  } else {
    Once& once = g_once[kIndex];
    PyObject* const type = FindAttribute(once.module, nullptr, once.type);
    // A type without such a method is started as it is made.
    const bool starts = type != nullptr && HasSlot(type, "__init__");
    if (starts && (!LearnFresh(type, &once) ||
                   !ReplaceSlot(type, "__init__", reinterpret_cast<void*>(InitOnce<kIndex>),
                                reinterpret_cast<void**>(&once.original)))) {
      return false;
    }
    return StartEachOnce<kIndex + 1>();
  }
}

}  // namespace

bool RefuseRestarts() { return StartEachOnce<0>(); }

}  // namespace evald::guest
