// The zygote's loop: reads a program, has it run, and reports.

#include <errno.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "metrics/sandbox/guest/control.h"
#include "metrics/sandbox/guest/guest.h"

// Parts of Python's stable ABI.
extern "C" {
PyObject* PyEval_GetBuiltins(void);
PyObject* PyDict_GetItemString(PyObject* dict, const char* key);
}

namespace evald::guest {
namespace {

using sandbox::kWireMagic;

Zygote g_zygote;
bool g_serving = false;

void* SharedPages(size_t bytes) {
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? nullptr : pages;
}

bool ReadConfig() {
  ZygoteConfig& config = g_zygote.config;
  if (!ReadAll(&config, sizeof(config)) || config.magic != kWireMagic) return false;
  if (config.filter_instructions > sandbox::kFilterInstructionsMax) return false;
  return ReadAll(g_zygote.filter, config.filter_instructions * sizeof(sock_filter));
}

bool SendReady() {
  const uint32_t action = SECCOMP_RET_ERRNO;
  const bool seccomp = syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
  const bool sees = g_zygote.config.allow_processes != 0 && SeesProcesses();
  const sandbox::ZygoteReady ready{kWireMagic, seccomp ? 1u : 0u, sees ? 1u : 0u};
  return SendAll(&ready, sizeof(ready));
}

/// False if the runner is gone or there is no memory. The zygote then ends.
bool ServeOne(Program* program) {
  ProgramRequest& request = program->request;
  if (!ReadAll(&request, sizeof(request)) || request.magic != kWireMagic) return false;
  if (request.source_bytes > sandbox::kSourceBytesMax) return false;
  const size_t mapped = request.source_bytes + 1;
  program->source = static_cast<char*>(
      mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (program->source == MAP_FAILED) return false;
  if (!ReadAll(program->source, request.source_bytes)) return false;
  ProgramReport report;
  memset(&report, 0, sizeof(report));
  report.magic = kWireMagic;
  memset(program->secret, 0, sizeof(*program->secret));
  memset(program->setup, 0, sizeof(*program->setup));
  Supervise(g_zygote, *program, &report);
  munmap(program->source, mapped);
  memset(&request, 0, sizeof(request));
  return SendAll(&report, sizeof(report));
}

}  // namespace

/// The start function of the extension module that this library claims to be. zygote.py imports it
/// once, and the import never returns. So the interpreter has no ctypes, with which Python code
/// could otherwise load the library. A program that imports it again gets a SystemError.
extern "C" __attribute__((visibility("default"))) PyObject* PyInit_evald_guest() {
  if (g_serving) return nullptr;
  g_serving = true;
  g_zygote.exec_function = PyDict_GetItemString(PyEval_GetBuiltins(), "exec");
  if (g_zygote.exec_function == nullptr) _exit(1);
  Program program;
  memset(&program, 0, sizeof(program));
  program.zygote = &g_zygote;
  program.secret = static_cast<SecretPages*>(SharedPages(sizeof(SecretPages)));
  program.setup = static_cast<SetupPage*>(SharedPages(sizeof(SetupPage)));
  if (program.secret == nullptr || program.setup == nullptr) _exit(1);
  if (!ReadConfig()) _exit(1);
  if (g_zygote.config.allow_ctypes == 0 && !RefuseMemoryAccess(g_zygote.config.namespaces != 0))
    _exit(1);
  if (!g_zygote.config.namespaces) prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  if (!SendReady()) _exit(1);
  while (ServeOne(&program)) {
  }
  _exit(0);
}

}  // namespace evald::guest
