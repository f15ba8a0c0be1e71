#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "evald/json.h"

namespace evald {

/// Limits on one untrusted program.
struct SandboxOptions {
  bool unsafe = false;  ///< run without isolation; only if a person asks for it explicitly
  std::string python = "/usr/bin/python3";
  double cpu_seconds = 3.0;            ///< CPU time, including tests: the timeout of HF code_eval
  double wall_seconds = 15.0;          ///< for a program that sleeps or polls
  uint64_t memory_bytes = 1ull << 30;  ///< address space
  uint64_t tmpfs_bytes = 16ull << 20;
  uint64_t output_bytes = 64 << 10;
  int processes = 64;  ///< processes and threads of one program (RLIMIT_NPROC)
  /// Whether fork is allowed; code_eval's guard forbids it, and so do we by default
  bool allow_processes = false;
  /// Whether ctypes and similar modules, which write to any address, can be imported
  bool allow_ctypes = false;
};

enum class ProgramStatus {
  kPassed,   ///< ran to its end and left the completion record
  kFailed,   ///< an exception, an early exit, no completion record
  kTimeout,  ///< CPU or wall limit
  kKilled,   ///< ended by a signal: memory, seccomp, ...
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
  /// Executes `source` like HF code_eval (exec in a fresh namespace). Throws Error(kInfrastructure)
  /// if the sandbox itself fails, which is never a program's failure.
  virtual ProgramOutcome Run(const std::string& source) = 0;
  /// How the program is isolated, for every result: {"isolation": "namespaces", ...}
  virtual Json Isolation() const = 0;
};

/// Throws Error(kInfrastructure) that names what this host lacks (see ProbeSandbox).
std::unique_ptr<CodeRunner> MakeCodeRunner(const SandboxOptions& options);

/// One line of `evald doctor`.
struct SandboxProbe {
  std::string what;  ///< "user namespaces"
  bool available = false;
  std::string detail;  ///< the finding, and the remedy if it is missing
};
std::vector<SandboxProbe> ProbeSandbox(const SandboxOptions& options);

}  // namespace evald
