#include <fmt/format.h>

#include <algorithm>

#include "base/print.h"
#include "base/text.h"
#include "datasets/task_set.h"
#include "orchestrator/cli/cli.h"

namespace evald::cli {
namespace {

struct TasksFlags {
  std::string name;
  std::vector<std::string> task_dirs;
};

ExitStatus Tasks(const Common& common, const TasksFlags& flags) {
  std::vector<std::filesystem::path> directories(flags.task_dirs.begin(), flags.task_dirs.end());
  const TaskRegistry registry(directories);
  std::vector<TaskListing> listing = registry.List();
  if (!flags.name.empty()) {
    std::vector<std::string> names;
    for (const TaskListing& task : listing) names.push_back(task.name);
    if (std::find(names.begin(), names.end(), flags.name) == names.end()) {
      TaskRequest request;
      request.name = flags.name;
      registry.Resolve({request});  // reports the fault in the task's file
      throw Error(ErrorKind::kUsage, fmt::format("no task, group or tag is called '{}'{}",
                                                 flags.name, Suggestion(flags.name, names)));
    }
    std::erase_if(listing, [&](const TaskListing& task) { return task.name != flags.name; });
  }
  Json list = Json::array();
  for (const TaskListing& task : listing) {
    list.push_back({{"name", task.name},
                    {"kind", task.kind},
                    {"source", task.source},
                    {"summary", task.summary}});
    if (!common.json) Print("{:<34} {:<6} {}\n", task.name, task.kind, task.summary);
  }
  if (common.json) PrintJson(list);
  if (!flags.name.empty() || common.quiet) return ExitStatus::kDone;
  for (const TaskProblem& problem : registry.Problems())
    Print(stderr, "evald: passed over: {}\n", PrintableLine(problem.problem));
  return ExitStatus::kDone;
}

}  // namespace

void AddTasks(Command app, const Common* common, Action* action) {
  auto flags = std::make_shared<TasksFlags>();
  Command command = app.AddCommand("tasks", "List the tasks, groups and tags that are known");
  command.AddOption("name", &flags->name, "Only this one");
  command.AddOption("--task-dir", &flags->task_dirs, "A folder with more task files")
      .Metavar("DIR");
  command.Footer("\nExamples:\n  evald tasks\n  evald tasks mmlu --json");
  command.OnChosen([=] { *action = [=] { return Tasks(*common, *flags); }; });
}

}  // namespace evald::cli
