#include "orchestrator/cli/remembered_code.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "base/jsonl.h"
#include "evald/error.h"

namespace evald::cli {
namespace fs = std::filesystem;
namespace {

using Allowed = TaskCodeOptions::Allowed;

// {"<hash>": "<folder>"}
fs::path KeptIn(const EvalConfig& config) { return config.state_dir / "allowed-task-code.json"; }

std::vector<fs::path> PythonFiles(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code failure;
  for (fs::recursive_directory_iterator entry(folder, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    if (entry->path().extension() == ".py") files.push_back(entry->path());
  }
  if (failure) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: cannot be listed: {}", folder.string(), failure.message()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Of the names and contents of all Python files below a folder.
std::string HashOf(const fs::path& folder) {
  std::string text;
  for (const fs::path& file : PythonFiles(folder)) {
    text += ToLine(Json::array({fs::relative(file, folder).string(), Sha256Hex(ReadFile(file))}));
    text += '\n';
  }
  return Sha256Hex(text);
}

Json Kept(const fs::path& path) {
  if (!fs::exists(path)) return Json::object();
  Json kept = ParseJson(ReadFile(path), path.string());
  if (!kept.is_object()) {
    throw Error(ErrorKind::kInput, fmt::format("{}: found no JSON object", path.string()),
                "delete this file, and say --allow-task-code again");
  }
  return kept;
}

void Keep(const EvalConfig& config) {
  const fs::path path = KeptIn(config);
  Json kept = Kept(path);
  for (const fs::path& folder : config.task_dirs) kept[HashOf(folder)] = folder.string();
  MakeDirectories(config.state_dir);
  WriteFileAtomic(path, kept.dump(1) + "\n");
}

bool AllKept(const EvalConfig& config) {
  const Json kept = Kept(KeptIn(config));
  return !kept.empty() &&
         std::all_of(config.task_dirs.begin(), config.task_dirs.end(),
                     [&](const fs::path& folder) { return kept.contains(HashOf(folder)); });
}

}  // namespace

void RememberTaskCode(bool said, EvalConfig* config) {
  if (config->task_dirs.empty()) return;
  if (said) {
    Keep(*config);
  } else if (config->task_code.allowed == Allowed::kNo && !config->task_code.refused &&
             AllKept(*config)) {
    config->task_code.allowed = Allowed::kBoxed;
  }
}

}  // namespace evald::cli
