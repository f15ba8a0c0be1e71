#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
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
  /// If it did not pass: the beginning and the end of its standard output, as far as that was kept
  /// (ShownOutput). A Python function that is ended at a limit leaves none.
  std::string output = {};
};

/// A file of a program. The path is relative, without "..".
struct SourceFile {
  std::string path;  ///< "": the name that the language gives a program of one file
  std::string text;
};

/// A program in any language.
struct ProgramSources {
  std::string language;  ///< a name of FindLanguage (language.h)
  std::vector<SourceFile> files;
  double cpu_seconds = 0;  ///< limit of each run; 0: the sandbox's
};

/// A program that is compiled and can be run, in a sandbox of its own that ends with this object.
class BuiltProgram {
 public:
  virtual ~BuiltProgram() = default;

  /// What a run gives.
  struct RunResult {
    ProgramOutcome outcome;  ///< passed: ended by itself with exit status 0
    std::string output;      ///< bytes, at most as many as were asked for
  };
  /// Runs the program once, in the folder where it was compiled. More output than
  /// `output_bytes_max` ends the program, as failed, if `ends_at_output`; else the rest is dropped.
  /// Throws like CodeRunner::Run.
  virtual RunResult Run(std::string_view input, uint64_t output_bytes_max, bool ends_at_output) = 0;
};

/// Runs programs in isolation, one after the other: Python functions from a warm forked
/// interpreter, and whole programs in any language.
class CodeRunner {
 public:
  virtual ~CodeRunner() = default;
  /// Executes `source` like HF code_eval (exec in a fresh namespace). Throws Error(kInfrastructure)
  /// if the sandbox itself fails, which is never a program's failure.
  virtual ProgramOutcome Run(const std::string& source) = 0;
  /// Compiles a program. Null if it does not compile, with the outcome that says why. Throws
  /// Error(kInput) for an unknown language, a bad name of a file, or a missing compiler, with the
  /// line that installs it; and Error(kInfrastructure) like Run.
  virtual std::unique_ptr<BuiltProgram> Build(const ProgramSources& sources,
                                              ProgramOutcome* outcome) = 0;
  /// How the program is isolated, for every result: {"isolation": "namespaces", ...}
  virtual Json Isolation() const = 0;
};

/// Throws Error(kInfrastructure) that names what this host lacks (see ProbeSandbox).
std::unique_ptr<CodeRunner> MakeCodeRunner(const SandboxOptions& options);

/// The outcome of a small program that passes wherever the sandbox works. Throws like
/// MakeCodeRunner.
ProgramOutcome TryProgram(const SandboxOptions& options);

/// One line of `evald doctor`.
struct SandboxProbe {
  std::string what;  ///< "user namespaces"
  bool available = false;
  std::string detail;  ///< the finding, and the remedy if it is missing
};
std::vector<SandboxProbe> ProbeSandbox(const SandboxOptions& options);

}  // namespace evald
