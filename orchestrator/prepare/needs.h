#pragma once

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/read_roots.h"
#include "datasets/task_set.h"
#include "evald/json.h"
#include "task_code/task_code.h"

namespace evald {

/// One thing that a task needs.
struct Need {
  enum class Kind {
    kData,     ///< a split of its dataset
    kCode,     ///< a Python function that is not built in
    kPackage,  ///< of Python, for such functions or for tables
    kProgram,  ///< an interpreter or a compiler of the model's programs
  };
  Kind kind = Kind::kData;
  std::string what;                ///< "cais/mmlu anatomy: test", "numpy", "/usr/bin/python3"
  std::vector<std::string> found;  ///< its files
  bool there = true;
  std::string problem, remedy;  ///< if it is not there
};

struct TaskNeeds {
  std::string task;
  std::vector<Need> needs;
  bool AllThere() const;
};

/// What a Python has of some packages, by the names under which they are imported.
struct PackagesFound {
  std::set<std::string> standard;  ///< of Python's own library
  std::set<std::string> there;     ///< the others that are there
};
using PackageFinder = std::function<PackagesFound(const std::set<std::string>& packages)>;

/// Where the needs of tasks are looked for.
struct NeedsSearch {
  std::filesystem::path data_dir;
  std::vector<std::filesystem::path> task_dirs;  ///< and others with lm_eval's own tasks
  TaskCodeOptions task_code;
  std::string sandbox_python = "/usr/bin/python3";  ///< of the model's programs
  PackageFinder packages;
};

/// What each task needs, and whether it is there. Nothing of the data is read. Packages are those
/// that the files of functions import, as far as they can be seen without running these
/// (datasets/task_imports.h).
std::vector<TaskNeeds> NeedsOf(const ResolvedTasks& tasks, const NeedsSearch& search);

/// {"task", "ready", "needs": [{"kind", "what", "there", "found", "problem", "remedy"}]}
Json ToJson(const TaskNeeds& task);

/// "data", "code", "package", "program".
const char* ToString(Need::Kind kind);

}  // namespace evald
