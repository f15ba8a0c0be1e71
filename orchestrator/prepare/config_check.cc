#include "orchestrator/prepare/config_check.h"

#include "base/problems.h"
#include "orchestrator/config/engine_check.h"
#include "orchestrator/config/judge_section.h"
#include "orchestrator/config/sandbox_check.h"
#include "orchestrator/prepare/preparer.h"

namespace evald {

Json CheckConfig(const EvalConfig& config, const std::filesystem::path& binaries,
                 PreparationInput::Work work) {
  ProblemList problems;
  problems.Try([&] { CheckEngineSettings(config, binaries); });
  problems.Try([&] { CheckJudgeKeys(config); });
  PreparationInput input = InputOf(config, work);
  input.baseline_complete = true;
  Json found;
  problems.Try([&] { found = Preparer(binaries).Ask(input); });
  problems.ThrowIfAny();
  if (config.programs_here && found.at("programs") == true) CheckSandbox(config.metrics.sandbox);
  return found;
}

}  // namespace evald
