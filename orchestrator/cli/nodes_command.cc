#include <fmt/format.h>

#include "base/print.h"
#include "base/text.h"
#include "http_server/target.h"
#include "orchestrator/cli/cli.h"
#include "orchestrator/cli/client.h"
#include "orchestrator/cli/launcher_text.h"
#include "orchestrator/cli/terminal.h"

namespace evald::cli {
namespace {

struct NodesFlags {
  ClientFlags client;
  bool releases = false;
  std::string node;
  std::string launcher;
};

ExitStatus ListNodes(const Common& common, const NodesFlags& flags) {
  Client client(ReadClientFlags(flags.client));
  const Json found = client.Get("/v1/launchers");
  if (common.json) {
    PrintJson(found);
    return ExitStatus::kDone;
  }
  const Json& launchers = found.at("launchers");
  if (launchers.empty()) Print("No launchers: the service's configuration names none.\n");
  for (const std::string& line : LauncherTables(launchers, OutputColumns(), !IsTerminal()))
    Print("{}\n", line);
  return ExitStatus::kDone;
}

// The launchers that are to ask for the node again.
std::vector<std::string> LaunchersToRelease(Client* client, const NodesFlags& flags) {
  if (!flags.launcher.empty()) return {flags.launcher};
  std::vector<std::string> names =
      ExcludedBy(client->Get("/v1/launchers").at("launchers"), flags.node);
  if (names.empty()) {
    throw Error(ErrorKind::kUsage, fmt::format("no launcher excludes node '{}'", flags.node),
                "`evald nodes` names the excluded nodes");
  }
  return names;
}

ExitStatus ReleaseNodes(const Common& common, const NodesFlags& flags) {
  Client client(ReadClientFlags(flags.client));
  Json released = Json::array();
  for (const std::string& launcher : LaunchersToRelease(&client, flags)) {
    released.push_back(
        client.Post(fmt::format("/v1/launchers/{}/nodes/{}/release", http::PercentEncode(launcher),
                                http::PercentEncode(flags.node))));
    if (!common.json) Print("{} asks for node {} again\n", launcher, flags.node);
  }
  if (common.json) PrintJson({{"launchers", released}});
  return ExitStatus::kDone;
}

}  // namespace

void AddNodes(Command app, const Common* common, Action* action) {
  auto flags = std::make_shared<NodesFlags>();
  Command command =
      app.AddCommand("nodes", "Show the nodes that a service's launchers bring, and their jobs");
  AddClientFlags(command, &flags->client);
  command.Footer(
      "\nWithout a command, the launchers and their jobs are listed.\n\nExamples:\n  evald nodes\n"
      "  evald nodes --json\n  evald nodes release n7");
  Command release = command.AddCommand("release", "Ask again for a node that has failed");
  release.AddOption("node", &flags->node, "The node, as the launcher calls it").Required();
  release
      .AddOption("--launcher", &flags->launcher,
                 "Only of this launcher; by default of each that excludes the node")
      .Metavar("NAME");
  AddClientFlags(release, &flags->client);
  release.Footer(
      "\nExamples:\n  evald nodes release n7\n  evald nodes release n7 --launcher slurm");
  // The callback of `nodes` is called for `nodes release`, too.
  release.OnChosen([=] {
    flags->releases = true;
    *action = [=] { return ReleaseNodes(*common, *flags); };
  });
  command.OnChosen([=] {
    if (!flags->releases) *action = [=] { return ListNodes(*common, *flags); };
  });
}

}  // namespace evald::cli
