#pragma once

#include <sys/types.h>

#include <string>

#include "base/file.h"
#include "metrics/sandbox/interpreter.h"
#include "metrics/sandbox/sandbox.h"
#include "metrics/sandbox/wire.h"

namespace evald::sandbox {

/// A warm interpreter in its sandbox, and the connection to it. It ends, with everything in it,
/// when this object is destroyed or its process dies: the zygote watches the control socket and is
/// the first process of its pid namespace. One thread at a time.
class Zygote {
 public:
  /// Throws Error(kInfrastructure) that names the failed step and the remedy.
  Zygote(const SandboxOptions& options, const Interpreter& interpreter);
  ~Zygote();
  Zygote(const Zygote&) = delete;
  Zygote& operator=(const Zygote&) = delete;

  /// Runs one program to its end. Throws Error(kInfrastructure) if the zygote does not answer or
  /// could not set up the program; this object is then unusable.
  ProgramReport Run(const ProgramRequest& request, const std::string& source);

  /// Whether programs run under the seccomp filter.
  bool seccomp() const { return seccomp_; }
  pid_t pid() const { return pid_; }

 private:
  void Start(const SandboxOptions& options, const Interpreter& interpreter);
  void AwaitExec(int report);
  void SendConfig(const SandboxOptions& options, bool own_ids);
  void AwaitReady(const SandboxOptions& options);
  void Stop();
  [[noreturn]] void ThrowDead(const std::string& doing);

  pid_t pid_ = -1;
  UniqueFd control_;
  UniqueFd errors_;  ///< the zygote's standard error
  bool seccomp_ = false;
};

/// The remedy for a failed step of setting up a sandbox.
std::string SetupRemedy(int error_number);

}  // namespace evald::sandbox
