#include "datasets/task_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "datasets/functions.h"
#include "datasets/hub_folder.h"
#include "datasets/leaf_task.h"
#include "datasets/sources.h"
#include "metrics/scoring/metrics.h"
#include "task_code/table_reader.h"

namespace evald {
namespace {

void AddHubFiles(const Json& files, std::vector<std::string>* names) {
  for (const Json& file : files.is_array() ? files : Json::array({files})) {
    if (file.is_string() && file.get_ref<const std::string&>().starts_with(kHubScheme))
      names->push_back(file);
  }
}

// The split's own, and those of the first split, whose first rows decide the types.
std::vector<std::string> HubFilesOf(const Json& data_files, const std::string& split) {
  std::vector<std::string> names;
  if (!data_files.is_object()) {
    AddHubFiles(data_files, &names);
    return names;
  }
  if (data_files.contains(split)) AddHubFiles(data_files.at(split), &names);
  const bool is_first = data_files.empty() || data_files.begin().key() == split;
  if (!is_first) AddHubFiles(data_files.front(), &names);
  return names;
}

SplitFound FindOne(const TaskConfig& config, const std::string& split,
                   const std::filesystem::path& data_dir, const ReadRoots& roots) {
  SplitFound found;
  found.dataset = config.dataset_path;
  found.part = config.dataset_name;
  found.split = split;
  found.own = !config.data_files.is_null() || !config.data_subfolder.empty() ||
              IsLocalFolder(config.dataset_path);
  if (found.own) {
    found.hub_files = HubFilesOf(config.data_files, split);
  } else {
    for (const auto& place : PlacesOfSplit(config, split, data_dir))
      found.places.push_back(place.string());
  }
  try {
    const SplitFiles files = FindSplit(config, split, data_dir, roots);
    for (const DataFile& file : files.files) found.files.push_back(file.path.string());
    found.tables = files.rules.format == DataFormat::kTable ||
                   (files.rules.format == DataFormat::kByEnding &&
                    IsTableFile(files.files.front().path.string()));
  } catch (const Error& error) {
    found.failure = error;
  }
  return found;
}

void CollectFunctions(const Json& value, std::vector<std::string>* functions) {
  std::string name;
  if (IsFunction(value, &name) &&
      std::find(functions->begin(), functions->end(), name) == functions->end()) {
    functions->push_back(name);
  }
  if (!value.is_structured()) return;
  for (const Json& member : value) CollectFunctions(member, functions);
}

}  // namespace

std::string EvaluatedSplit(const TaskConfig& config) {
  return config.test_split.empty() ? config.validation_split : config.test_split;
}

std::optional<std::string> FewshotSplit(const TaskConfig& config) {
  const FewshotConfig& fewshot = config.fewshot;
  const bool has_samples = fewshot.split.is_null() && !fewshot.samples.is_null();
  if (config.num_fewshot == 0 || has_samples) return std::nullopt;
  if (fewshot.split.is_string()) return fewshot.split.get<std::string>();
  if (!config.training_split.empty()) return config.training_split;
  return config.validation_split.empty() ? config.test_split : config.validation_split;
}

std::vector<SplitFound> FindTaskData(const LeafTask& task, const std::filesystem::path& data_dir,
                                     const ReadRoots& roots) {
  const TaskConfig& config = task.state->config;
  if (task.state->command || !config.custom_dataset.empty()) return {};
  const std::string evaluated = EvaluatedSplit(config);
  std::vector<SplitFound> found = {FindOne(config, evaluated, data_dir, roots)};
  const std::optional<std::string> fewshot = FewshotSplit(config);
  if (fewshot && *fewshot != evaluated) found.push_back(FindOne(config, *fewshot, data_dir, roots));
  return found;
}

std::vector<std::string> FunctionsOf(const LeafTask& task) {
  std::vector<std::string> functions;
  CollectFunctions(task.state->config.dump, &functions);
  return functions;
}

void CheckDocumentFunctions(const LeafTask& task) {
  const TaskConfig& config = task.state->config;
  const FewshotConfig& fewshot = config.fewshot;
  const auto check = [&](const char* key, const Json& value,
                         bool (*is_builtin)(const std::string&)) {
    std::string function;
    if (IsFunction(value, &function) && !is_builtin(function))
      RefuseTaskFunction(function, fmt::format("{}: {}", config.where, key));
  };
  if (!config.custom_dataset.empty()) {
    check("custom_dataset", std::string(kFunctionTag) + config.custom_dataset,
          [](const std::string&) { return false; });
  }
  if (!config.process_docs.empty()) {
    check("process_docs", std::string(kFunctionTag) + config.process_docs, IsBuiltinProcessDocs);
  }
  check("fewshot_config.process_docs", fewshot.process_docs, IsBuiltinProcessDocs);
  for (const auto& [key, value] : DocFunctionFields(config))
    check(key, *value, IsBuiltinDocFunction);
  if (fewshot.split.is_null())
    check("fewshot_config.samples", fewshot.samples, IsBuiltinSamplesFunction);
}

bool ComparesMathematics(const LeafTask& task) {
  const TaskConfig& config = task.state->config;
  return ComparesMath(config.output_type, config.process_results, config.metrics);
}

int64_t MostTokensOfAnswer(const LeafTask& task) {
  const TaskConfig& config = task.state->config;
  const bool generates = config.output_type == "generate_until" && !task.state->command;
  return generates ? config.sampling.max_gen_toks : 0;
}

bool RunsPrograms(const LeafTask& task) { return task.state->config.unsafe_code; }

}  // namespace evald
