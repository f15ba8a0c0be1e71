#pragma once

#include <cstdint>

// What the runner and the guest (the library inside the zygote, guest/) say to each other over the
// control socket. Both are built together and run on one host, so plain structs suffice.
//
//   runner  ->  zygote   "g"                     the id maps are written: go on
//   runner  ->  zygote   ZygoteConfig, filter    once, after the zygote's exec
//   zygote  ->  runner   ZygoteReady             once, when the interpreter is warm
//   runner  ->  zygote   ProgramRequest, source  for each program
//   zygote  ->  runner   ProgramReport           when nothing of the program is left

namespace evald::sandbox {

inline constexpr uint32_t kWireMagic = 0x65765304;
inline constexpr int kControlFd = 3;  ///< the zygote's end of the control socket
inline constexpr int kReportFd = 4;   ///< set-up failures; closed by a successful exec
inline constexpr int kGuestFd = 5;    ///< unsafe mode only: the guest library
inline constexpr int kProcFd = 6;     ///< the host's /proc, where it can be opened
inline constexpr uint32_t kNonceBytes = 16;
inline constexpr uint32_t kDetailBytes = 500;
inline constexpr uint32_t kStepBytes = 160;
inline constexpr uint64_t kSourceBytesMax = 64ull << 20;
inline constexpr uint32_t kFilterInstructionsMax = 4096;  ///< BPF_MAXINSNS

/// The wall limit is for programs that sleep. While other programs run beside it, a program that
/// works gets the limit again: as long as, at its pace so far, its CPU time would decide within so
/// many limits in all. Time that a program waited for a processor does not count, up to so many
/// limits on the clock. Alone on the host a program gets the limit once.
inline constexpr uint32_t kWallWindowsMax = 4;

/// The limits of every program of one zygote.
struct ZygoteConfig {
  uint32_t magic;
  uint32_t namespaces;       ///< 0 in unsafe mode
  uint32_t filter_required;  ///< whether a program may run when the filter cannot be installed
  uint32_t program_uid;      ///< uid and gid inside the user namespace; 0: stays the zygote's
  uint32_t task_limit;       ///< RLIMIT_NPROC; 0: not set
  uint32_t allow_processes;  ///< whether programs may fork: CPU time is then summed over kProcFd
  uint32_t allow_ctypes;     ///< whether programs may import what writes memory (audit.cc)
  uint64_t cpu_limit_us;     ///< watched by the zygote; RLIMIT_CPU a little above it
  uint64_t memory_bytes;     ///< RLIMIT_AS
  uint64_t tmpfs_bytes;      ///< size of the tmpfs, RLIMIT_FSIZE
  uint32_t filter_instructions;  ///< struct sock_filter that follow
};

struct ZygoteReady {
  uint32_t magic;
  uint32_t seccomp;         ///< whether this kernel takes seccomp filters
  uint32_t sees_processes;  ///< whether kProcFd shows a program's processes
};

struct ProgramRequest {
  uint32_t magic;
  uint64_t source_bytes;
  uint64_t wall_limit_us;
  uint32_t wall_windows;  ///< 1..kWallWindowsMax: so many times the limit at most
  uint8_t nonce[kNonceBytes];
};

struct ProgramReport {
  uint32_t magic;
  int32_t wait_status;     ///< of the program's first process, as of waitpid; -1: never started
  uint32_t wall_exceeded;  ///< 1: ended by the wall limit
  uint32_t slept;  ///< 1: and not by waiting for a processor or a disk: the load had no part in it
  int32_t setup_errno;  ///< not 0: the sandbox failed before the program began
  uint64_t cpu_us;      ///< user and system time of all processes of the program
  uint64_t wall_us;
  uint8_t record[kNonceBytes];  ///< the completion record: the nonce, or zeros
  uint32_t detail_bytes;
  char detail[kDetailBytes];  ///< "failed: ..." as the program's interpreter put it; untrusted
  char setup_step[kStepBytes];
};

/// A step of the set-up that failed in the zygote before its exec, on kReportFd.
struct SetupFailure {
  int32_t error_number;
  char step[kStepBytes];
};

}  // namespace evald::sandbox
