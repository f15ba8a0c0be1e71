#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "base/text.h"
#include "evald/error.h"
#include "http_server/target.h"
#include "orchestrator/cli/cli.h"
#include "orchestrator/cli/client.h"
#include "orchestrator/cli/run_text.h"

namespace evald::cli {
namespace {

struct LogsFlags {
  std::string log;
  uint64_t bytes = 65536;
  ClientFlags client;
};

// Throws Error(kUsage) if `log` names a run: a folder of this host, or a run of the service.
void CheckIsNoRun(Client* client, const std::string& log) {
  const std::filesystem::path folder = std::filesystem::path(log) / "logs";
  std::error_code error;
  if (std::filesystem::is_directory(folder, error)) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("{}: this is a run's folder; 'evald logs' shows the logs of a service", log),
        fmt::format("the logs of a run that 'evald run' made lie in {}", folder.string()));
  }
  if (log.ends_with(".log")) return;
  try {
    client->Get(RunPath(log));
  } catch (const Error&) {
    return;
  }
  throw Error(ErrorKind::kUsage, fmt::format("{}: '{}' is a run, not a log", client->server(), log),
              fmt::format("'evald status {}' tells of the run; logs are of the service's "
                          "processes, which work for all runs: "
                          "'evald logs' lists them",
                          log));
}

ExitStatus Logs(const Common& common, const LogsFlags& flags) {
  Client client(ReadClientFlags(flags.client));
  if (flags.log.empty()) {
    const Json found = client.Get("/v1/logs");
    if (common.json) PrintJson(found);
    for (const Json& log : found.at("logs")) {
      if (!common.json)
        fmt::print("{:>10}  {}\n", HumanBytes(log.at("bytes").get<uint64_t>()),
                   log.at("log").get<std::string>());
    }
    return ExitStatus::kDone;
  }
  CheckIsNoRun(&client, flags.log);
  const std::string text = client.GetText(
      fmt::format("/v1/logs/{}?bytes={}", http::PercentEncode(flags.log), flags.bytes));
  if (common.json) {
    PrintJson({{"log", flags.log}, {"text", text}});
  } else {
    fmt::print("{}", ::isatty(STDOUT_FILENO) == 1 ? ForTerminal(text, true) : text);
  }
  return ExitStatus::kDone;
}

}  // namespace

void AddLogs(Command app, const Common* common, Action* action) {
  auto flags = std::make_shared<LogsFlags>();
  Command command =
      app.AddCommand("logs", "Show the logs of a service's worker and metric processes");
  command.AddOption("log", &flags->log, "The name of one; without it, all names");
  command.AddOption("--bytes", &flags->bytes, "How much of its end").Within(1, 1 << 20);
  AddClientFlags(command, &flags->client);
  command.Footer("\nExamples:\n  evald logs\n  evald logs worker-1.log");
  command.OnChosen([=] { *action = [=] { return Logs(*common, *flags); }; });
}

}  // namespace evald::cli
