// The restrictions that a program gets before it begins.

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "metrics/sandbox/guest/guest.h"
#include "metrics/sandbox/restrictions.h"

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

void Check(SetupPage* setup, const char* failed_step) {
  if (failed_step != nullptr) FailSetup(setup, failed_step);
}

void SetLimits(const ZygoteConfig& config, SetupPage* setup) {
  // The supervisor's clock decides. This limit counts in ticks and bounds what the supervisor does
  // not see.
  Check(setup, sandbox::LimitResource(RLIMIT_CPU, config.cpu_limit_us / 1000000 + 2, "RLIMIT_CPU"));
  Check(setup,
        sandbox::LimitResources({config.memory_bytes, config.tmpfs_bytes, 256, config.task_limit}));
}

void InstallFilter(const Zygote& zygote, SetupPage* setup) {
  const char* failed = sandbox::InstallFilter(zygote.filter, zygote.config.filter_instructions);
  if (zygote.config.filter_required) Check(setup, failed);
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
    Check(setup, sandbox::DropBoundingSet());
    if (zygote.config.program_uid != 0) {
      Check(setup, sandbox::BecomeUser(zygote.config.program_uid));
    }
    Check(setup, sandbox::DropCapabilities());
  }
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) FailSetup(setup, "PR_SET_DUMPABLE");
  Check(setup, sandbox::GainNoPrivileges());
  Check(setup, sandbox::DieWithParentThread(SIGKILL));  // after the change of user
  SetLimits(zygote.config, setup);
  InstallFilter(zygote, setup);
  RunProgram(program);
}

}  // namespace evald::guest
