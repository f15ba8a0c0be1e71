#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "prepared/prepared_task.h"

namespace evald {

/// The forms of generations that evald reads.
enum class GenerationsForm {
  kEvald,        ///< evald's own lines: {"doc_id", "idx", "repeat", "text", ...}
  kSamples,      ///< lm-evaluation-harness's samples_*.jsonl: {"doc_id", "resps", ...}
  kCompletions,  ///< HumanEval's: {"task_id", "completion"}, several of one task_id being repeats
};

const char* ToString(GenerationsForm form);

/// What was read.
struct ImportedGenerations {
  GenerationsForm form = GenerationsForm::kEvald;
  int64_t generations = 0;
  int64_t documents = 0;         ///< that have their generations
  int repeats = 1;               ///< of every request
  std::vector<int64_t> missing;  ///< documents that the file does not have
  /// Lines of a samples file whose prompt_hash is not that of the task's prompt: its answers were
  /// given to another prompt.
  int64_t other_prompts = 0;
  int64_t beyond_limit =
      0;  ///< lines passed over: they answer documents that the task's limit leaves out
};

/// Reads a file of generations for `task`, plain or gzipped, in whichever form its first line has,
/// and commits them as evald's lines to `out` (in the file's order). Holds no more than one line of
/// at most 256 MiB at a time.
///
/// Where a limit leaves documents of the task out, their lines are passed over. Of completions
/// these are all whose task_id is none of the documents that are left.
///
/// Throws Error(kInput) "file:line: ..." for a broken line, a form that changes, a document or
/// task_id that the task does not have, a request answered twice, and for a document with too few
/// answers; Error(kInfrastructure) when `out` cannot be written. Missing documents are not an error
/// here: see `missing`.
ImportedGenerations ImportGenerations(const PreparedTask& task, const std::filesystem::path& file,
                                      const std::filesystem::path& out);

}  // namespace evald
