#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "evald/error.h"
#include "metrics/sandbox/interpreter.h"
#include "metrics/sandbox/sandbox.h"
#include "metrics/sandbox/zygote.h"

namespace evald {
namespace {

/// Makes a user namespace with the namespaces of `flags` in it. Returns errno, or 0 if it works.
int TryNamespaces(uint64_t flags) {
  const pid_t pid =
      static_cast<pid_t>(syscall(SYS_clone, SIGCHLD | CLONE_NEWUSER | flags, 0, 0, 0, 0));
  if (pid == 0) _exit(0);
  if (pid < 0) return errno;
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return 0;
}

SandboxProbe ProbeNamespace(const char* what, uint64_t flag) {
  const int error_number = TryNamespaces(flag);
  if (error_number == 0) return {what, true, "available"};
  return {what, false,
          std::string(std::strerror(error_number)) + "; " + sandbox::SetupRemedy(error_number)};
}

SandboxProbe ProbeSeccomp() {
  const uint32_t action = SECCOMP_RET_ERRNO;
  if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0) {
    return {"seccomp filter", true, "available"};
  }
  return {"seccomp filter", false,
          std::string(std::strerror(errno)) + "; the kernel needs CONFIG_SECCOMP_FILTER"};
}

SandboxProbe ProbeInterpreter(const std::string& python) {
  try {
    const sandbox::Interpreter& found = sandbox::FindInterpreter(python);
    return {"interpreter", true, found.executable + ", CPython " + found.version};
  } catch (const Error& error) {
    return {"interpreter", false, error.what()};
  }
}

/// The proof: a program in a complete sandbox.
SandboxProbe ProbeProgram(SandboxOptions options) {
  options.unsafe = false;
  try {
    const ProgramOutcome outcome = TryProgram(options);
    if (outcome.status == ProgramStatus::kPassed)
      return {"a program in the sandbox", true, "passed"};
    return {"a program in the sandbox", false, outcome.detail};
  } catch (const Error& error) {
    return {"a program in the sandbox", false, error.what()};
  }
}

}  // namespace

ProgramOutcome TryProgram(const SandboxOptions& options) {
  return MakeCodeRunner(options)->Run("assert 6 * 7 == 42");
}

std::vector<SandboxProbe> ProbeSandbox(const SandboxOptions& options) {
  utsname host = {};
  uname(&host);
  std::vector<SandboxProbe> probes;
  probes.push_back({"kernel", true, std::string(host.release) + "; 5.14 or later is expected"});
  probes.push_back(ProbeNamespace("user namespaces", 0));
  if (probes.back().available) {
    probes.push_back(ProbeNamespace("pid namespaces", CLONE_NEWPID));
    probes.push_back(ProbeNamespace("mount namespaces", CLONE_NEWNS));
    probes.push_back(ProbeNamespace("net namespaces", CLONE_NEWNET));
    probes.push_back(ProbeNamespace("ipc namespaces", CLONE_NEWIPC));
    probes.push_back(ProbeNamespace("uts namespaces", CLONE_NEWUTS));
  }
  probes.push_back(ProbeSeccomp());
  probes.push_back(ProbeInterpreter(options.python));
  probes.push_back(ProbeProgram(options));
  return probes;
}

}  // namespace evald
