#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "datasets/documents.h"
#include "datasets/yaml_reader.h"
#include "evald/json.h"
#include "evald/request.h"
#include "evald/task.h"

namespace evald {

/// How few-shot examples are chosen and written. Members that fewshot_config leaves out come from
/// the task (lm_eval/config/task.py, FewshotConfig.from_dict). A null doc_to_* means that the task
/// has none.
struct FewshotConfig {
  std::string sampler = "default";
  Json split;    ///< a string or null
  Json samples;  ///< a list of documents, a !function, or null
  Json doc_to_text;
  Json doc_to_choice;
  Json doc_to_target;
  Json gen_prefix;
  Json process_docs;
  std::string fewshot_delimiter;
  std::string target_delimiter;
};

/// A task file after inclusion and overrides, with the defaults of lm_eval/config/task.py filled
/// in.
struct TaskConfig {
  std::string name;
  std::string alias;
  std::string folder;  ///< the folder of the task's file; "" for a built-in one
  std::string where;   ///< "file:line" of its name
  std::string dataset_path;
  std::string dataset_name;
  Json data_files;  ///< dataset_kwargs.data_files, or null
  std::string data_files_where;
  std::string data_subfolder;  ///< dataset_kwargs.data_dir
  CsvForm csv;                 ///< dataset_kwargs: delimiter or sep, column_names, header
  std::string training_split;
  std::string validation_split;
  std::string test_split;
  Json doc_to_text;
  Json doc_to_target;
  Json doc_to_choice;
  std::string description;
  std::string target_delimiter = " ";
  std::string fewshot_delimiter = "\n\n";
  Json gen_prefix;
  FewshotConfig fewshot;
  int num_fewshot = 0;
  std::string output_type = "generate_until";
  SamplingParams sampling;  ///< from generation_kwargs
  int repeats = 1;
  bool unsafe_code = false;
  std::string process_results;
  std::string process_docs;  ///< name of a !function, or ""
  /// Name of a !function that makes the documents of all splits, or "". There are no data files
  /// then
  std::string custom_dataset;
  Json custom_arguments = Json::object();  ///< its arguments: metadata and dataset_kwargs
  std::vector<MetricSpec> metrics;
  std::vector<std::string> sample_metrics;
  std::vector<FilterPipeline> filters;
  Json version;
  Json dump;  ///< like lm_eval's TaskConfig.to_dict(), with functions as "!function <name>"
};

/// Checks and types a merged task file. Throws Error(kInput) "file:line: ..." for unknown keys
/// (with the nearest known one), wrong types, and features that are known and not supported, by
/// name.
TaskConfig ParseTaskConfig(const YamlMapping& yaml, const std::string& file);

/// generation_kwargs, read like lm_eval/models/utils.py (normalize_gen_kwargs). Throws
/// Error(kInput) "<where>: ..." for a key that no engine here supports.
SamplingParams SamplingFromKwargs(const Json& kwargs, const std::string& where);

/// The keys of a task file.
const std::vector<std::string>& TaskKeys();

/// The fields that may be functions of a document, with their keys: doc_to_text, doc_to_target and
/// doc_to_choice of the task, then those of its fewshot_config.
std::array<std::pair<const char*, const Json*>, 6> DocFunctionFields(const TaskConfig& config);

}  // namespace evald
