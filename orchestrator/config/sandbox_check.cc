#include "orchestrator/config/sandbox_check.h"

#include "evald/error.h"

namespace evald {

void CheckSandbox(const SandboxOptions& options) {
  const ProgramOutcome outcome = TryProgram(options);
  if (outcome.status == ProgramStatus::kPassed) return;
  throw Error(ErrorKind::kInfrastructure,
              "the sandbox for programs of the model does not work: " + outcome.detail,
              "'evald doctor' says what is missing");
}

}  // namespace evald
