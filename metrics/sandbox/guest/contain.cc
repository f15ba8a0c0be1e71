// The restrictions that a program gets before it begins.

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "metrics/sandbox/guest/guest.h"

namespace evald::guest {
namespace {

/// Enters the only writable folder: empty, of a bounded size, gone with the mount namespace.
void EnterFreshFolder(const Program& program) {
  const Zygote& zygote = *program.zygote;
  if (!zygote.config.namespaces) {
    if (chdir(zygote.scratch) != 0) FailSetup(program.setup, "chdir(temporary folder)");
    return;
  }
  char options[128];
  snprintf(options, sizeof(options), "size=%llu,nr_inodes=1024,mode=0700,uid=%u,gid=%u",
           static_cast<unsigned long long>(zygote.config.tmpfs_bytes), zygote.config.program_uid,
           zygote.config.program_uid);
  if (mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options) != 0) {
    FailSetup(program.setup, "mount(tmpfs on /tmp)");
  }
  if (chdir("/tmp") != 0) FailSetup(program.setup, "chdir(/tmp)");
}

/// Opens /dev/null for this program's standard streams, and closes all other descriptors. (The
/// zygote's own /dev/null is one open file for all programs, which would share its flags and its
/// owner.)
void KeepNoDescriptors(SetupPage* setup) {
  const int null = open("/dev/null", O_RDWR | O_NOCTTY);
  if (null < 0) FailSetup(setup, "open(/dev/null)");
  if (dup2(null, 0) < 0) FailSetup(setup, "dup2(/dev/null)");
  if (dup2(0, 1) < 0 || dup2(0, 2) < 0) FailSetup(setup, "dup2(/dev/null)");
  if (syscall(SYS_close_range, 3u, ~0u, 0u) != 0) FailSetup(setup, "close_range(3..)");
}

void Limit(SetupPage* setup, int resource, uint64_t value, const char* name) {
  rlimit now;
  if (prlimit(0, static_cast<__rlimit_resource>(resource), nullptr, &now) != 0) {
    FailSetup(setup, name);
  }
  const rlim_t bounded = value < now.rlim_max ? value : now.rlim_max;
  const rlimit wanted = {bounded, bounded};
  if (prlimit(0, static_cast<__rlimit_resource>(resource), &wanted, nullptr) != 0) {
    FailSetup(setup, name);
  }
}

void SetLimits(const ZygoteConfig& config, SetupPage* setup) {
  // The supervisor's clock decides. This limit counts in ticks and bounds what the supervisor does
  // not see.
  Limit(setup, RLIMIT_CPU, config.cpu_limit_us / 1000000 + 2, "RLIMIT_CPU");
  Limit(setup, RLIMIT_AS, config.memory_bytes, "RLIMIT_AS");
  Limit(setup, RLIMIT_FSIZE, config.tmpfs_bytes, "RLIMIT_FSIZE");
  Limit(setup, RLIMIT_NOFILE, 256, "RLIMIT_NOFILE");
  Limit(setup, RLIMIT_STACK, 8 << 20, "RLIMIT_STACK");
  Limit(setup, RLIMIT_CORE, 0, "RLIMIT_CORE");
  Limit(setup, RLIMIT_MEMLOCK, 0, "RLIMIT_MEMLOCK");
  Limit(setup, RLIMIT_MSGQUEUE, 0, "RLIMIT_MSGQUEUE");
  Limit(setup, RLIMIT_SIGPENDING, 64, "RLIMIT_SIGPENDING");
  if (config.task_limit != 0) Limit(setup, RLIMIT_NPROC, config.task_limit, "RLIMIT_NPROC");
}

/// Direct system calls: libc's wrappers would signal threads that this process does not have.
void BecomeProgramUser(const ZygoteConfig& config, SetupPage* setup) {
  const uint32_t id = config.program_uid;
  if (id == 0) return;
  if (syscall(SYS_setgroups, 0, nullptr) != 0) FailSetup(setup, "setgroups(none)");
  if (syscall(SYS_setresgid, id, id, id) != 0) FailSetup(setup, "setresgid(program)");
  if (syscall(SYS_setresuid, id, id, id) != 0) FailSetup(setup, "setresuid(program)");
}

void DropBoundingSet(SetupPage* setup) {
  for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; ++capability) {
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) FailSetup(setup, "PR_CAPBSET_DROP");
  }
}

void DropCapabilities(SetupPage* setup) {
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2];
  memset(none, 0, sizeof(none));
  if (syscall(SYS_capset, &header, none) != 0) FailSetup(setup, "capset(none)");
}

void InstallFilter(const Zygote& zygote, SetupPage* setup) {
  const sock_fprog filter = {static_cast<unsigned short>(zygote.config.filter_instructions),
                             const_cast<sock_filter*>(zygote.filter)};
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0) return;
  if (zygote.config.filter_required) FailSetup(setup, "seccomp(SECCOMP_SET_MODE_FILTER)");
}

void SetOption(SetupPage* setup, int option, unsigned long value, const char* name) {
  if (prctl(option, value, 0, 0, 0) != 0) FailSetup(setup, name);
}

}  // namespace

void StartProgram(Program& program) {
  const Zygote& zygote = *program.zygote;
  SetupPage* setup = program.setup;
  if (setsid() < 0) FailSetup(setup, "setsid()");
  HideSecret(program);
  EnterFreshFolder(program);
  KeepNoDescriptors(setup);
  if (zygote.config.namespaces) {
    DropBoundingSet(setup);
    BecomeProgramUser(zygote.config, setup);
    DropCapabilities(setup);
  }
  SetOption(setup, PR_SET_DUMPABLE, 0, "PR_SET_DUMPABLE");
  SetOption(setup, PR_SET_NO_NEW_PRIVS, 1, "PR_SET_NO_NEW_PRIVS");
  // After the change of user, which clears it
  SetOption(setup, PR_SET_PDEATHSIG, SIGKILL, "PR_SET_PDEATHSIG");
  SetLimits(zygote.config, setup);
  InstallFilter(zygote, setup);
  RunProgram(program);
}

}  // namespace evald::guest
