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
  kCompletions,  ///< HumanEval's: {"task_id", "completion"}; lines with one task_id are repeats
};

const char* ToString(GenerationsForm form);

/// The result of reading a file of generations.
struct ImportedGenerations {
  GenerationsForm form = GenerationsForm::kEvald;
  int64_t generations = 0;
  int64_t documents = 0;         ///< documents with generations
  int repeats = 1;               ///< repeats of every request
  std::vector<int64_t> missing;  ///< documents that the file lacks
  /// Lines of a samples file whose prompt_hash is not the task's: they answer another prompt.
  int64_t other_prompts = 0;
  /// Skipped lines: they answer documents that the task's limit leaves out
  int64_t beyond_limit = 0;
};

/// Reads a file of generations for `task`, plain or gzipped, in the form of its first line, and
/// commits them as evald's lines to `out` (in the file's order). Holds only one line, of at most
/// 256 MiB, at a time.
///
/// If a limit leaves out documents of the task, their lines are skipped. For completions, these are
/// all lines whose task_id belongs to none of the remaining documents.
///
/// Throws Error(kInput) "file:line: ..." for a broken line, a changing form, a document or task_id
/// that the task does not have, a request that is answered twice, and a document with too few
/// answers. Throws Error(kInfrastructure) if `out` cannot be written. Missing documents are no
/// error here: see `missing`.
ImportedGenerations ImportGenerations(const PreparedTask& task, const std::filesystem::path& file,
                                      const std::filesystem::path& out);

}  // namespace evald
