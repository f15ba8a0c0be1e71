#pragma once

#include <linux/filter.h>

#include <vector>

namespace evald::sandbox {

/// The system calls of a program, as a BPF program for seccomp(2). An allowlist: what it does not
/// name answers ENOSYS, as an older kernel would, and what belongs to another architecture kills.
///
/// Not in it: sockets (but socketpair, for asyncio), exec, mounts, namespaces, tracing, keys, bpf,
/// io_uring, userfaultfd, SysV and POSIX message queues, semaphores and shared memory, memfd (whose
/// pages no limit counts), signals to other processes. New processes only with `allow_processes`:
/// code_eval's guard takes fork away as well; threads are always allowed.
///
/// Locks on files (flock, fcntl) answer that they are granted and take none, since they would hold
/// on files of the host; signals from files, leases and notices of changes are refused. With
/// `allow_processes` SIGCHLD keeps its default action, so that no process's CPU time is lost.
///
/// Throws Error(kInfrastructure) when libseccomp refuses a rule.
std::vector<sock_filter> BuildFilter(bool allow_processes);

}  // namespace evald::sandbox
