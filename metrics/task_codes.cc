#include "metrics/task_codes.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "base/jsonl.h"
#include "evald/error.h"
#include "evald/task.h"

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

}  // namespace

TaskCode* TaskCodes::For(const PreparedTask& prepared) {
  const TaskDefinition task = TaskFromJson(prepared.task(), "task.json");
  if (!UsesTaskCode(task) || task.process_results.empty()) {
    Drop();  // the functions of other tasks do not compute beside this one
    return nullptr;
  }
  if (options_.allowed == TaskCodeOptions::Allowed::kNo) {
    throw Error(
        ErrorKind::kInput,
        fmt::format("task '{}': this host does not run the Python code of tasks", task.name),
        "set 'task_code: allow' where this host's evald is configured");
  }
  const Json code = prepared.Code();
  const std::string hash = Sha256Hex(code.dump(-1, ' ', false, Json::error_handler_t::replace));
  if (code_ == nullptr || hash != hash_) {
    code_.reset();  // one process at a time
    code_ = std::make_unique<TaskCode>(options_);
    hash_ = hash;
    const Json files = Field<Json>(code, "files", kFileName);
    code_->ServeFiles([files](const std::string& path) { return FileOf(files, path); });
    code_->AddRoots(Field<std::vector<std::string>>(code, "roots", kFileName));
  }
  const auto seed = Field<uint64_t>(code, "seed", kFileName);
  code_->Load(task.process_results, seed);
  return code_.get();
}

}  // namespace evald
