#include "orchestrator/cli/wanted.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "base/file.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald::cli {
namespace fs = std::filesystem;
namespace {

constexpr const char* kNoFile = "{}";  // the file in place of which a checkpoint is named
constexpr const char* kNoFileName = "the command line";

// The path as a value of --set. Bytes that are not UTF-8 stay, and are refused when it is read.
std::string Quoted(const fs::path& path) {
  return IsUtf8(path.native()) ? Json(path.string()).dump() : path.string();
}

fs::path Here(const std::string& path) { return fs::absolute(path).lexically_normal(); }

bool IsCheckpoint(const Wanted& wanted) { return fs::is_directory(wanted.path); }

// What the flags say, as assignments to keys of the file; then those of --set. `typed` gets the
// flags by their assignments.
std::vector<std::string> Assignments(const Wanted& wanted,
                                     std::map<std::string, std::string>* typed) {
  std::vector<std::string> set;
  const auto add = [&](const std::string& assignment, const std::string& as_typed) {
    set.push_back(assignment);
    (*typed)[assignment] = as_typed;
  };
  if (IsCheckpoint(wanted) && wanted.tasks.empty()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} is a checkpoint's folder, and no task is named", wanted.path),
                "name tasks, as in --tasks gsm8k,mmlu ('evald tasks' lists them), or an eval.yaml");
  }
  if (IsCheckpoint(wanted)) add("checkpoint=" + Quoted(Here(wanted.path)), wanted.path);
  if (!wanted.checkpoint.empty())
    add("checkpoint=" + Quoted(Here(wanted.checkpoint)), "--checkpoint " + wanted.checkpoint);
  if (!wanted.tasks.empty())
    add("tasks=" + Json(wanted.tasks).dump(), "--tasks " + Join(wanted.tasks, ","));
  if (!wanted.limit.empty()) add("tasks.*.limit=" + wanted.limit, "--limit " + wanted.limit);
  if (!wanted.num_fewshot.empty())
    add("tasks.*.num_fewshot=" + wanted.num_fewshot, "--num-fewshot " + wanted.num_fewshot);
  set.insert(set.end(), wanted.overrides.set.begin(), wanted.overrides.set.end());
  return set;
}

}  // namespace

void AddOverrides(Command command, EvalOverrides* overrides) {
  command
      .AddOption("--set", &overrides->set,
                 "Override a value of eval.yaml, for example workers.count=2")
      .Metavar("KEY.PATH=VALUE")
      .OneArgument();
  command.AddOption("--data-dir", &overrides->data_dir, "Where datasets lie (data_dir)")
      .Metavar("DIR");
  command.AddFlag("--allow-task-code", &overrides->allow_task_code,
                  "Run the Python code of task files, in a sandbox (task_code: allow)");
}

CommandOption AddWanted(Command command, Wanted* wanted) {
  CommandOption argument =
      command
          .AddOption(
              "eval.yaml|checkpoint", &wanted->path,
              "What to evaluate, and how (docs/eval-yaml.md); or a checkpoint's folder, with "
              "--tasks")
          .Metavar("PATH")
          .ExistingPath();
  command.AddOption("--checkpoint", &wanted->checkpoint, "In place of eval.yaml's")
      .Metavar("DIR")
      .ExistingFolder();
  command.AddOption("--tasks", &wanted->tasks, "Likewise: names of tasks, groups or tags")
      .Metavar("NAME,...")
      .CommaSeparated();
  command
      .AddOption("--limit", &wanted->limit,
                 "Of each task only the first N documents, or a share of them such as 0.1")
      .Metavar("N");
  command.AddOption("--num-fewshot", &wanted->num_fewshot, "Examples in each prompt").Metavar("N");
  AddOverrides(command, &wanted->overrides);
  return argument;
}

EvalConfig ReadWanted(const Wanted& wanted) {
  EvalOverrides overrides = wanted.overrides;
  overrides.set = Assignments(wanted, &overrides.typed);
  if (!IsCheckpoint(wanted)) return ReadEvalConfig(wanted.path, overrides);
  overrides.called = kNoFileName;
  return ParseEvalConfig(kNoFile, fs::current_path() / "eval.yaml", overrides);
}

Json WantedBody(const Wanted& wanted) {
  std::map<std::string, std::string> typed;
  std::vector<std::string> set = Assignments(wanted, &typed);
  if (!wanted.overrides.data_dir.empty())
    set.push_back("data_dir=" + Quoted(fs::absolute(wanted.overrides.data_dir)));
  if (wanted.overrides.allow_task_code) set.emplace_back("task_code=allow");
  const bool checkpoint = IsCheckpoint(wanted);
  const fs::path file = fs::absolute(wanted.path);
  return {{"yaml", checkpoint ? kNoFile : ReadFile(file)},
          {"base", checkpoint ? fs::current_path().string() : file.parent_path().string()},
          {"file", checkpoint ? std::string(kNoFileName) : wanted.path},
          {"set", set}};
}

}  // namespace evald::cli
