#include <fmt/format.h>

#include "base/print.h"
#include "orchestrator/cli/cli.h"
#include "orchestrator/cli/client.h"
#include "orchestrator/cli/run_text.h"

namespace evald::cli {
namespace {

struct CancelFlags {
  std::vector<std::string> runs;
  ClientFlags client;
};

ExitStatus Cancel(const Common& common, const CancelFlags& flags) {
  Client client(ReadClientFlags(flags.client));
  Json cancelled = Json::array();
  for (const std::string& run : flags.runs) {
    cancelled.push_back(client.Post(RunPath(run) + "/cancel"));
    if (!common.json) Print("{}  {}\n", run, cancelled.back().at("state").get<std::string>());
  }
  if (common.json) PrintJson({{"runs", cancelled}});
  return ExitStatus::kDone;
}

}  // namespace

void AddCancel(Command app, const Common* common, Action* action) {
  auto flags = std::make_shared<CancelFlags>();
  Command command = app.AddCommand("cancel", "End runs of a service; what they computed is kept");
  command.AddOption("run", &flags->runs, "Ids of runs").Required();
  AddClientFlags(command, &flags->client);
  command.Footer("\nExample:\n  evald cancel RUN");
  command.OnChosen([=] { *action = [=] { return Cancel(*common, *flags); }; });
}

}  // namespace evald::cli
