#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "metrics/sandbox/contained.h"
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
  Zygote(const Zygote&) = delete;
  Zygote& operator=(const Zygote&) = delete;

  /// Runs one program to its end. Throws Error(kInfrastructure) if the zygote does not answer or
  /// could not set up the program; this object is then unusable.
  ProgramReport Run(const ProgramRequest& request, const std::string& source);

  /// Whether programs run under the seccomp filter.
  bool seccomp() const { return seccomp_; }
  pid_t pid() const { return process_->pid(); }

 private:
  void SendConfig(const SandboxOptions& options, bool own_ids);
  void AwaitReady(const SandboxOptions& options);

  std::optional<Contained> process_;
  bool seccomp_ = false;
};

}  // namespace evald::sandbox
