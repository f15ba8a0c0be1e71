#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "metrics/sandbox/restrictions.h"
#include "metrics/sandbox/root.h"
#include "metrics/sandbox/user.h"

namespace evald::sandbox {

/// What the interpreter may not, if it runs untrusted code itself. (The zygote does not: the guest
/// library restricts each of its programs.)
struct Restrictions {
  ResourceLimits limits = {};
  std::vector<sock_filter> filter;  ///< empty: none
};

/// Everything that the zygote's process needs between clone and exec, made beforehand: the clone of
/// a process with threads may not allocate memory.
struct ContainPlan {
  bool namespaces = true;
  SandboxUser user;
  RootPlan root;                             ///< unused without namespaces
  int control = -1;                          ///< the zygote's end of the control socket
  int null = -1;                             ///< /dev/null, for reading and writing
  int errors = -1;                           ///< becomes standard error
  int report = -1;                           ///< takes a SetupFailure
  int guest = -1;                            ///< unsafe mode: a memfd with the guest library
  int proc = -1;                             ///< the host's /proc, or -1
  std::optional<Restrictions> restrictions;  ///< put on before the interpreter starts
  std::vector<std::string> arguments;        ///< of the interpreter; argv[0] is its path
  std::vector<std::string> environment;      ///< "NAME=value"
};

/// Clones this process into new user, pid, mount, net, ipc and uts namespaces (without namespaces,
/// forks it). The clone goes through the checklist that ends in the interpreter's exec, and waits
/// in between for the byte that says that the id maps are written. Returns the child's pid, or -1
/// with errno. The caller keeps the plan's descriptors.
pid_t StartContained(ContainPlan& plan);

}  // namespace evald::sandbox
