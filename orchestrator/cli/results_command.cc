#include <fmt/format.h>

#include "base/print.h"
#include "orchestrator/cli/cli.h"
#include "orchestrator/cli/client.h"
#include "orchestrator/cli/run_text.h"
#include "orchestrator/report/results.h"

namespace evald::cli {
namespace {

struct ResultsFlags {
  std::string run;
  ClientFlags client;
};

ExitStatus Results(const Common& common, const ResultsFlags& flags) {
  Client client(ReadClientFlags(flags.client));
  const Json results = client.Get(RunPath(flags.run) + "/results");
  if (common.json) {
    PrintJson(results);
  } else {
    PrintLines(ResultsTable(results));
  }
  return ExitStatus::kDone;
}

}  // namespace

void AddResults(Command app, const Common* common, Action* action) {
  auto flags = std::make_shared<ResultsFlags>();
  Command command = app.AddCommand("results", "Show the results of a service's run");
  command.AddOption("run", &flags->run, "The run's id").Required();
  AddClientFlags(command, &flags->client);
  command.Footer("\nExamples:\n  evald results RUN\n  evald results RUN --json > results.json");
  command.OnChosen([=] { *action = [=] { return Results(*common, *flags); }; });
}

}  // namespace evald::cli
