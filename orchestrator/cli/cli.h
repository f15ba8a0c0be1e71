#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "evald/error.h"
#include "evald/json.h"
#include "orchestrator/config/eval_config.h"

namespace evald::cli {

/// How many files a process may have to hold open that has so many child processes: for each its connection, its end
/// and its log.
constexpr uint64_t OpenFilesFor(uint64_t children) { return 128 + 4 * children; }

/// Flags that every command takes.
struct Common {
  bool json = false;   ///< one JSON document on standard output and nothing else there
  bool quiet = false;  ///< no progress
  std::string log_level = "warn";
  std::filesystem::path binaries;  ///< folder of this program
};

/// What the command line asked for; set by the callback of the chosen command.
using Action = std::function<ExitStatus()>;

// Each adds one command to `app`; when it is chosen, `*action` is set.
void AddRun(CLI::App* app, const Common* common, Action* action);
void AddValidate(CLI::App* app, const Common* common, Action* action);
void AddCompare(CLI::App* app, const Common* common, Action* action);
void AddScore(CLI::App* app, const Common* common, Action* action);
void AddAgent(CLI::App* app, const Common* common, Action* action);
void AddServe(CLI::App* app, const Common* common, Action* action);
void AddSubmit(CLI::App* app, const Common* common, Action* action);
void AddStatus(CLI::App* app, const Common* common, Action* action);
void AddWatch(CLI::App* app, const Common* common, Action* action);
void AddCancel(CLI::App* app, const Common* common, Action* action);
void AddResults(CLI::App* app, const Common* common, Action* action);
void AddLogs(CLI::App* app, const Common* common, Action* action);
void AddStage(CLI::App* app, const Common* common, Action* action);
void AddTasks(CLI::App* app, const Common* common, Action* action);
void AddPriors(CLI::App* app, const Common* common, Action* action);
void AddSimulate(CLI::App* app, const Common* common, Action* action);
void AddDoctor(CLI::App* app, const Common* common, Action* action);
void AddCompletion(CLI::App* app, const Common* common, Action* action);

/// Prints `value` as one line of JSON on standard output.
void PrintJson(const Json& value);

/// --set and --data-dir, for the commands that read an eval.yaml.
void AddOverrides(CLI::App* command, EvalOverrides* overrides);

}  // namespace evald::cli
