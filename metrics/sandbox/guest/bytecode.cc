// Bytecode of a program's own.
//
// The interpreter runs bytecode unchecked: one instruction with a number beyond its table reads and
// writes any memory. So programs get code objects from the compiler only. They can make one in four
// ways besides: the type's constructor, its method `replace`, `marshal`, and `_imp` with bytes. All
// raise an audit event, which is refused outside of two functions here. These stand in for
// `replace` and `marshal.loads`, and call the original with arguments that are safe and cannot
// change.

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "metrics/sandbox/guest/tables.h"

// Parts of Python's ABI since 3.8. The interpreter that loads this library defines them.
extern "C" {
extern PyObject _Py_TrueStruct;
const char* Py_GetVersion(void);
char* PyBytes_AsString(PyObject* bytes);
void PyErr_Fetch(PyObject** type, PyObject** value, PyObject** traceback);
void PyErr_Restore(PyObject* type, PyObject* value, PyObject* traceback);
PyObject* PyBytes_FromObject(PyObject* object);
Py_ssize_t PyBytes_Size(PyObject* bytes);
unsigned long PyLong_AsUnsignedLongMask(PyObject* number);
PyObject* PyMemoryView_FromObject(PyObject* object);
PyObject* PyTuple_GetItem(PyObject* tuple, Py_ssize_t index);
Py_ssize_t PyTuple_Size(PyObject* tuple);
int PyUnicode_CompareWithASCIIString(PyObject* text, const char* ascii);
}

namespace evald::guest {
namespace {

constexpr unsigned long kGenerator = 0x20;           // CO_GENERATOR
constexpr unsigned long kIterableCoroutine = 0x100;  // CO_ITERABLE_COROUTINE
constexpr size_t kHeaderBytes = 16;                  // of a .pyc file (PEP 552)

Method g_replace;  ///< code.replace as it was
Method g_loads;    ///< marshal.loads as it was
PyObject* g_collects = nullptr;
PyObject* g_stop_collecting = nullptr;
PyObject* g_start_collecting = nullptr;

/// Whether this thread is in a call of an original whose arguments are safe, and its event is still
/// to come. A program's own audit hooks run right after this one's, before the call goes on: they
/// must not find the trust. CPython 3.8 and 3.9 have an event for each code object in a file;
/// programs add no hooks there.
thread_local bool g_trusted = false;
bool g_event_each = false;

/// Calls an original. No code of the program runs between the call and its event: the call has
/// nothing to convert or compare that is not built in, and the collector, which calls finalizers,
/// is off.
template <typename Function>
PyObject* CallTrusted(const Function& call) {
  PyObject* const collects = PyObject_CallFunctionObjArgs(g_collects, nullptr);
  const bool on = collects == &_Py_TrueStruct;
  if (on) Py_DecRef(PyObject_CallFunctionObjArgs(g_stop_collecting, nullptr));
  g_trusted = true;
  PyObject* const result = call();
  g_trusted = false;
  if (on) {
    PyObject* type = nullptr;
    PyObject* value = nullptr;
    PyObject* traceback = nullptr;
    PyErr_Fetch(&type, &value, &traceback);
    Py_DecRef(PyObject_CallFunctionObjArgs(g_start_collecting, nullptr));
    PyErr_Restore(type, value, traceback);
  }
  return result;
}

PyObject* RefuseCode() {
  PyErr_SetString(PyExc_PermissionError,
                  "the sandbox refuses code objects that do not come from the compiler");
  return nullptr;
}

/// Whether `replace` may set the field to this value. Names mean nothing to the interpreter. The
/// flag is the one by which types.coroutine marks a generator as awaitable.
bool MayReplace(PyObject* code, PyObject* field, PyObject* value) {
  constexpr const char* kNames[] = {"co_name", "co_qualname", "co_filename"};
  for (const char* name : kNames) {
    if (PyUnicode_CompareWithASCIIString(field, name) == 0) {
      return TypeOf(value) == &PyUnicode_Type;
    }
  }
  if (PyUnicode_CompareWithASCIIString(field, "co_flags") != 0) return false;
  if (TypeOf(value) != &PyLong_Type) return false;
  PyObject* const flags = PyObject_GetAttrString(code, "co_flags");
  if (flags == nullptr) return false;
  const unsigned long own = PyLong_AsUnsignedLongMask(flags);
  Py_DecRef(flags);
  const unsigned long wanted = PyLong_AsUnsignedLongMask(value);
  return wanted == own || ((own & kGenerator) != 0 && wanted == (own | kIterableCoroutine));
}

/// In place of code.replace.
PyObject* Replace(PyObject* code, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  const Py_ssize_t named = names == nullptr ? 0 : PyTuple_Size(names);
  for (Py_ssize_t i = 0; i < named; ++i) {
    PyObject* const field = PyTuple_GetItem(names, i);
    if (TypeOf(field) != &PyUnicode_Type || !MayReplace(code, field, arguments[count + i])) {
      PyErr_Clear();
      return RefuseCode();
    }
  }
  return CallTrusted([&] { return CallOf<KeywordCall>(g_replace)(code, arguments, count, names); });
}

/// Reads marshalled bytes as marshal does, one token after the other.
class Tokens {
 public:
  Tokens(const char* bytes, size_t count)
      : at_(reinterpret_cast<const uint8_t*>(bytes)), end_(at_ + count) {}

  /// Whether the bytes hold a code object, or anything that this class does not know.
  bool MayHoldCode() {
    while (at_ < end_) {
      if (!Skip(*at_++ & 0x7f)) return true;  // the highest bit marks an object as shared
    }
    return false;
  }

 private:
  /// Skips what follows the type of an object, up to the next object. False if the type is a code
  /// object's or unknown.
  bool Skip(int type) {
    switch (type) {
      case '0':
      case 'N':
      case 'F':
      case 'T':
      case 'S':
      case '.':
      case '{':
        return true;
      case 'i':
      case 'r':
      case '(':
      case '[':
      case '<':
      case '>':
        return Forward(4);
      case 'I':
      case 'g':
        return Forward(8);
      case 'y':
        return Forward(16);
      case ')':
        return Forward(1);
      case 'f':
      case 'z':
      case 'Z':
        return Forward(Number(1));
      case 'x':
        return Forward(Number(1)) && Forward(Number(1));
      case 's':
      case 't':
      case 'u':
      case 'a':
      case 'A':
        return Forward(Number(4));
      case 'l': {  // digits of two bytes each; the sign is that of their number
        const auto digits = static_cast<int32_t>(Number(4));
        return Forward(2 * static_cast<uint64_t>(digits < 0 ? -static_cast<int64_t>(digits)
                                                            : static_cast<int64_t>(digits)));
      }
      default:
        return false;
    }
  }

  /// At the end of the bytes marshal reads nothing more either.
  bool Forward(uint64_t bytes) {
    const auto left = static_cast<uint64_t>(end_ - at_);
    at_ += bytes < left ? bytes : left;
    return true;
  }

  uint32_t Number(size_t bytes) {
    uint32_t number = 0;
    for (size_t i = 0; i < bytes && at_ < end_; ++i) number |= uint32_t{*at_++} << (8 * i);
    return number;
  }

  const uint8_t* at_;
  const uint8_t* end_;
};

/// The compiled files of the interpreter's own that were opened last. Threads may import at once. A
/// program can make this list say anything; all that it is used for is where to look.
constexpr size_t kPathBytes = 512;
constexpr size_t kPaths = 64;
char g_compiled[kPaths][kPathBytes];
size_t g_next_path = 0;

/// Whether the file holds these bytes after its header.
bool Holds(const char* path, const char* bytes, size_t count) {
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (file < 0) return false;
  struct stat info;
  bool same = fstat(file, &info) == 0 && S_ISREG(info.st_mode) &&
              static_cast<uint64_t>(info.st_size) == kHeaderBytes + count;
  char part[4096];
  size_t read = 0;
  while (same && read < count) {
    const size_t wanted = count - read < sizeof(part) ? count - read : sizeof(part);
    const ssize_t got = pread(file, part, wanted, static_cast<off_t>(kHeaderBytes + read));
    same = got > 0 && memcmp(part, bytes + read, static_cast<size_t>(got)) == 0;
    if (same) read += static_cast<size_t>(got);
  }
  close(file);
  return same;
}

/// Whether the bytes are the content of one of the interpreter's own compiled files. Nobody can
/// write there.
bool IsOwnCode(const char* bytes, size_t count) {
  for (size_t i = 1; i <= kPaths; ++i) {
    const char* const path = g_compiled[(g_next_path + kPaths - i) % kPaths];
    if (path[0] != '\0' && Holds(path, bytes, count)) return true;
  }
  return false;
}

/// The value of these marshalled bytes, which are the caller's or the interpreter's own. They are
/// copied first: those of the caller may change.
template <typename Function>
PyObject* LoadSafe(PyObject* data, const Function& load) {
  PyObject* const view = PyMemoryView_FromObject(data);
  PyObject* const bytes = view == nullptr ? nullptr : PyBytes_FromObject(view);
  if (view != nullptr) Py_DecRef(view);
  if (bytes == nullptr) return nullptr;
  const char* const begin = PyBytes_AsString(bytes);
  const auto count = static_cast<size_t>(PyBytes_Size(bytes));
  const bool safe = !Tokens(begin, count).MayHoldCode() || IsOwnCode(begin, count);
  PyObject* const result = safe ? CallTrusted([&] { return load(bytes); }) : RefuseCode();
  Py_DecRef(bytes);
  return result;
}

/// In place of marshal.loads.
PyObject* Loads(PyObject* module, PyObject* data) {
  return LoadSafe(data, [&](PyObject* bytes) { return g_loads.call(module, bytes); });
}

/// The same since CPython 3.13. It leaves out the argument `allow_code`, whose conversion could run
/// code of the program.
PyObject* LoadsWithNames(PyObject* module, PyObject* const* arguments, Py_ssize_t count,
                         PyObject*) {
  if (count != 1) return RefuseCode();
  return LoadSafe(arguments[0], [&](PyObject* bytes) {
    return CallOf<KeywordCall>(g_loads)(module, &bytes, 1, nullptr);
  });
}

bool TameReplace() {
  PyObject* const code = FindAttribute("types", "coroutine", "__code__");
  Method* const method =
      code == nullptr ? nullptr : MethodOf(PyObject_GetAttrString(code, "replace"), "replace");
  if (method == nullptr || method->flags != kKeywordArguments) return false;
  g_replace = *method;
  SetCall(method, Replace);
  return true;
}

bool TameLoads() {
  Method* const method = MethodOf(FindAttribute("marshal", nullptr, "loads"), "loads");
  if (method == nullptr) return false;
  g_loads = *method;
  if (method->flags == kOneArgument) {
    method->call = Loads;
  } else if (method->flags == kKeywordArguments) {
    SetCall(method, LoadsWithNames);
  } else {
    return false;
  }
  return true;
}

}  // namespace

bool RefuseBytecode() {
  g_event_each =
      strncmp(Py_GetVersion(), "3.8.", 4) == 0 || strncmp(Py_GetVersion(), "3.9.", 4) == 0;
  g_collects = FindAttribute("gc", nullptr, "isenabled");
  g_stop_collecting = FindAttribute("gc", nullptr, "disable");
  g_start_collecting = FindAttribute("gc", nullptr, "enable");
  if (g_collects == nullptr || g_stop_collecting == nullptr || g_start_collecting == nullptr)
    return false;
  return TameReplace() && TameLoads();
}

int AuditNewHook() {
  if (!g_event_each) return 0;
  RefuseCode();
  return -1;
}

void NoteOpened(const char* path) {
  const size_t bytes = strlen(path);
  if (bytes < 5 || bytes >= kPathBytes || strcmp(path + bytes - 4, ".pyc") != 0) return;
  memcpy(g_compiled[g_next_path], path, bytes + 1);
  g_next_path = (g_next_path + 1) % kPaths;
}

int AuditCode() {
  if (g_trusted) {
    g_trusted = g_event_each;
    return 0;
  }
  RefuseCode();
  return -1;
}

}  // namespace evald::guest
