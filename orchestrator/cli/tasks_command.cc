#include <fmt/format.h>

#include <algorithm>

#include "base/print.h"
#include "base/text.h"
#include "datasets/task_set.h"
#include "orchestrator/cli/cli.h"
#include "orchestrator/cli/task_needs.h"

namespace evald::cli {
namespace {

struct TasksFlags {
  std::vector<std::string> names;
  std::vector<std::string> task_dirs;
  bool needs = false;
  NeedsFlags looked_in;
};

// Throws for a name that nothing has; the fault of a task's file for a name whose file has one.
void CheckNames(const TaskRegistry& registry, const std::vector<TaskListing>& listing,
                const std::vector<std::string>& wanted) {
  std::vector<std::string> names;
  for (const TaskListing& task : listing) names.push_back(task.name);
  for (const std::string& name : wanted) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    TaskRequest request;
    request.name = name;
    registry.Resolve({request});
    throw Error(ErrorKind::kUsage, fmt::format("no task, group or tag is called '{}'{}", name,
                                               Suggestion(name, names)));
  }
}

ExitStatus List(const Common& common, const TasksFlags& flags, const TaskRegistry& registry,
                std::vector<TaskListing> listing) {
  if (!flags.names.empty()) {
    std::erase_if(listing, [&](const TaskListing& task) {
      return std::find(flags.names.begin(), flags.names.end(), task.name) == flags.names.end();
    });
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
  if (!flags.names.empty() || common.quiet) return ExitStatus::kDone;
  for (const TaskProblem& problem : registry.Problems())
    Print(stderr, "evald: passed over: {}\n", PrintableLine(problem.problem));
  return ExitStatus::kDone;
}

ExitStatus Tasks(const Common& common, const TasksFlags& flags) {
  const std::vector<std::filesystem::path> directories(flags.task_dirs.begin(),
                                                       flags.task_dirs.end());
  const TaskRegistry registry(directories);
  std::vector<TaskListing> listing = registry.List();
  CheckNames(registry, listing, flags.names);
  if (!flags.needs) return List(common, flags, registry, std::move(listing));
  std::vector<std::string> names = flags.names;
  for (const TaskListing& task : listing) {
    if (flags.names.empty() && task.kind == "task") names.push_back(task.name);
  }
  return ShowNeeds(common, registry, names, directories, flags.looked_in);
}

}  // namespace

void AddTasks(Command app, const Common* common, Action* action) {
  auto flags = std::make_shared<TasksFlags>();
  Command command =
      app.AddCommand("tasks", "List the tasks, groups and tags that are known, or what they need");
  command.AddOption("names", &flags->names, "Only these");
  command.AddOption("--task-dir", &flags->task_dirs, "A folder with more task files")
      .OneArgument()
      .Metavar("DIR");
  command.AddFlag("--needs", &flags->needs,
                  "Show the data, packages and programs that each task needs, and whether they are "
                  "there (exit status 1 if not)");
  command
      .AddOption("--data-dir", &flags->looked_in.data_dir,
                 "With --needs: the folder of the datasets")
      .Metavar("DIR");
  command
      .AddOption("--task-python", &flags->looked_in.python,
                 "With --needs: the Python that runs functions of task files and reads tables")
      .Metavar("PYTHON");
  command.AddFlag("--allow-task-code", &flags->looked_in.allow_task_code,
                  "With --needs: functions of task files may run");
  command.Footer(
      "\nExamples:\n  evald tasks\n  evald tasks mmlu --json\n  evald tasks --needs base "
      "--data-dir "
      "data");
  command.OnChosen([=] { *action = [=] { return Tasks(*common, *flags); }; });
}

}  // namespace evald::cli
