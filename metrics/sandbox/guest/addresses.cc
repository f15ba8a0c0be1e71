// Functions of Python's library that take an integer for an address.
//
// `SemLock._rebuild` takes any integer for a semaphore, with which memory can be read and written.
// `pthread_kill` and `pthread_getcpuclockid` take the number of a thread, which the C library takes
// for the address of the thread's data. A function is changed in the table of its module, from
// which the interpreter makes it: so it stays changed when a program makes the module anew. `fcntl`
// and `ioctl` pass an integer on to the kernel.

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "metrics/sandbox/guest/tables.h"

// Parts of Python's ABI since 3.8. The interpreter that loads this library defines them.
extern "C" {
extern PyObject* PyExc_OSError;
extern PyObject* PyExc_TypeError;
extern PyObject PyByteArray_Type;
extern PyObject PyBytes_Type;
extern PyObject PyMemoryView_Type;
PyObject* PyDict_GetItem(PyObject* dict, PyObject* key);
PyObject* PyErr_SetFromErrno(PyObject* type);
unsigned long PyLong_AsUnsignedLongMask(PyObject* number);
PyObject* PyLong_FromUnsignedLong(unsigned long number);
PyObject* PySys_GetObject(const char* name);
PyObject* PyTuple_GetItem(PyObject* tuple, Py_ssize_t index);
}

namespace evald::guest {
namespace {

PyObject* g_current_frames = nullptr;  ///< sys._current_frames: a dict with all threads' numbers
PyObject* g_array_type = nullptr;      ///< array.array
Method g_clock_of_thread;              ///< time.pthread_getcpuclockid as it was

PyObject* RefuseAddress(PyObject*, PyObject*) {
  PyErr_SetString(PyExc_PermissionError, "the sandbox refuses functions that take an address");
  return nullptr;
}

bool IsThread(unsigned long number) {
  PyObject* const frames = PyObject_CallFunctionObjArgs(g_current_frames, nullptr);
  PyObject* const key = frames == nullptr ? nullptr : PyLong_FromUnsignedLong(number);
  const bool found = key != nullptr && PyDict_GetItem(frames, key) != nullptr;
  PyErr_Clear();
  if (key != nullptr) Py_DecRef(key);
  if (frames != nullptr) Py_DecRef(frames);
  return found;
}

void SetNoSuchThread() {
  errno = ESRCH;
  PyErr_SetFromErrno(PyExc_OSError);
}

/// In place of time.pthread_getcpuclockid.
PyObject* ClockOfThread(PyObject* self, PyObject* arguments) {
  PyObject* const thread =
      g_clock_of_thread.flags == kOneArgument ? arguments : PyTuple_GetItem(arguments, 0);
  PyErr_Clear();
  if (thread == nullptr || TypeOf(thread) != &PyLong_Type) {
    PyErr_SetString(PyExc_TypeError,
                    "pthread_getcpuclockid() takes the number of a thread, an int");
    return nullptr;
  }
  if (IsThread(PyLong_AsUnsignedLongMask(thread))) return g_clock_of_thread.call(self, arguments);
  SetNoSuchThread();
  return nullptr;
}

/// False if the interpreter has SemLock._rebuild and keeps it out of reach.
bool RefuseSemaphoresAtAddresses() {
  PyObject* const rebuild = FindAttribute("_multiprocessing", "SemLock", "_rebuild");
  if (rebuild == nullptr) return true;
  Method* const method = MethodOf(rebuild, "_rebuild");
  if (method != nullptr) method->call = RefuseAddress;
  return method != nullptr;
}

bool CheckClocksOfThreads() {
  PyObject* const clock = FindAttribute("time", nullptr, "pthread_getcpuclockid");
  if (clock == nullptr) return true;
  Method* const method = MethodOf(clock, "pthread_getcpuclockid");
  if (method == nullptr) return false;
  g_clock_of_thread = *method;
  const bool known = method->flags == kOneArgument || method->flags == kTupleOfArguments;
  method->call = known ? ClockOfThread : RefuseAddress;
  return true;
}

/// Commands whose argument is a number for the kernel, too, and no address.
bool TakesNumber(bool is_ioctl, unsigned long command) {
  if (is_ioctl) return command == FIOCLEX || command == FIONCLEX;
  switch (command) {
    case F_DUPFD:
    case F_DUPFD_CLOEXEC:
    case F_GETFD:
    case F_SETFD:
    case F_GETFL:
    case F_SETFL:
    case F_GETOWN:
    case F_SETOWN:
    case F_GETSIG:
    case F_SETSIG:
    case F_GETLEASE:
    case F_SETLEASE:
    case F_NOTIFY:
    case F_GETPIPE_SZ:
    case F_SETPIPE_SZ:
    case F_GET_SEALS:
      return true;
    default:
      return false;
  }
}

/// Whether objects of this very type are never taken for an integer. (A type of the program's own
/// may have `__index__`, or get it after this check.)
bool IsBufferOrNone(PyObject* object) {
  if (object == &_Py_NoneStruct) return true;
  const PyObject* const type = TypeOf(object);
  const PyObject* const buffers[] = {&PyBytes_Type, &PyByteArray_Type, &PyMemoryView_Type,
                                     &PyUnicode_Type};
  for (const PyObject* buffer : buffers) {
    if (type == buffer) return true;
  }
  return g_array_type != nullptr && type == g_array_type;
}

}  // namespace

bool RefuseAddresses() {
  g_array_type = FindAttribute("array", nullptr, "array");
  g_current_frames = PySys_GetObject("_current_frames");
  if (g_current_frames == nullptr) return false;
  Py_IncRef(g_current_frames);
  return RefuseSemaphoresAtAddresses() && CheckClocksOfThreads();
}

int AuditThreadSignal(PyObject* arguments) {
  PyObject* const thread = PyTuple_GetItem(arguments, 0);
  PyErr_Clear();
  const bool known = thread != nullptr && TypeOf(thread) == &PyLong_Type &&
                     IsThread(PyLong_AsUnsignedLongMask(thread));
  if (known) return 0;
  SetNoSuchThread();
  return -1;
}

int AuditDescriptor(PyObject* arguments, bool is_ioctl) {
  PyObject* const command = PyTuple_GetItem(arguments, 1);
  PyObject* const argument = PyTuple_GetItem(arguments, 2);
  PyErr_Clear();
  if (argument == nullptr || IsBufferOrNone(argument)) return 0;
  const bool number = TypeOf(command) == &PyLong_Type;
  // The kernel takes 32 bits of it.
  if (number && TakesNumber(is_ioctl, PyLong_AsUnsignedLongMask(command) & 0xffffffffu)) return 0;
  PyErr_SetString(
      PyExc_PermissionError,
      "the sandbox refuses an integer where the kernel may take an address: give bytes");
  return -1;
}

}  // namespace evald::guest
