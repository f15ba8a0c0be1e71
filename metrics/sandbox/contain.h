#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "metrics/sandbox/root.h"
#include "metrics/sandbox/user.h"

namespace evald::sandbox {

/// Everything that the zygote's process needs between clone and exec, made beforehand: the clone of
/// a process with threads may not allocate memory.
struct ContainPlan {
  bool namespaces = true;
  SandboxUser user;
  RootPlan root;                         ///< unused without namespaces
  int control = -1;                      ///< the zygote's end of the control socket
  int null = -1;                         ///< /dev/null, for reading and writing
  int errors = -1;                       ///< becomes standard error
  int report = -1;                       ///< takes a SetupFailure
  int guest = -1;                        ///< unsafe mode: a memfd with the guest library
  int proc = -1;                         ///< the host's /proc, or -1
  std::vector<std::string> arguments;    ///< of the interpreter; argv[0] is its path
  std::vector<std::string> environment;  ///< "NAME=value"
};

/// Clones this process into new user, pid, mount, net, ipc and uts namespaces (without namespaces,
/// forks it). The clone goes through the checklist that ends in the interpreter's exec, and waits
/// in between for the byte that says that the id maps are written. Returns the child's pid, or -1
/// with errno. The caller keeps the plan's descriptors.
pid_t StartContained(ContainPlan& plan);

}  // namespace evald::sandbox
