#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/read_roots.h"
#include "datasets/documents.h"
#include "datasets/task_set.h"
#include "evald/json.h"
#include "orchestrator/config/eval_config.h"
#include "orchestrator/verdict/judgement.h"

namespace evald {

/// The order to a process that reads and prepares other people's files: the part of an EvalConfig
/// that it needs, or results to judge.
struct PreparationInput {
  enum class Work {
    kCheck,     ///< only finds the tasks, and checks that the checkpoint is complete
    kDescribe,  ///< also reads the data, and describes it
    kPrepare,   ///< prepares everything in the cache
    kJudge,     ///< judges `judge`, and reads no task
  };
  Work work = Work::kPrepare;
  std::filesystem::path checkpoint;
  bool weights = false;  ///< the checkpoint must have complete weights
  bool tokens = false;   ///< tokens are also made
  /// The engine's context length as it is set, 0 if it is not, for an engine that reads the
  /// checkpoint itself (EngineKind::reads_checkpoint); absent for others. kCheck, kDescribe: the
  /// model must then be one that is served
  std::optional<int64_t> max_length;
  std::string max_length_place;  ///< "eval.yaml:3: key 'engine.max_length'"
  std::vector<TaskRequest> tasks;
  std::filesystem::path data_dir;
  std::vector<std::filesystem::path> task_dirs;
  TaskCodeOptions task_code;
  std::filesystem::path cache_dir;
  uint64_t cache_bytes_max = kCacheBytesMax;
  std::filesystem::path use;  ///< kPrepare: the list of the prepared tasks that the run uses
  PromptsConfig prompts;
  Json judge_settings;  ///< of the judge that tasks ask; null: the run names none
  uint64_t fewshot_seed = 1234;
  ReadRoots roots;
  LimitsConfig limits;
  int threads = 1;  ///< threads that make tokens
  /// The model's programs will run on this host: a task in a language without its compiler is
  /// refused
  bool programs_here = false;
  /// kCheck, kDescribe: a baseline that is not finished is refused
  bool baseline_complete = false;
  /// kCheck, kDescribe: CheckGates checks its policy. The baseline lies below `roots`
  JudgeRequest judge;
};

/// Whether a configuration's engine gets weights from us.
bool NeedsStaging(const EvalConfig& config);

/// Whether its engine takes token ids instead of text.
bool WantsTokens(const EvalConfig& config);

/// Everything that a run needs prepared, with one thread for each processor, and its gates.
PreparationInput InputOf(const EvalConfig& config, PreparationInput::Work work);

/// Results to judge, with one thread for each processor.
PreparationInput InputOf(JudgeRequest request, const ReadRoots& roots, const LimitsConfig& limits);

Json ToJson(const PreparationInput& input);
/// Throws Error(kInput).
PreparationInput PreparationInputFromJson(const Json& json);

}  // namespace evald
