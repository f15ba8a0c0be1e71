#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "base/print.h"
#include "orchestrator/cli/cli.h"
#include "orchestrator/cli/client.h"
#include "orchestrator/cli/launcher_text.h"
#include "orchestrator/cli/run_text.h"
#include "orchestrator/cli/terminal.h"
#include "orchestrator/report/text_table.h"

namespace evald::cli {
namespace {

struct StatusFlags {
  std::string run;
  bool once = false;
  bool all = false;
  int limit = 20;
  ClientFlags client;
};

// What there is to say of the fleet: devices that are set aside, and the nodes of launchers.
std::vector<std::string> FetchFleetLines(Client* client, const StatusFlags& flags) {
  if (!flags.run.empty()) return {};
  const auto list = [&](const std::string& name) {
    const Json found = client->Get("/v1/" + name);
    return found.is_object() ? found.value(name, Json::array()) : Json::array();
  };
  std::vector<std::string> lines = SetAsideLines(list("hosts"));
  for (std::string& line : LauncherLines(list("launchers"))) lines.push_back(std::move(line));
  return lines;
}

Json Fetch(Client* client, const StatusFlags& flags) {
  return flags.run.empty() ? client->Get(fmt::format("/v1/runs?limit={}", flags.limit))
                           : client->Get(RunPath(flags.run));
}

std::vector<std::string> Lines(const Json& found, const std::vector<std::string>& fleet,
                               const StatusFlags& flags) {
  const size_t columns = OutputColumns();
  const bool whole_words = !IsTerminal();
  if (!flags.run.empty())
    return RunDetails(found, {.columns = columns, .all = flags.all, .whole_words = whole_words});
  std::vector<std::string> lines = {"No runs yet."};
  if (!found.at("runs").empty()) lines = RunTable(found.at("runs"), columns);
  for (const std::string& said : fleet) {
    for (std::string& line : Wrapped(said, columns, 2, whole_words))
      lines.push_back(std::move(line));
  }
  return lines;
}

// Redraws in place until Ctrl-C, or until the one run that is shown is over.
void Live(Client* client, const StatusFlags& flags) {
  for (size_t drawn = 0;;) {
    const Json found = Fetch(client, flags);
    std::vector<std::string> lines = Lines(found, FetchFleetLines(client, flags), flags);
    const bool over = !flags.run.empty() && IsOver(found.at("state").get<std::string>());
    // What is redrawn must fit; the last lines may pass by.
    const size_t rows = OutputRows();
    if (!over && lines.size() + 1 > rows) lines.resize(std::max<size_t>(1, rows - 1));
    std::string screen = drawn == 0 ? "" : fmt::format("\x1b[{}A\x1b[J", drawn);
    for (const std::string& line : lines) screen += line + "\n";
    fmt::print("{}", screen);
    std::fflush(stdout);
    drawn = lines.size();
    if (over) return;
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

ExitStatus Status(const Common& common, const StatusFlags& flags) {
  Client client(ReadClientFlags(flags.client));
  if (!common.json && !flags.once && IsTerminal()) {
    Live(&client, flags);
    return ExitStatus::kDone;
  }
  const Json found = Fetch(&client, flags);
  if (common.json) {
    PrintJson(found);
  } else {
    for (const std::string& line : Lines(found, FetchFleetLines(&client, flags), flags))
      Print("{}\n", line);
  }
  return ExitStatus::kDone;
}

}  // namespace

void AddStatus(Command app, const Common* common, Action* action) {
  auto flags = std::make_shared<StatusFlags>();
  Command command = app.AddCommand("status", "Show a service's runs; a live table on a terminal");
  command.AddOption("run", &flags->run, "Only this one, in detail");
  command.AddFlag("--once", &flags->once, "Show it once and end");
  command.AddFlag("--all", &flags->all, "With a run: each task of a group");
  command.AddOption("--limit", &flags->limit, "How many of the newest runs").Within(1, 200);
  AddClientFlags(command, &flags->client);
  command.Footer(
      "\nExamples:\n  evald status\n  evald status --once --server https://eval.lan:8642\n  evald "
      "status RUN --json");
  command.OnChosen([=] { *action = [=] { return Status(*common, *flags); }; });
}

}  // namespace evald::cli
