#include <fmt/format.h>

#include "base/file.h"
#include "base/jsonl.h"
#include "base/print.h"
#include "orchestrator/cli/cli.h"
#include "orchestrator/config/eval_config.h"
#include "orchestrator/state/prior_store.h"
#include "orchestrator/state/run_store.h"

namespace evald::cli {
namespace {

struct PriorsFlags {
  std::string state_dir;
  std::string export_to;
  std::string import_from;
};

void PrintTable(const std::vector<TaskCost>& costs) {
  if (costs.empty()) return Print("No run has measured anything yet.\n");
  Print("{:<28} {:>9} {:>12} {:>9} {:>9} {:>12}  {}\n", "task", "documents", "device ms",
        "tokens in", "out", "score ms", "device");
  for (const TaskCost& cost : costs) {
    const auto documents = static_cast<double>(cost.documents);
    const double scored =
        cost.scored > 0 ? 1e3 * cost.score_s / static_cast<double>(cost.scored) : 0;
    Print("{:<28} {:>9} {:>12.3f} {:>9.1f} {:>9.1f} {:>12.3f}  {}\n", cost.task, cost.documents,
          1e3 * cost.device_s / documents, cost.tokens_in / documents, cost.tokens_out / documents,
          scored, cost.place.device);
  }
  Print("Per document; each line is a run, the newest first.\n");
}

ExitStatus Priors(const Common& common, const PriorsFlags& flags) {
  RunStore store(flags.state_dir.empty() ? DefaultStateDir()
                                         : std::filesystem::path(flags.state_dir));
  Database& database = store.database();
  if (!flags.import_from.empty()) {
    const auto costs = prior_store::FromJson(
        ParseJson(ReadFile(flags.import_from), flags.import_from), flags.import_from);
    database.Transaction([&] {
      for (const TaskCost& cost : costs) prior_store::Add(database, cost);
    });
    if (!common.json)
      Print("{} runs of tasks were read from {}\n", costs.size(), flags.import_from);
  }
  const std::vector<TaskCost> all = prior_store::All(database);
  if (!flags.export_to.empty()) {
    WriteOutput(flags.export_to, prior_store::ToJson(all).dump(1) + "\n");
    if (!common.json) Print("{} runs of tasks were written to {}\n", all.size(), flags.export_to);
  }
  if (common.json) {
    PrintJson(prior_store::ToJson(all));
  } else if (flags.export_to.empty() && flags.import_from.empty()) {
    PrintTable(all);
  }
  return ExitStatus::kDone;
}

}  // namespace

void AddPriors(Command app, const Common* common, Action* action) {
  auto flags = std::make_shared<PriorsFlags>();
  Command command = app.AddCommand(
      "priors", "Show, export or import what runs have cost, which later ones are planned from");
  command.AddOption("--state-dir", &flags->state_dir, "The folder of the database (state_dir)")
      .Metavar("DIR");
  command.AddOption("--export", &flags->export_to, "Write all to this file, as JSON")
      .Metavar("FILE");
  command.AddOption("--import", &flags->import_from, "Add what another machine exported")
      .Metavar("FILE")
      .ExistingFile();
  command.Footer(
      "\nExamples:\n  evald priors\n  evald priors --export priors.json\n  evald priors --import "
      "priors.json");
  command.OnChosen([=] { *action = [=] { return Priors(*common, *flags); }; });
}

}  // namespace evald::cli
