#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/jsonl.h"
#include "base/print.h"
#include "base/text.h"
#include "orchestrator/cli/cli.h"
#include "orchestrator/cli/terminal.h"
#include "orchestrator/config/eval_config.h"
#include "orchestrator/report/text_table.h"
#include "orchestrator/state/prior_store.h"
#include "orchestrator/state/run_store.h"

namespace evald::cli {
namespace {

struct PriorsFlags {
  std::string state_dir;
  std::string export_to;
  std::string import_from;
  bool all = false;
};

std::string DayOf(double seconds) {
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

// What all rows of one table have in common.
std::string PlaceOf(const TaskCost& cost) {
  const CostPlace& place = cost.place;
  std::string model = place.model.empty() ? "any model" : "model " + place.model.substr(0, 12);
  if (place.model_bytes > 0)
    model += fmt::format(" ({})", HumanBytes(static_cast<uint64_t>(place.model_bytes)));
  return fmt::format("{}; {}", place.device, model);
}

TextRow RowOf(const TaskCost& cost) {
  const auto documents = static_cast<double>(std::max<int64_t>(cost.documents, 1));
  const double scored = cost.scored > 0 ? 1e3 * cost.score_s / static_cast<double>(cost.scored) : 0;
  return {cost.task,
          DayOf(cost.ended),
          std::to_string(cost.documents),
          fmt::format("{:.3f}", 1e3 * cost.device_s / documents),
          fmt::format("{:.1f}", cost.tokens_in / documents),
          fmt::format("{:.1f}", cost.tokens_out / documents),
          fmt::format("{:.3f}", scored)};
}

// A table for each engine and model. Without `all`, each task has the row of its newest run.
void PrintTables(const std::vector<TaskCost>& costs, bool all) {
  if (costs.empty()) return Print("No run has measured anything yet.\n");
  std::vector<std::string> places;
  std::map<std::string, std::vector<TextRow>> tables;
  std::set<std::pair<std::string, std::string>> seen;
  size_t older = 0;
  for (const TaskCost& cost : costs) {
    const std::string place = PlaceOf(cost);
    const bool first = seen.emplace(place, cost.task).second;
    older += first ? 0 : 1;
    if (!first && !all) continue;
    const auto [table, fresh] = tables.try_emplace(place);
    if (fresh) {
      places.push_back(place);
      table->second = {{"task", "day", "documents", "device ms", "tokens in", "out", "score ms"}};
    }
    table->second.push_back(RowOf(cost));
  }
  for (const std::string& place : places) {
    for (const std::string& line : Wrapped(place, OutputColumns(), 2)) Print("{}\n", line);
    PrintLines(TextTable(tables[place], {.right = {false, false, true, true, true, true, true},
                                         .columns = OutputColumns()}));
    Print("\n");
  }
  Print("Milliseconds and tokens are those of a document. The hash of its config.json\n");
  Print("names the model. ");
  if (all) return Print("Each row is a run, the newest first.\n");
  Print("Each row is the newest run of a task{}.\n",
        older > 0 ? fmt::format("; --all shows {} older", older) : "");
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
    PrintTables(all, flags.all);
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
  command.AddFlag("--all", &flags->all, "Show older runs of a task, too");
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
