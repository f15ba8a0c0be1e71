#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/command_line.h"
#include "evald/error.h"
#include "evald/json.h"

namespace evald::cli {

/// The number of open files that a process with `children` child processes may need: for each child
/// its socket, the descriptor that reports its end (pidfd), its log, and one to spare.
constexpr uint64_t OpenFilesFor(uint64_t children) { return 128 + 4 * children; }

/// Flags of every command.
struct Common {
  bool json = false;   ///< print one JSON document on standard output and nothing else
  bool quiet = false;  ///< no progress
  std::string log_level = "warn";
  std::filesystem::path binaries;  ///< folder of this program
};

/// The chosen command's work. Set by the command's callback.
using Action = std::function<ExitStatus()>;

// Each function adds a command to `app`. If the user chooses it, its callback sets `*action`.
void AddRun(Command app, const Common* common, Action* action);
void AddValidate(Command app, const Common* common, Action* action);
void AddCompare(Command app, const Common* common, Action* action);
void AddScore(Command app, const Common* common, Action* action);
void AddAgent(Command app, const Common* common, Action* action);
void AddServe(Command app, const Common* common, Action* action);
void AddSubmit(Command app, const Common* common, Action* action);
void AddStatus(Command app, const Common* common, Action* action);
void AddNodes(Command app, const Common* common, Action* action);
void AddWatch(Command app, const Common* common, Action* action);
void AddCancel(Command app, const Common* common, Action* action);
void AddResults(Command app, const Common* common, Action* action);
void AddLogs(Command app, const Common* common, Action* action);
void AddStage(Command app, const Common* common, Action* action);
void AddTasks(Command app, const Common* common, Action* action);
void AddFetch(Command app, const Common* common, Action* action);
void AddPriors(Command app, const Common* common, Action* action);
void AddEndpoint(Command app, const Common* common, Action* action);
void AddSimulate(Command app, const Common* common, Action* action);
void AddDoctor(Command app, const Common* common, Action* action);
void AddTranslate(Command app, const Common* common, Action* action);
void AddCompletion(Command app, const Common* common, Action* action);

/// Prints `value` as one line of JSON on standard output.
void PrintJson(const Json& value);

}  // namespace evald::cli
