#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/read_roots.h"
#include "datasets/task_config.h"
#include "datasets/task_set.h"
#include "evald/error.h"

namespace evald {

/// The split whose documents are evaluated.
std::string EvaluatedSplit(const TaskConfig& config);

/// The split from which few-shot examples are drawn, if the task takes any from a split.
std::optional<std::string> FewshotSplit(const TaskConfig& config);

/// A split that a task reads, and the files of it that were found.
struct SplitFound {
  std::string dataset;  ///< dataset_path
  std::string part;     ///< dataset_name, or ""
  std::string split;
  std::vector<std::string> files;      ///< none if they were not found
  bool own = false;                    ///< the task's file says where the files are
  std::vector<std::string> hub_files;  ///< files of the hub that it names: hf://datasets/...
  /// Where files of a dataset of the hub are looked for, but for the copy of its repository
  std::vector<std::string> places;
  bool tables = false;           ///< the files are tables, which the package pyarrow reads
  std::optional<Error> failure;  ///< why no files were found
};

/// Looks for the files of each split that the task reads, without reading them.
std::vector<SplitFound> FindTaskData(const LeafTask& task, const std::filesystem::path& data_dir,
                                     const ReadRoots& roots);

/// The names of all Python functions that the task's file names, built in or not
/// (datasets/known_modules.h).
std::vector<std::string> FunctionsOf(const LeafTask& task);

/// Throws Error(kInput) for a function of documents or few-shot examples that is not built in, as
/// PrepareTask does without task code.
void CheckDocumentFunctions(const LeafTask& task);

/// Whether answers are compared by the package math-verify.
bool ComparesMathematics(const LeafTask& task);

/// Most tokens of an answer (max_gen_toks); 0 if the task generates no text.
int64_t MostTokensOfAnswer(const LeafTask& task);

/// Whether the task's metric runs programs of the model.
bool RunsPrograms(const LeafTask& task);

}  // namespace evald
