#pragma once

#include <string>
#include <vector>

#include "base/command_line.h"
#include "evald/json.h"
#include "orchestrator/config/eval_config.h"

namespace evald::cli {

/// What `evald run`, `validate` and `submit` evaluate: an eval.yaml, or a checkpoint's folder in
/// place of one, and flags that stand for keys of the file. Paths of the command line are relative
/// to the folder in which the command is called, paths of the file to that of the file.
struct Wanted {
  std::string path;                ///< of the file or of the checkpoint's folder
  std::string checkpoint;          ///< --checkpoint
  std::vector<std::string> tasks;  ///< --tasks; empty: those of the file
  std::string limit;               ///< --limit, for every task
  std::string num_fewshot;         ///< --num-fewshot, likewise
  EvalOverrides overrides;
};

/// Adds the argument and all flags. The argument may be made required by the caller.
CommandOption AddWanted(Command command, Wanted* wanted);

/// Adds --set, --data-dir and --allow-task-code alone.
void AddOverrides(Command command, EvalOverrides* overrides);

/// The configuration. Throws Error(kUsage) like ReadEvalConfig, and for a checkpoint without tasks.
EvalConfig ReadWanted(const Wanted& wanted);

/// {"yaml", "base", "file", "set"}: the same for a service, with absolute paths. Throws
/// Error(kUsage).
Json WantedBody(const Wanted& wanted);

}  // namespace evald::cli
