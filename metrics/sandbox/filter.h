#pragma once

#include <linux/filter.h>

#include <vector>

namespace evald::sandbox {

/// What a filter allows beyond what every program may.
struct FilterOptions {
  bool processes = false;     ///< new processes
  bool machine_code = false;  ///< memory that is written and then run, as ctypes needs
  /// The interpreter itself runs under the filter, and has no secret of evald's in its memory: it
  /// may be started, and may give memory back to the kernel
  bool interpreter = false;
  /// What signal a child's end gives is a program's own choice, as compilers and shells need it.
  /// The CPU time of children that nobody waits for may then be lost
  bool child_signals = false;
};

/// The system calls of a program, as a BPF program for seccomp(2). It is an allowlist: a call that
/// it does not name fails with ENOSYS, as in an older kernel. A call of another architecture kills
/// the process.
///
/// Not allowed: sockets (except socketpair, for asyncio), exec, mounts, namespaces, tracing, keys,
/// bpf, io_uring, userfaultfd, SysV and POSIX message queues, semaphores and shared memory, memfd
/// (no limit counts its pages), signals to other processes. New processes only with
/// `processes`: code_eval's guard removes fork, too. Threads are always allowed.
///
/// Locks on files (flock, fcntl) return success and take no lock, since they would hold on files of
/// the host. Signals from files, leases and notices of changes are refused. With `processes`,
/// SIGCHLD keeps its default action, so that no process's CPU time is lost. fsync and the like
/// return success and write nothing: the files may be the host's.
///
/// Without `machine_code`, executable memory holds files and nothing else, and cannot be
/// written before or after. (ctypes needs other memory for its callbacks.)
///
/// Throws Error(kInfrastructure) if libseccomp refuses a rule.
std::vector<sock_filter> BuildFilter(const FilterOptions& options);

}  // namespace evald::sandbox
