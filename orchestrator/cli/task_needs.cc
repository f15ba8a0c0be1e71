#include "orchestrator/cli/task_needs.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <utility>

#include "base/jsonl.h"
#include "base/print.h"
#include "base/program.h"
#include "base/text.h"
#include "orchestrator/prepare/needs.h"
#include "orchestrator/report/text_table.h"

namespace evald::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kPythonPatience{60};
constexpr const char* kPythonAnswer = "the answer of task_python";

// Isolated (-I), as task code is: packages of the user's own home do not count.
Json AskPython(const std::string& python, const char* script, const Json& question) {
  return ParseJson(OutputOf(python, {"-I", "-c", script}, kPythonPatience, question.dump()),
                   kPythonAnswer);
}

PackagesFound FindPackages(const std::string& python, const std::set<std::string>& packages) {
  constexpr const char* kScript = R"(
import importlib.util, json, sys
standard = getattr(sys, "stdlib_module_names", sys.builtin_module_names)
def there(name):
    try:
        return importlib.util.find_spec(name) is not None
    except Exception:
        return False
names = json.load(sys.stdin)
print(json.dumps([[n for n in names if n in standard], [n for n in names if n not in standard and there(n)]]))
)";
  const Json answer = AskPython(python, kScript, packages);
  return {answer.at(0).get<std::set<std::string>>(), answer.at(1).get<std::set<std::string>>()};
}

// The folder lm_eval/tasks of the Python's own package; "" if it has none, or cannot be asked.
fs::path InstalledTasks(const std::string& python) {
  constexpr const char* kScript = R"(
import importlib.util, json
spec = importlib.util.find_spec("lm_eval")
print(json.dumps(list(spec.submodule_search_locations)[0] if spec else ""))
)";
  try {
    const auto folder = AskPython(python, kScript, Json()).get<std::string>();
    return folder.empty() ? fs::path() : fs::path(folder) / "tasks";
  } catch (const Error&) {
    return {};
  }
}

// What several tasks need, once.
struct Row {
  Need need;
  std::vector<std::string> tasks;
};

std::vector<Row> RowsOf(const std::vector<TaskNeeds>& tasks) {
  std::vector<Row> rows;
  std::map<std::pair<int, std::string>, size_t> places;
  for (const TaskNeeds& task : tasks) {
    for (const Need& need : task.needs) {
      const auto key = std::make_pair(static_cast<int>(need.kind), need.what);
      const auto [place, fresh] = places.emplace(key, rows.size());
      if (fresh) rows.push_back({need, {}});
      rows[place->second].tasks.push_back(task.task);
    }
  }
  return rows;
}

std::string FoundText(const Need& need) {
  if (need.found.empty()) return "";
  return need.found.front() +
         (need.found.size() > 1 ? fmt::format(" and {} more", need.found.size() - 1) : "");
}

void PrintNeeds(const std::vector<TaskNeeds>& tasks) {
  std::vector<TextRow> table = {{"Need", "What", "", "Tasks", "Found"}};
  std::vector<std::string> problems;
  for (const Row& row : RowsOf(tasks)) {
    const std::string more =
        row.tasks.size() > 1 ? fmt::format(" and {} more", row.tasks.size() - 1) : "";
    table.push_back({ToString(row.need.kind), row.need.what, row.need.there ? "there" : "MISSING",
                     row.tasks.front() + more, FoundText(row.need)});
    if (!row.need.there) {
      problems.push_back(row.need.problem +
                         (row.need.remedy.empty() ? "" : "; " + row.need.remedy));
    }
  }
  PrintLines(TextTable(table, {.right = {false, false, false, false, false}}));
  const auto ready = std::count_if(tasks.begin(), tasks.end(),
                                   [](const TaskNeeds& task) { return task.AllThere(); });
  Print("\n{} of {} tasks have all that they need\n", ready, tasks.size());
  std::sort(problems.begin(), problems.end());
  problems.erase(std::unique(problems.begin(), problems.end()), problems.end());
  for (const std::string& problem : problems) Print("  {}\n", problem);
}

}  // namespace

ExitStatus ShowNeeds(const Common& common, const TaskRegistry& registry,
                     const std::vector<std::string>& names, const std::vector<fs::path>& task_dirs,
                     const NeedsFlags& flags) {
  std::vector<TaskRequest> requests;
  for (const std::string& name : names) {
    requests.emplace_back().name = name;
    requests.back().where = "the command line";
  }
  NeedsSearch search;
  search.data_dir = flags.data_dir;
  search.task_dirs = task_dirs;
  search.task_code.python = flags.python;
  if (flags.allow_task_code) search.task_code.allowed = TaskCodeOptions::Allowed::kBoxed;
  if (const fs::path tasks = InstalledTasks(flags.python); !tasks.empty())
    search.task_dirs.push_back(tasks);
  search.packages = [&](const std::set<std::string>& packages) {
    return FindPackages(flags.python, packages);
  };
  const std::vector<TaskNeeds> needs = NeedsOf(registry.Resolve(requests), search);
  if (common.json) {
    Json list = Json::array();
    for (const TaskNeeds& task : needs) list.push_back(ToJson(task));
    PrintJson(list);
  } else {
    PrintNeeds(needs);
  }
  const bool all = std::all_of(needs.begin(), needs.end(),
                               [](const TaskNeeds& task) { return task.AllThere(); });
  return all ? ExitStatus::kDone : ExitStatus::kGateFailed;
}

}  // namespace evald::cli
