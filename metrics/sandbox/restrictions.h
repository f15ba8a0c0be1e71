#pragma once

#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

// Restrictions that a process puts on itself before it runs code that is not trusted. They are
// system calls and nothing else: the guest library has no C++ library, and the clone of a process
// with threads may not allocate memory. Each returns nullptr, or the name of the failed step with
// errno set.

namespace evald::sandbox {

inline const char* LimitResource(int resource, uint64_t value, const char* name) {
  rlimit now;
  if (prlimit(0, static_cast<__rlimit_resource>(resource), nullptr, &now) != 0) return name;
  const rlim_t bounded = value < now.rlim_max ? value : now.rlim_max;
  const rlimit wanted = {bounded, bounded};
  return prlimit(0, static_cast<__rlimit_resource>(resource), &wanted, nullptr) != 0 ? name
                                                                                     : nullptr;
}

/// The limits that each process gets with its memory, files, and processes.
struct ResourceLimits {
  uint64_t memory_bytes;  ///< address space
  uint64_t file_bytes;    ///< of a file that is written
  uint64_t open_files;
  uint64_t tasks;  ///< processes and threads; 0: not set
};

inline const char* LimitResources(const ResourceLimits& limits) {
  const struct {
    int resource;
    uint64_t value;
    const char* name;
  } all[] = {{RLIMIT_AS, limits.memory_bytes, "RLIMIT_AS"},
             {RLIMIT_FSIZE, limits.file_bytes, "RLIMIT_FSIZE"},
             {RLIMIT_NOFILE, limits.open_files, "RLIMIT_NOFILE"},
             {RLIMIT_STACK, 8 << 20, "RLIMIT_STACK"},
             {RLIMIT_CORE, 0, "RLIMIT_CORE"},
             {RLIMIT_MEMLOCK, 0, "RLIMIT_MEMLOCK"},
             {RLIMIT_MSGQUEUE, 0, "RLIMIT_MSGQUEUE"},
             {RLIMIT_SIGPENDING, 64, "RLIMIT_SIGPENDING"},
             {RLIMIT_NPROC, limits.tasks, "RLIMIT_NPROC"}};
  for (const auto& limit : all) {
    if (limit.resource == RLIMIT_NPROC && limit.value == 0) continue;
    const char* failed = LimitResource(limit.resource, limit.value, limit.name);
    if (failed != nullptr) return failed;
  }
  return nullptr;
}

/// Becomes user and group `id`, inside the namespaces. Direct system calls: libc's wrappers would
/// signal threads that this process does not have.
inline const char* BecomeUser(uint32_t id) {
  if (syscall(SYS_setgroups, 0, nullptr) != 0) return "setgroups(none)";
  if (syscall(SYS_setresgid, id, id, id) != 0) return "setresgid(program)";
  if (syscall(SYS_setresuid, id, id, id) != 0) return "setresuid(program)";
  return nullptr;
}

inline const char* DropBoundingSet() {
  for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; ++capability) {
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) return "PR_CAPBSET_DROP";
  }
  return nullptr;
}

inline const char* DropCapabilities() {
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2];
  memset(none, 0, sizeof(none));
  return syscall(SYS_capset, &header, none) != 0 ? "capset(none)" : nullptr;
}

/// No process that this one starts has more rights than this one.
inline const char* GainNoPrivileges() {
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ? "PR_SET_NO_NEW_PRIVS" : nullptr;
}

/// The kernel kills this process when its parent's thread ends. A change of user clears this.
inline const char* DieWithParentThread(int signal) {
  return prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0) != 0 ? "PR_SET_PDEATHSIG" : nullptr;
}

inline const char* InstallFilter(const sock_filter* instructions, size_t count) {
  const sock_fprog filter = {static_cast<unsigned short>(count),
                             const_cast<sock_filter*>(instructions)};
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) != 0
             ? "seccomp(SECCOMP_SET_MODE_FILTER)"
             : nullptr;
}

}  // namespace evald::sandbox
