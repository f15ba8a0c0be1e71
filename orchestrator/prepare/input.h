#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/read_roots.h"
#include "datasets/documents.h"
#include "datasets/task_set.h"
#include "evald/json.h"
#include "orchestrator/config/eval_config.h"
#include "orchestrator/verdict/judgement.h"

namespace evald {

/// What a process is asked that reads and prepares other people's files: the part of an EvalConfig
/// that it needs, or results to judge.
struct PreparationInput {
  enum class Work {
    kCheck,     ///< only finds the tasks, and looks whether the checkpoint is whole
    kDescribe,  ///< reads the data too, and says what it comes to
    kPrepare,   ///< prepares all in the cache
    kJudge,     ///< judges `judge`, and looks at no task
  };
  Work work = Work::kPrepare;
  std::filesystem::path checkpoint;
  bool weights = false;  ///< the checkpoint has to have whole weights
  bool tokens = false;   ///< tokens are made too
  std::vector<TaskRequest> tasks;
  std::filesystem::path data_dir;
  std::vector<std::filesystem::path> task_dirs;
  std::filesystem::path cache_dir;
  PromptsConfig prompts;
  uint64_t fewshot_seed = 1234;
  ReadRoots roots;
  LimitsConfig limits;
  int threads = 1;  ///< that make tokens
  bool baseline_complete =
      false;           ///< kCheck, kDescribe: a baseline that is still being worked on is refused
  JudgeRequest judge;  ///< kCheck, kDescribe: its policy is checked by CheckGates. The baseline
                       ///< lies below `roots`
};

/// Whether a configuration's engine is given weights of ours.
bool NeedsStaging(const EvalConfig& config);

/// Whether its engine takes token ids instead of text.
bool WantsTokens(const EvalConfig& config);

/// All that a run needs prepared, with one thread for each processor, and its gates.
PreparationInput InputOf(const EvalConfig& config, PreparationInput::Work work);

/// Results to judge, with one thread for each processor.
PreparationInput InputOf(JudgeRequest request, const ReadRoots& roots, const LimitsConfig& limits);

Json ToJson(const PreparationInput& input);
/// Throws Error(kInput).
PreparationInput PreparationInputFromJson(const Json& json);

}  // namespace evald
