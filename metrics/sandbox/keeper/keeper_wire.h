#pragma once

#include <cstdint>

#include "metrics/sandbox/wire.h"

// The messages between the runner and the keeper (docs/sandbox.md, "Programs in other languages")
// over the control socket. Both are built together and run on one host, so plain structs suffice.
//
//   runner  ->  keeper   "g"                      the id maps are written: go on
//   runner  ->  keeper   KeeperConfig, filters    once, after the keeper's exec
//   keeper  ->  runner   KeeperReady              once
//   runner  ->  keeper   KeeperRequest, name, text          a file of the program
//   runner  ->  keeper   KeeperRequest, words, input        a step: a compiler, or the program
//   keeper  ->  runner   KeeperReport, output, errors       for each step

namespace evald::sandbox {

inline constexpr uint32_t kKeeperMagic = 0x65766b01;
inline constexpr uint32_t kStepErrorBytes = 8 << 10;  ///< kept of what a step writes to its errors
inline constexpr uint64_t kKeeperTextBytesMax = 256ull << 20;
inline constexpr uint32_t kKeeperWordsMax = 256;

struct KeeperConfig {
  uint32_t magic;
  uint32_t namespaces;       ///< 0 in unsafe mode
  uint32_t program_uid;      ///< uid and gid inside the user namespace; 0: the keeper's
  uint32_t filter_required;  ///< whether a step may run if the filter cannot be installed
  uint32_t instructions[2];  ///< numbers of struct sock_filter that follow: without, with processes
};

struct KeeperReady {
  uint32_t magic;
  uint32_t has_proc;  ///< whether programs see a /proc of their own processes
};

enum class KeeperRequestKind : uint32_t { kFile, kStep };

/// What ends a step.
struct StepLimits {
  uint64_t cpu_us;         ///< of all its processes together
  uint64_t wall_us;        ///< on the program's own clock (guest/wall_clock.h)
  uint64_t address_bytes;  ///< RLIMIT_AS
  uint64_t memory_bytes;   ///< RLIMIT_DATA of each process; resident memory of all together
  uint64_t file_bytes;     ///< RLIMIT_FSIZE
  uint64_t output_bytes;   ///< what is kept of its output
  uint64_t open_files;
  uint64_t tasks;           ///< processes and threads; 0: not set
  uint32_t wall_windows;    ///< 1..kWallWindowsMax
  uint32_t processes;       ///< whether new processes are allowed
  uint32_t ends_at_output;  ///< whether more output than is kept ends the step
  uint32_t errors_too;  ///< whether output is also kept as errors: some compilers complain there
};

struct KeeperRequest {
  uint32_t magic;
  KeeperRequestKind kind;
  uint32_t words;        ///< number of arguments, which the environment follows
  uint32_t words_bytes;  ///< of a file's name, or of arguments and environment, each with its NUL
  uint64_t text_bytes;   ///< of a file, or of the input
  StepLimits limits;
};

enum class StepEnd : uint32_t {
  kItself,
  kCpu,
  kWall,
  kMemory,  ///< its processes together had more than memory_bytes
  kOutput,  ///< it wrote more than output_bytes
};

struct KeeperReport {
  uint32_t magic;
  StepEnd end;
  int32_t wait_status;
  uint32_t slept;       ///< with kWall: the load of the machine had no part in it
  int32_t setup_errno;  ///< not 0: the step did not start
  uint32_t is_exec;     ///< with setup_errno: its program could not be executed
  uint64_t cpu_us;
  uint64_t output_bytes;  ///< that follow
  uint64_t error_bytes;   ///< that follow the output: the last ones
  char setup_step[kStepBytes];
};

}  // namespace evald::sandbox
