// Refuses these imports of a program: the modules of modules.cc, and extension modules that are not
// the interpreter's own files; and no code objects of its own (bytecode.cc). SQLite is made safe at
// its import. The hook is the interpreter's own (PEP 578), in machine code, and cannot be removed
// from Python. A program can raise events of its own (sys.audit), with any arguments: the hook must
// do nothing with them that a true event could not have it do.

#include <string.h>
#include <unistd.h>

#include "metrics/sandbox/guest/guest.h"

// Parts of Python's ABI since 3.8. The interpreter that loads this library defines them.
extern "C" {
using Py_ssize_t = ssize_t;
extern PyObject* PyExc_ImportError;
extern PyObject* PyExc_PermissionError;
extern PyObject _Py_NoneStruct;
PyObject* PySys_GetObject(const char* name);
int PySys_AddAuditHook(int (*hook)(const char* event, PyObject* arguments, void* data), void* data);
PyObject* PyTuple_GetItem(PyObject* tuple, Py_ssize_t index);
Py_ssize_t PyList_Size(PyObject* list);
PyObject* PyList_GetItem(PyObject* list, Py_ssize_t index);
const char* PyUnicode_AsUTF8AndSize(PyObject* text, Py_ssize_t* bytes);
void PyErr_SetString(PyObject* type, const char* message);
void PyErr_Clear(void);
}

namespace evald::guest {
namespace {

/// The folders of the interpreter's library and packages: sys.path as it was before any program.
constexpr size_t kFoldersMax = 64;
const char* g_folders[kFoldersMax];
size_t g_folder_count = 0;

/// The argument of an event as UTF-8, which may hold zeros; "" if it is no text.
const char* TextOf(PyObject* arguments, Py_ssize_t index, Py_ssize_t* bytes) {
  *bytes = 0;
  PyObject* const argument = PyTuple_GetItem(arguments, index);
  const char* const text = argument == nullptr ? nullptr : PyUnicode_AsUTF8AndSize(argument, bytes);
  PyErr_Clear();
  return text == nullptr ? "" : text;
}

/// The last part of a dotted name, by which the interpreter finds an extension module's start
/// function. The interpreter takes it from the whole text and then reads up to a zero.
const char* LastPart(PyObject* arguments) {
  Py_ssize_t bytes = 0;
  const char* const name = TextOf(arguments, 0, &bytes);
  const auto* const dot = static_cast<const char*>(memrchr(name, '.', static_cast<size_t>(bytes)));
  return dot == nullptr ? name : dot + 1;
}

/// Whether `path` is below `folder`.
bool IsBelow(const char* path, const char* folder) {
  const size_t bytes = strlen(folder);
  return strncmp(path, folder, bytes) == 0 && path[bytes] == '/' && path[bytes + 1] != '\0';
}

bool LeadsUp(const char* path) {
  for (const char* at = strstr(path, "/.."); at != nullptr; at = strstr(at + 1, "/..")) {
    if (at[3] == '/' || at[3] == '\0') return true;
  }
  return false;
}

bool KeepFolders(bool tmp_is_fresh) {
  PyObject* const folders = PySys_GetObject("path");
  const Py_ssize_t count = folders == nullptr ? -1 : PyList_Size(folders);
  for (Py_ssize_t i = 0; i < count; ++i) {
    Py_ssize_t bytes = 0;
    const char* const folder = PyUnicode_AsUTF8AndSize(PyList_GetItem(folders, i), &bytes);
    if (folder == nullptr || g_folder_count == kFoldersMax) return false;
    if (folder[0] != '/' || bytes < 2 || LeadsUp(folder)) continue;
    // A program's own folder hides what was there.
    if (tmp_is_fresh && (IsBelow(folder, "/tmp") || IsBelow(folder, "/dev/shm"))) continue;
    const char* const copy = strdup(folder);
    if (copy == nullptr) return false;
    g_folders[g_folder_count++] = copy;
  }
  return count >= 0;
}

int Refuse(PyObject* type, const char* message) {
  PyErr_SetString(type, message);
  return -1;
}

/// The file's path in an import event, which has one only if a file is about to be loaded as
/// machine code: nullptr if there is none, "" if it is no text that a path can be.
const char* LibraryPath(PyObject* arguments) {
  PyObject* const path = PyTuple_GetItem(arguments, 1);
  PyErr_Clear();
  if (path == nullptr || path == &_Py_NoneStruct) return nullptr;
  Py_ssize_t bytes = 0;
  const char* const text = TextOf(arguments, 1, &bytes);
  return strlen(text) == static_cast<size_t>(bytes) ? text : "";
}

bool IsSqlite(const char* path) {
  const char* const slash = strrchr(path, '/');
  return slash != nullptr && strncmp(slash, "/_sqlite3.", 10) == 0;
}

/// The event has the module's name and, if it is a file that is about to be loaded, the file's
/// path.
int AuditImport(PyObject* arguments) {
  const char* const module = LastPart(arguments);
  const char* const path = LibraryPath(arguments);
  Py_ssize_t bytes = 0;
  const char* const refusal =
      RefusalOfModule(TextOf(arguments, 0, &bytes), module, path != nullptr);
  if (refusal != nullptr) return Refuse(PyExc_ImportError, refusal);
  if (path == nullptr) return 0;
  // The mount option noexec is not enough: a library without executable pages loads, and the loader
  // calls what its tables name.
  if (!IsOwnFile(path)) {
    return Refuse(PyExc_ImportError,
                  "the sandbox refuses extension modules that are not the interpreter's own files");
  }
  if (strcmp(module, "_sqlite3") != 0 || (IsSqlite(path) && TameSqlite(path))) return 0;
  return Refuse(PyExc_ImportError,
                "the sandbox refuses sqlite3: its function fts3_tokenizer, which calls any "
                "address, cannot be replaced "
                "in this interpreter");
}

/// The event has the file's path first.
void AuditOpen(PyObject* arguments) {
  Py_ssize_t bytes = 0;
  const char* const path = TextOf(arguments, 0, &bytes);
  if (strlen(path) == static_cast<size_t>(bytes) && IsOwnFile(path)) NoteOpened(path);
}

int Audit(const char* event, PyObject* arguments, void*) {
  switch (event[0]) {
    case 'f':
      if (strcmp(event, "fcntl.fcntl") == 0) return AuditDescriptor(arguments, false);
      return strcmp(event, "fcntl.ioctl") == 0 ? AuditDescriptor(arguments, true) : 0;
    case 'i':
      return strcmp(event, "import") == 0 ? AuditImport(arguments) : 0;
    case 'c':
      if (strcmp(event, "code.__new__") == 0) return AuditCode();
      if (strncmp(event, "ctypes.", 7) != 0) return 0;
      return Refuse(PyExc_PermissionError, "the sandbox refuses ctypes");
    case 'm':
      return strncmp(event, "marshal.load", 12) == 0 ? AuditCode() : 0;
    case 'o':
      if (strcmp(event, "open") == 0) AuditOpen(arguments);
      return 0;
    case 's':
      if (strcmp(event, "signal.pthread_kill") == 0) return AuditThreadSignal(arguments);
      if (strcmp(event, "sys.addaudithook") == 0) return AuditNewHook();
      if (strcmp(event, "sqlite3.enable_load_extension") != 0) return 0;
      return Refuse(PyExc_PermissionError, "the sandbox refuses extensions of SQLite");
    default:
      return 0;
  }
}

}  // namespace

bool RefuseMemoryAccess(bool tmp_is_fresh) {
  TameSqlite("");  // an SQLite built into the interpreter: no event has its file
  return KeepFolders(tmp_is_fresh) && RefuseAddresses() && RefuseBytecode() && KeepBuffers() &&
         CheckIndexes() && RefuseRestarts() && RefuseReentry() && KeepStates() && RefuseModules() &&
         PySys_AddAuditHook(Audit, nullptr) == 0;
}

bool IsOwnFile(const char* path) {
  if (LeadsUp(path)) return false;
  for (size_t i = 0; i < g_folder_count; ++i) {
    if (IsBelow(path, g_folders[i])) return true;
  }
  return false;
}

}  // namespace evald::guest
