#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "evald/json.h"

namespace evald {

/// Limits on one untrusted program.
struct SandboxOptions {
  bool unsafe = false;  ///< run without isolation; only on a person's explicit word
  std::string python = "/usr/bin/python3";
  double cpu_seconds = 3.0;            ///< CPU time, tests included: HF code_eval's timeout
  double wall_seconds = 15.0;          ///< for a program that sleeps or polls
  uint64_t memory_bytes = 1ull << 30;  ///< address space
  uint64_t tmpfs_bytes = 16ull << 20;
  uint64_t output_bytes = 64 << 10;
  int processes = 64;            ///< processes and threads of one program (RLIMIT_NPROC)
  bool allow_processes = false;  ///< fork at all; code_eval's guard forbids it, as we do
  bool allow_ctypes = false;     ///< import ctypes and its like, which write to any address
};

enum class ProgramStatus {
  kPassed,   ///< ran to its end and left the completion record
  kFailed,   ///< an exception, an early exit, no completion record
  kTimeout,  ///< CPU or wall limit
  kKilled,   ///< by a signal: memory, seccomp, ...
};

struct ProgramOutcome {
  ProgramStatus status = ProgramStatus::kFailed;
  std::string
      detail;  ///< "passed", "failed: AssertionError: ...", "timed out" ...; at most 500 bytes
  double cpu_seconds = 0;
};

/// Runs Python programs in isolation, one after the other, from a warm forked interpreter.
class CodeRunner {
 public:
  virtual ~CodeRunner() = default;
  /// Executes `source` as HF code_eval does (exec in a fresh namespace). Throws
  /// Error(kInfrastructure) when the sandbox itself fails: that is never a program's failure.
  virtual ProgramOutcome Run(const std::string& source) = 0;
  /// What isolates the program: goes into every result. {"isolation": "namespaces", ...}
  virtual Json Isolation() const = 0;
};

/// Throws Error(kInfrastructure) that names what is missing on this host (see ProbeSandbox).
std::unique_ptr<CodeRunner> MakeCodeRunner(const SandboxOptions& options);

/// One line of `evald doctor`.
struct SandboxProbe {
  std::string what;  ///< "user namespaces"
  bool available = false;
  std::string detail;  ///< what was found, and the remedy when it is missing
};
std::vector<SandboxProbe> ProbeSandbox(const SandboxOptions& options);

}  // namespace evald
