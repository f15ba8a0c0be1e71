#pragma once

#include <cstdint>

// The messages between the runner and the guest (the library inside the zygote, guest/) over the
// control socket. Both are built together and run on one host, so plain structs suffice.
//
//   runner  ->  zygote   "g"                     the id maps are written: go on
//   runner  ->  zygote   ZygoteConfig, filter    once, after the zygote's exec
//   zygote  ->  runner   ZygoteReady             once, when the interpreter is warm
//   runner  ->  zygote   ProgramRequest, source  for each program
//   zygote  ->  runner   ProgramReport           when nothing of the program is left

namespace evald::sandbox {

inline constexpr uint32_t kWireMagic = 0x65765305;
inline constexpr int kControlFd = 3;  ///< the zygote's end of the control socket
inline constexpr int kReportFd = 4;   ///< set-up failures; closed by a successful exec
inline constexpr int kGuestFd = 5;    ///< unsafe mode only: the guest library
inline constexpr int kProcFd = 6;     ///< the host's /proc, if it can be opened
inline constexpr uint32_t kNonceBytes = 16;
inline constexpr uint32_t kDetailBytes = 500;
/// Of the standard output of a program that failed: the first and the last of it, half each
inline constexpr uint32_t kOutputBytes = 2048;
inline constexpr uint32_t kStepBytes = 160;
inline constexpr uint64_t kSourceBytesMax = 64ull << 20;
inline constexpr uint32_t kFilterInstructionsMax = 4096;  ///< BPF_MAXINSNS

/// The wall limit is for programs that sleep. If a program works and other programs run at the same
/// time, it gets the limit again, up to this many limits in all. The condition: at its speed so
/// far, it would use up its CPU time within that time. Time in which a program waits for a
/// processor does not count, up to this many limits of real time. A program that runs alone on the
/// host gets the limit once.
inline constexpr uint32_t kWallWindowsMax = 4;

/// The limits of every program of one zygote.
struct ZygoteConfig {
  uint32_t magic;
  uint32_t namespaces;       ///< 0 in unsafe mode
  uint32_t filter_required;  ///< whether a program may run if the filter cannot be installed
  uint32_t program_uid;      ///< uid and gid inside the user namespace; 0: the zygote's
  uint32_t task_limit;       ///< RLIMIT_NPROC; 0: not set
  /// Whether programs may fork; CPU time is then summed over kProcFd
  uint32_t allow_processes;
  /// Whether programs may import modules that write memory (audit.cc)
  uint32_t allow_ctypes;
  uint64_t cpu_limit_us;         ///< watched by the zygote; RLIMIT_CPU is a little above it
  uint64_t memory_bytes;         ///< RLIMIT_AS
  uint64_t tmpfs_bytes;          ///< size of the tmpfs, RLIMIT_FSIZE
  uint32_t filter_instructions;  ///< number of struct sock_filter that follow
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
  uint32_t wall_windows;  ///< 1..kWallWindowsMax: at most this many times the limit
  uint8_t nonce[kNonceBytes];
};

struct ProgramReport {
  uint32_t magic;
  int32_t wait_status;     ///< of the program's first process, by waitpid; -1: never started
  uint32_t wall_exceeded;  ///< 1: ended by the wall limit
  /// 1: and not by waiting for a processor or a disk, so the load had no part in it
  uint32_t slept;
  int32_t setup_errno;  ///< not 0: the sandbox failed before the program began
  uint64_t cpu_us;      ///< user and system time of all processes of the program
  uint64_t wall_us;
  uint8_t record[kNonceBytes];  ///< the completion record: the nonce, or zeros
  uint32_t detail_bytes;
  /// "failed: ..." in the words of the program's interpreter; untrusted
  char detail[kDetailBytes];
  uint64_t output_bytes;  ///< of its whole output; untrusted, as `output` is
  char output[kOutputBytes];
  char setup_step[kStepBytes];
};

/// A set-up step that failed in the zygote before its exec. Sent on kReportFd.
struct SetupFailure {
  int32_t error_number;
  char step[kStepBytes];
};

}  // namespace evald::sandbox
