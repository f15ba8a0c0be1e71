#include <fmt/format.h>

#include "base/print.h"
#include "base/text.h"
#include "orchestrator/cli/cli.h"
#include "orchestrator/cli/harness_command.h"

namespace evald::cli {
namespace {

ExitStatus Translate(const Common& common, const std::vector<std::string>& words) {
  const HarnessTranslation found = TranslateHarness(words);
  if (common.json) {
    PrintJson({{"yaml", found.yaml}, {"notes", found.notes}});
    return ExitStatus::kDone;
  }
  for (const std::string& line : Split(Trim(found.yaml), '\n')) Print("{}\n", line);
  for (const std::string& note : found.notes) Print("# {}\n", note);
  return ExitStatus::kDone;
}

}  // namespace

void AddTranslate(Command app, const Common* common, Action* action) {
  auto words = std::make_shared<std::vector<std::string>>();
  Command command = app.AddCommand(
      "translate", "Print the eval.yaml for a command line of lm-evaluation-harness");
  command.TakesRest(words.get());
  command.Footer(
      "\nExample:\n  evald translate lm_eval --model hf --model_args "
      "pretrained=checkpoints/step-600 "
      "--tasks gsm8k --num_fewshot 5 > eval.yaml");
  command.OnChosen([=] { *action = [=] { return Translate(*common, *words); }; });
}

}  // namespace evald::cli
