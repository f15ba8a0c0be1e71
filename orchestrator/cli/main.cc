#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string_view>

#include "base/jsonl.h"
#include "base/log.h"
#include "base/text.h"
#include "base/version.h"
#include "orchestrator/cli/cli.h"

namespace evald::cli {
namespace {

constexpr const char* kFooter = R"(
Examples:
  evald run eval.yaml                         evaluate a checkpoint
  evald run eval.yaml --set workers.count=4   with one value changed
  evald run eval.yaml --resume                finish a run that was interrupted
  evald compare runs/step-1200 runs/step-600  document by document
  evald score --task gsm8k --generations answers.jsonl --data-dir data
  evald serve                                 a service: runs over REST, a page, metrics
  evald watch --checkpoints DIR eval.yaml     have it evaluate each new checkpoint
  evald simulate --nodes 4                    what a schedule would bring
  evald doctor                                what this machine can do

Exit status: 0 done and every gate met; 1 a gate failed; 2 usage, configuration or input;
3 incomplete, for a cause outside the model; 4 inconclusive.)";

void PrintError(const Common& common, const std::string& text, ExitStatus status) {
  if (common.json) PrintJson({{"error", text}, {"exit_status", static_cast<int>(status)}});
  fmt::print(stderr, "evald: error: {}\n", Printable(text));
}

ExitStatus Invoke(const Common& common, const Action& action) {
  try {
    return action();
  } catch (const Error& e) {
    const ExitStatus status = ExitStatusFor(e.kind());
    PrintError(common, e.what(), status);
    return status;
  } catch (const std::exception& e) {
    PrintError(common, fmt::format("internal: {}", e.what()), ExitStatus::kIncomplete);
    return ExitStatus::kIncomplete;
  }
}

// A file that output was sent to may be on a full disk: a program that reads it must not take half for the whole.
ExitStatus AllWritten(ExitStatus status) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  fmt::print(stderr, "evald: error: standard output: {}\n", errno != 0 ? std::strerror(errno) : "cannot be written");
  return ExitStatus::kIncomplete;
}

// "evald run": as much of the command as was understood.
std::string ChosenCommand(const CLI::App& app) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  return chosen.empty() ? "evald" : "evald " + chosen[0]->get_name();
}

// Without a command the parser asks for one, whatever stands in its place.
std::string Mistake(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> unknown = app.remaining();
  if (!app.get_subcommands().empty() || unknown.empty()) return error.what();
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands({})) commands.push_back(command->get_name());
  return fmt::format("unknown {} '{}'{}", unknown[0].starts_with("-") ? "option" : "command", unknown[0],
                     Suggestion(unknown[0], commands));
}

}  // namespace

void PrintJson(const Json& value) {
  const std::string line = ToLine(value) + "\n";
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);  // a failure is told at the end (AllWritten)
}

void AddOverrides(CLI::App* command, EvalOverrides* overrides) {
  command->add_option("--set", overrides->set, "Override a value of eval.yaml, for example workers.count=2")
      ->type_name("KEY.PATH=VALUE")
      ->allow_extra_args(false);
  command->add_option("--data-dir", overrides->data_dir, "Where datasets lie (data_dir)")->type_name("DIR");
}

int Main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  CLI::App app{"evald evaluates large-language-model checkpoints.", "evald"};
  app.set_version_flag("--version", std::string("evald ") + kEvaldVersion);
  app.require_subcommand(1);
  app.footer(kFooter);
  app.fallthrough();
  Common common;
  common.binaries = std::filesystem::canonical("/proc/self/exe").parent_path();
  app.add_flag("--json", common.json, "Print one JSON document on standard output and nothing else there");
  app.add_flag("-q,--quiet", common.quiet, "No progress");
  app.add_option("--log-level", common.log_level, "trace, debug, info, warn, error or off")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}));
  Action action;
  for (const auto add : {AddRun, AddValidate, AddCompare, AddScore, AddServe, AddAgent, AddSubmit, AddStatus, AddWatch, AddCancel,
                         AddResults, AddLogs, AddStage, AddTasks, AddPriors, AddSimulate, AddDoctor, AddCompletion}) {
    add(&app, &common, &action);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) {  // --help, --version
      app.exit(e);
      std::cout.flush();
      return static_cast<int>(AllWritten(ExitStatus::kDone));
    }
    // Parsing stopped, perhaps before it came to the flag.
    common.json = std::count(argv, argv + argc, std::string_view("--json")) > 0;
    PrintError(common, fmt::format("{}; see '{} --help'", Mistake(app, e), ChosenCommand(app)), ExitStatus::kUsage);
    return static_cast<int>(ExitStatus::kUsage);
  }
  SetUpLog("evald", common.log_level);
  return static_cast<int>(AllWritten(Invoke(common, action)));
}

}  // namespace evald::cli

int main(int argc, char** argv) { return evald::cli::Main(argc, argv); }
