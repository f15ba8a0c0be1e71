#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "datasets/task_set.h"
#include "orchestrator/cli/cli.h"

namespace evald::cli {

/// Where `evald tasks --needs` looks.
struct NeedsFlags {
  std::string data_dir;
  std::string python = "/usr/bin/python3";
  bool allow_task_code = false;
};

/// Prints what each task of these names needs, and whether it is there: for people a table of what
/// several tasks need together. Returns kDone if all of it is there, else kGateFailed (exit status
/// 1).
ExitStatus ShowNeeds(const Common& common, const TaskRegistry& registry,
                     const std::vector<std::string>& names,
                     const std::vector<std::filesystem::path>& task_dirs, const NeedsFlags& flags);

}  // namespace evald::cli
