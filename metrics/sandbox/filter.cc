#include "metrics/sandbox/filter.h"

#include <fcntl.h>
#include <linux/prctl.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "base/file.h"
#include "evald/error.h"

namespace evald::sandbox {
namespace {

constexpr const char* kFiles[] = {"access",
                                  "chdir",
                                  "chmod",
                                  "chown",
                                  "close",
                                  "close_range",
                                  "copy_file_range",
                                  "creat",
                                  "dup",
                                  "dup2",
                                  "dup3",
                                  "faccessat",
                                  "faccessat2",
                                  "fallocate",
                                  "fchdir",
                                  "fchmod",
                                  "fchmodat",
                                  "fchown",
                                  "fchownat",
                                  "fgetxattr",
                                  "flistxattr",
                                  "fstat",
                                  "fstatfs",
                                  "ftruncate",
                                  "futimesat",
                                  "getcwd",
                                  "getdents",
                                  "getdents64",
                                  "getxattr",
                                  "lchown",
                                  "lgetxattr",
                                  "link",
                                  "linkat",
                                  "listxattr",
                                  "llistxattr",
                                  "lseek",
                                  "lstat",
                                  "mkdir",
                                  "mkdirat",
                                  "newfstatat",
                                  "open",
                                  "openat",
                                  "pread64",
                                  "preadv",
                                  "preadv2",
                                  "pwrite64",
                                  "pwritev",
                                  "pwritev2",
                                  "read",
                                  "readlink",
                                  "readlinkat",
                                  "readv",
                                  "rename",
                                  "renameat",
                                  "renameat2",
                                  "rmdir",
                                  "sendfile",
                                  "splice",
                                  "stat",
                                  "statfs",
                                  "statx",
                                  "symlink",
                                  "symlinkat",
                                  "truncate",
                                  "umask",
                                  "unlink",
                                  "unlinkat",
                                  "utime",
                                  "utimensat",
                                  "utimes",
                                  "write",
                                  "writev"};

/// Calls that act on a whole file or on the host's disks, also through a descriptor that is only
/// for reading. They do nothing that a program could see, so they succeed without doing it.
constexpr const char* kFlushes[] = {"fadvise64", "fdatasync",       "fsync", "msync",
                                    "sync",      "sync_file_range", "syncfs"};

constexpr const char* kMemory[] = {"brk", "mremap", "munmap"};

/// Advice of madvise(2) that changes only how fast memory is. It is answered with success. No
/// advice reaches the kernel, whose answer or time would tell a hole from a mapping: some 50 calls
/// found the memory in which the completion record is hidden. (mincore tells the same.)
constexpr int kAdvice[] = {MADV_NORMAL,   MADV_RANDOM,   MADV_SEQUENTIAL,
                           MADV_WILLNEED, MADV_HUGEPAGE, MADV_NOHUGEPAGE};

constexpr const char* kTime[] = {"alarm",           "clock_getres",    "clock_gettime",
                                 "clock_nanosleep", "getitimer",       "gettimeofday",
                                 "nanosleep",       "setitimer",       "time",
                                 "timer_create",    "timer_delete",    "timer_getoverrun",
                                 "timer_gettime",   "timer_settime",   "timerfd_create",
                                 "timerfd_gettime", "timerfd_settime", "times"};

constexpr const char* kProcess[] = {"arch_prctl",
                                    "exit",
                                    "exit_group",
                                    "futex",
                                    "futex_waitv",
                                    "get_robust_list",
                                    "getcpu",
                                    "getegid",
                                    "geteuid",
                                    "getgid",
                                    "getgroups",
                                    "getpgid",
                                    "getpgrp",
                                    "getpid",
                                    "getppid",
                                    "getpriority",
                                    "getrandom",
                                    "getresgid",
                                    "getresuid",
                                    "getrlimit",
                                    "getrusage",
                                    "getsid",
                                    "gettid",
                                    "getuid",
                                    "membarrier",
                                    "pause",
                                    "restart_syscall",
                                    "rseq",
                                    "rt_sigpending",
                                    "rt_sigprocmask",
                                    "rt_sigreturn",
                                    "rt_sigsuspend",
                                    "rt_sigtimedwait",
                                    "sched_get_priority_max",
                                    "sched_get_priority_min",
                                    "sched_getaffinity",
                                    "sched_getparam",
                                    "sched_getscheduler",
                                    "sched_setaffinity",
                                    "sched_yield",
                                    "set_robust_list",
                                    "set_tid_address",
                                    "setrlimit",
                                    "sigaltstack",
                                    "sysinfo",
                                    "tgkill",
                                    "uname",
                                    "wait4",
                                    "waitid"};

constexpr const char* kWaiting[] = {"epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait",
                                    "epoll_pwait2", "epoll_wait",    "eventfd",   "eventfd2",
                                    "pipe",         "pipe2",         "poll",      "ppoll",
                                    "pselect6",     "select"};

/// Calls for socket pairs. No other socket can be made.
constexpr const char* kSocketPairs[] = {"getpeername", "getsockname", "recvfrom", "recvmsg",
                                        "shutdown"};

/// Options of sockets that can be read. SO_PEERPIDFD would give a descriptor of a process.
constexpr int kSocketOptions[] = {
    SO_DEBUG,     SO_REUSEADDR, SO_TYPE,       SO_ERROR,    SO_DONTROUTE, SO_SNDBUF,   SO_RCVBUF,
    SO_KEEPALIVE, SO_LINGER,    SO_REUSEPORT,  SO_PASSCRED, SO_PEERCRED,  SO_RCVLOWAT, SO_SNDLOWAT,
    SO_RCVTIMEO,  SO_SNDTIMEO,  SO_ACCEPTCONN, SO_PROTOCOL, SO_DOMAIN};
constexpr int kPeerPidFd = 77;  // SO_PEERPIDFD, since Linux 6.5

/// Commands of fcntl(2) that concern only the program's own descriptors.
constexpr int kDescriptorCommands[] = {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD,      F_SETFD,
                                       F_GETFL, F_SETFL,         F_GETPIPE_SZ, F_GETOWN,
                                       F_GETLK, F_OFD_GETLK,     F_GET_SEALS};

/// Lock commands. On one of the host's files they would lock the host's file.
constexpr int kLockCommands[] = {F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW};

constexpr const char* kProcessesToo[] = {"fork", "kill", "setpgid", "setsid", "vfork"};

class Rules {
 public:
  Rules() : context_(seccomp_init(SCMP_ACT_ERRNO(ENOSYS)), &seccomp_release) {
    if (!context_) throw Error(ErrorKind::kInfrastructure, "libseccomp cannot make a filter");
    // A tree in place of a list: the kernel walks the list once for each system call number at
    // every installation.
    Check(seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2), "optimisation");
  }

  /// Ignores names that this architecture or libseccomp does not know.
  template <typename... Conditions>
  void Allow(const char* name, Conditions... conditions) {
    Add(SCMP_ACT_ALLOW, name, conditions...);
  }

  template <typename... Conditions>
  void Refuse(const char* name, int error_number, Conditions... conditions) {
    Add(SCMP_ACT_ERRNO(static_cast<uint32_t>(error_number)), name, conditions...);
  }

  /// Answers 0 and does nothing.
  template <typename... Conditions>
  void Pretend(const char* name, Conditions... conditions) {
    Add(SCMP_ACT_ERRNO(0), name, conditions...);
  }

  std::vector<sock_filter> Export() const {
    const UniqueFd file(memfd_create("evald-filter", MFD_CLOEXEC));
    if (!file) ThrowErrno("memfd", "creating", errno);
    Check(seccomp_export_bpf(context_.get(), file.get()), "export");
    const off_t bytes = lseek(file.get(), 0, SEEK_END);
    std::vector<sock_filter> program(static_cast<size_t>(bytes) / sizeof(sock_filter));
    if (pread(file.get(), program.data(), static_cast<size_t>(bytes), 0) != bytes) {
      ThrowErrno("memfd", "reading", errno);
    }
    return program;
  }

 private:
  static void Check(int result, const char* what) {
    if (result < 0) {
      throw Error(ErrorKind::kInfrastructure,
                  std::string("libseccomp refuses ") + what + ": " + std::strerror(-result));
    }
  }

  template <typename... Conditions>
  void Add(uint32_t action, const char* name, Conditions... conditions) {
    const int number = seccomp_syscall_resolve_name(name);
    if (number < 0) return;
    Check(seccomp_rule_add(context_.get(), action, number, sizeof...(conditions), conditions...),
          name);
  }

  std::unique_ptr<void, void (*)(scmp_filter_ctx)> context_;
};

template <size_t kCount>
void AllowAll(Rules& rules, const char* const (&names)[kCount]) {
  for (const char* name : names) rules.Allow(name);
}

void AddProcessRules(Rules& rules, const FilterOptions& options) {
  // clone3 is refused with ENOSYS: libc then falls back to clone, whose flags the filter can see.
  const uint64_t namespaces = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET |
                              CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_NEWTIME;
  if (options.processes) {
    // If a process ignores SIGCHLD, the kernel reaps its children, and their CPU time is lost.
    if (options.child_signals) rules.Allow("rt_sigaction");
    for (int signal = 1; signal < NSIG && !options.child_signals; ++signal) {
      const auto same = SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffffull, static_cast<uint64_t>(signal));
      if (signal != SIGCHLD) rules.Allow("rt_sigaction", same);
    }
    if (!options.child_signals)
      rules.Refuse("rt_sigaction", EPERM, SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffffull, SIGCHLD));
    rules.Allow("clone", SCMP_A0(SCMP_CMP_MASKED_EQ, namespaces, 0));
    AllowAll(rules, kProcessesToo);
  } else {
    rules.Allow("rt_sigaction");
    rules.Allow("clone", SCMP_A0(SCMP_CMP_MASKED_EQ, namespaces | CLONE_THREAD, CLONE_THREAD));
    rules.Refuse("clone", EPERM, SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
    for (const char* name : kProcessesToo) rules.Refuse(name, EPERM);
  }
}

/// Memory that a program can write, it cannot run. Executable memory can only be mapped from files.
/// A file that a program can write is on a file system that forbids this.
void AddMemoryRules(Rules& rules, const FilterOptions& options) {
  AllowAll(rules, kMemory);
  if (options.interpreter) rules.Allow("madvise");
  for (const int advice : kAdvice) {
    if (options.interpreter) break;
    rules.Pretend("madvise",
                  SCMP_A2(SCMP_CMP_MASKED_EQ, 0xffffffffull, static_cast<uint64_t>(advice)));
  }
  if (options.machine_code) {
    rules.Allow("mmap");
    rules.Allow("mprotect");
    return;
  }
  constexpr uint64_t kBoth = PROT_EXEC | PROT_WRITE;
  constexpr uint64_t kOrigin = MAP_TYPE | MAP_ANONYMOUS;
  const auto executable = SCMP_A2(SCMP_CMP_MASKED_EQ, kBoth, PROT_EXEC);
  rules.Allow("mmap", SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
  rules.Allow("mmap", executable, SCMP_A3(SCMP_CMP_MASKED_EQ, kOrigin, MAP_PRIVATE));
  rules.Refuse("mmap", EACCES, SCMP_A2(SCMP_CMP_MASKED_EQ, kBoth, kBoth));
  for (const uint64_t origin :
       {MAP_PRIVATE | MAP_ANONYMOUS, MAP_SHARED, MAP_SHARED | MAP_ANONYMOUS}) {
    rules.Refuse("mmap", EACCES, executable, SCMP_A3(SCMP_CMP_MASKED_EQ, kOrigin, origin));
  }
  rules.Allow("mprotect", SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
  rules.Refuse("mprotect", EACCES, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, PROT_EXEC));
}

/// Locks succeed without being taken. A real lock would hold on the inode, which the host and other
/// programs share: the interpreter, a library, /dev/null. Among a program's own threads and files,
/// a lock that always succeeds acts like a real one, except for a second open of one file.
void AddDescriptorRules(Rules& rules) {
  for (const int command : kDescriptorCommands) {
    rules.Allow("fcntl",
                SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffull, static_cast<uint64_t>(command)));
  }
  for (const int command : kLockCommands) {
    rules.Pretend("fcntl",
                  SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffull, static_cast<uint64_t>(command)));
  }
  for (const int command : {F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY, F_SETPIPE_SZ}) {
    rules.Refuse("fcntl", EPERM,
                 SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffull, static_cast<uint64_t>(command)));
  }
  rules.Pretend("flock");
}

/// A socket pair has no use for addresses. Descriptors in messages count for the user, whom the
/// sandboxes of an ordinary user share: those of one program would take them from the others. The
/// filter cannot look into a message, so sendmsg is refused altogether.
void AddSocketRules(Rules& rules) {
  AllowAll(rules, kSocketPairs);
  rules.Allow("socketpair", SCMP_A0(SCMP_CMP_EQ, AF_UNIX));
  rules.Allow("sendto", SCMP_A4(SCMP_CMP_EQ, 0));
  rules.Refuse("sendto", EPERM, SCMP_A4(SCMP_CMP_NE, 0));
  rules.Refuse("sendmsg", EPERM);
  rules.Refuse("sendmmsg", EPERM);
  const auto level = SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffull, SOL_SOCKET);
  for (const int option : kSocketOptions) {
    rules.Allow("getsockopt", level,
                SCMP_A2(SCMP_CMP_MASKED_EQ, 0xffffffffull, static_cast<uint64_t>(option)));
  }
  rules.Refuse("getsockopt", EPERM, level, SCMP_A2(SCMP_CMP_MASKED_EQ, 0xffffffffull, kPeerPidFd));
}

void AddDeviceRules(Rules& rules) {
  const unsigned long harmless[] = {FIONREAD, FIONBIO, FIOCLEX,   FIONCLEX,
                                    FIOASYNC, TCGETS,  TIOCGWINSZ};
  for (const unsigned long request : harmless) {
    // The kernel takes the request as 32 bits, and libseccomp compares 64.
    rules.Allow("ioctl", SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffull, request));
  }
}

/// Refuses with EPERM, which tells a person more than ENOSYS about why a program failed.
void AddRefusals(Rules& rules) {
  for (const char* name :
       {"socket",   "connect",      "bind",         "listen",    "accept",      "accept4",
        "execveat", "ptrace",       "mount",        "umount2",   "pivot_root",  "chroot",
        "unshare",  "setns",        "keyctl",       "add_key",   "request_key", "bpf",
        "setuid",   "setgid",       "setresuid",    "setresgid", "setgroups",   "tkill",
        "reboot",   "memfd_create", "shmget",       "semget",    "msgget",      "mq_open",
        "shmat",    "personality",  "pkey_mprotect"}) {
    rules.Refuse(name, EPERM);
  }
}

}  // namespace

std::vector<sock_filter> BuildFilter(const FilterOptions& options) {
  Rules rules;
  AllowAll(rules, kFiles);
  for (const char* name : kFlushes) rules.Pretend(name);
  AddMemoryRules(rules, options);
  AllowAll(rules, kTime);
  AllowAll(rules, kProcess);
  AllowAll(rules, kWaiting);
  AddSocketRules(rules);
  rules.Allow("prlimit64", SCMP_A0(SCMP_CMP_EQ, 0));
  // Allows named pipes (os.mkfifo), and no other device.
  rules.Allow("mknod", SCMP_A1(SCMP_CMP_MASKED_EQ, S_IFMT, S_IFIFO));
  rules.Allow("mknodat", SCMP_A2(SCMP_CMP_MASKED_EQ, S_IFMT, S_IFIFO));
  // A program may lower its own priority (os.nice), and nothing can raise it.
  rules.Allow("setpriority", SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffffull, PRIO_PROCESS),
              SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffull, 0));
  for (const unsigned long option : {PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE, PR_SET_VMA}) {
    rules.Allow("prctl", SCMP_A0(SCMP_CMP_EQ, option));
  }
  AddProcessRules(rules, options);
  AddDescriptorRules(rules);
  AddDeviceRules(rules);
  AddRefusals(rules);
  if (options.interpreter) {
    rules.Allow("execve");
  } else {
    rules.Refuse("execve", EPERM);
  }
  return rules.Export();
}

}  // namespace evald::sandbox
