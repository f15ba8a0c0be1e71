#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/command_line.h"
#include "evald/error.h"
#include "evald/json.h"
#include "orchestrator/config/eval_config.h"

namespace evald::cli {

/// How many files a process may have to hold open that has so many child processes: for each its
/// connection, its end and its log.
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
void AddRun(Command app, const Common* common, Action* action);
void AddValidate(Command app, const Common* common, Action* action);
void AddCompare(Command app, const Common* common, Action* action);
void AddScore(Command app, const Common* common, Action* action);
void AddAgent(Command app, const Common* common, Action* action);
void AddServe(Command app, const Common* common, Action* action);
void AddSubmit(Command app, const Common* common, Action* action);
void AddStatus(Command app, const Common* common, Action* action);
void AddWatch(Command app, const Common* common, Action* action);
void AddCancel(Command app, const Common* common, Action* action);
void AddResults(Command app, const Common* common, Action* action);
void AddLogs(Command app, const Common* common, Action* action);
void AddStage(Command app, const Common* common, Action* action);
void AddTasks(Command app, const Common* common, Action* action);
void AddPriors(Command app, const Common* common, Action* action);
void AddSimulate(Command app, const Common* common, Action* action);
void AddDoctor(Command app, const Common* common, Action* action);
void AddCompletion(Command app, const Common* common, Action* action);

/// Prints `value` as one line of JSON on standard output.
void PrintJson(const Json& value);

/// --set and --data-dir, for the commands that read an eval.yaml.
void AddOverrides(Command command, EvalOverrides* overrides);

}  // namespace evald::cli
