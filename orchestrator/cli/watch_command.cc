#include "orchestrator/cli/cli.h"
#include "orchestrator/cli/client.h"
#include "orchestrator/cli/follow.h"
#include "orchestrator/cli/run_text.h"

namespace evald::cli {
namespace {

struct Flags {
  std::string run;
  ClientFlags client;
};

ExitStatus Watch(const Common& common, const Flags& flags) {
  Client client(ReadClientFlags(flags.client));
  const Json run = FollowRun(&client, flags.run, common, true);
  return common.json ? StatusOfRun(run) : PrintRun(run, common);
}

}  // namespace

void AddWatch(CLI::App* app, const Common* common, Action* action) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app->add_subcommand("watch", "Follow a service's run to its end");
  command->add_option("run", flags->run, "The run's id")->required();
  AddClientFlags(command, &flags->client);
  command->footer(
      "\nThe exit status is the run's. A connection that breaks is made again and goes on where it was.\n"
      "Ctrl-C ends the watching, not the run. With --json, each event is a line.\n\n"
      "Examples:\n  evald watch RUN\n  evald watch RUN --json | jq .data");
  command->callback([=] { *action = [=] { return Watch(*common, *flags); }; });
}

}  // namespace evald::cli
