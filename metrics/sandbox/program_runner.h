#pragma once

#include <memory>
#include <string>

#include "metrics/sandbox/host_turn.h"
#include "metrics/sandbox/interpreter.h"
#include "metrics/sandbox/program_box.h"
#include "metrics/sandbox/sandbox.h"

namespace evald::sandbox {

/// Limits on the compiler of a program, which are the same for all languages.
inline constexpr double kBuildCpuSeconds = 30;
inline constexpr double kBuildWallSeconds = 60;
inline constexpr uint64_t kBuildMemoryBytes = uint64_t{2} << 30;
inline constexpr uint64_t kBuildFileBytes = uint64_t{256} << 20;

/// Compiles programs and runs them, each in a sandbox of its own. One thread at a time.
class ProgramRunner {
 public:
  /// `interpreter` and `turns` must outlive this object and the programs that it makes.
  ProgramRunner(const SandboxOptions& options, const Interpreter& interpreter,
                const TurnFolder& turns);

  /// As CodeRunner::Build.
  std::unique_ptr<BuiltProgram> Build(const ProgramSources& sources, ProgramOutcome* outcome);

 private:
  const SandboxOptions options_;
  const Interpreter& interpreter_;
  const TurnFolder& turns_;
  ProgramBoxPlan plan_;
};

}  // namespace evald::sandbox
