#include "metrics/task_codes.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "base/jsonl.h"
#include "evald/error.h"
#include "evald/task.h"
#include "metrics/scoring/task_results.h"

namespace evald {
namespace {

constexpr const char* kFileName = "code.json";

WantedFile FileOf(const Json& files, const std::string& path) {
  const auto file = files.find(path);
  if (file != files.end() && file->is_string())
    return {WantedFile::Kind::kFile, FromLatin1(file->get_ref<const std::string&>())};
  for (const auto& [name, content] : files.items()) {
    if (name.starts_with(path + "/")) return {WantedFile::Kind::kFolder, ""};
  }
  return {};
}

void RequireAllowed(const TaskCodeOptions& options, const std::string& task) {
  if (options.allowed != TaskCodeOptions::Allowed::kNo) return;
  throw Error(ErrorKind::kInput,
              fmt::format("task '{}': this host does not run the Python code of tasks", task),
              "set 'task_code: allow' where this host's evald is configured");
}

std::unique_ptr<TaskCode> StartWith(const Json& code, const TaskCodeOptions& options,
                                    std::function<bool()> stopped) {
  auto process = std::make_unique<TaskCode>(options);
  if (stopped) process->StopWhen(std::move(stopped));
  const Json files = Field<Json>(code, "files", kFileName);
  process->ServeFiles([files](const std::string& path) { return FileOf(files, path); });
  process->AddRoots(Field<std::vector<std::string>>(code, "roots", kFileName));
  return process;
}

}  // namespace

std::vector<std::string> ScoringFunctions(const TaskDefinition& task) {
  std::vector<std::string> functions =
      OwnMetricsAndFilters(task.process_results.empty(), task.metrics, task.filters);
  if (!task.process_results.empty() && FindTaskResults(task.process_results) == nullptr)
    functions.insert(functions.begin(), task.process_results);
  return functions;
}

std::unique_ptr<TaskCode> StartTaskCode(const PreparedTask& prepared,
                                        const TaskCodeOptions& options,
                                        const std::vector<std::string>& functions,
                                        std::function<bool()> stopped) {
  RequireAllowed(options, prepared.name());
  const Json code = prepared.Code();
  std::unique_ptr<TaskCode> process = StartWith(code, options, std::move(stopped));
  for (const std::string& function : functions)
    process->Load(function, Field<uint64_t>(code, "seed", kFileName));
  return process;
}

TaskCode* TaskCodes::For(const PreparedTask& prepared) {
  const TaskDefinition task = TaskFromJson(prepared.task(), "task.json");
  const std::vector<std::string> functions = ScoringFunctions(task);
  if (!UsesTaskCode(task) || functions.empty()) {
    Drop();  // the functions of other tasks do not compute beside this one
    return nullptr;
  }
  RequireAllowed(options_, task.name);
  const Json code = prepared.Code();
  const std::string hash = Sha256Hex(code.dump(-1, ' ', false, Json::error_handler_t::replace));
  if (code_ == nullptr || hash != hash_) {
    code_.reset();  // one process at a time
    code_ = StartWith(code, options_, nullptr);
    hash_ = hash;
  }
  const auto seed = Field<uint64_t>(code, "seed", kFileName);
  for (const std::string& function : functions) code_->Load(function, seed);
  return code_.get();
}

}  // namespace evald
