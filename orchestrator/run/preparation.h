#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "evald/task.h"
#include "orchestrator/prepare/input.h"

namespace evald {

/// A leaf task of a run, prepared on disk.
struct SuiteTask {
  TaskDefinition definition;
  std::filesystem::path prepared;  ///< the prepared task's folder
  std::string tokenizer_key;       ///< names its tokens file; "" for none
  int64_t documents = 0;
  int64_t requests = 0;        ///< times repeats
  double tokens_in = 0;        ///< of a document's prompts, mean of the first ones
  double prefix_tokens = 0;    ///< that all of its prompts begin with
  double tokens_out_most = 0;  ///< that a document may generate, likewise
  double prepare_s = 0;        ///< seconds that this run prepared it for
};

/// All tasks of a run in the harness's order, and the groups over them.
struct Suite {
  std::vector<SuiteTask> tasks;
  std::vector<GroupDefinition> groups;
  std::optional<std::string> chat_template;  ///< that their prompts were written with
  std::string tokenizer_hash;  ///< of the tokenizer.json that tokens were made with; "" for none
};

/// What the one who waits hears of the work, from the thread that does it.
struct PreparationHooks {
  std::function<void(size_t done, size_t total)> progress;  ///< after each task
  std::function<void(const std::string& what)> doing;       ///< as PrepareOptions has it
  const std::atomic<bool>* cancel = nullptr;                ///< ends it with Error(kInfrastructure)
};

/// Finds the tasks and prepares them: documents read, prompts rendered, and tokens made where
/// `input` says so. What is in the cache is used as it is. Reads other people's files in this
/// process: see Preparer. Throws Error(kUsage or kInput) for an unknown task or bad data.
Suite PrepareSuite(const PreparationInput& input, const PreparationHooks& hooks);

/// For PreparationInput::Work::kCheck: {"tasks": [names], "groups": [names]}, and "checkpoint"
/// where it has whole weights: {"path", "bytes", "files", "shards"}. Throws as PrepareSuite does,
/// and as CheckGates (orchestrator/verdict/judgement.h) for the input's gates.
Json CheckInput(const PreparationInput& input, const PreparationHooks& hooks);

/// For kJudge: JudgeResults, as a Judgement's JSON. Throws as that does.
Json JudgeInput(const PreparationInput& input, const PreparationHooks& hooks);

/// For kDescribe: what `evald validate` shows of checkpoint, prompts and tasks. Throws as
/// CheckInput does.
Json DescribeInput(const PreparationInput& input, const PreparationHooks& hooks);

Json ToJson(const SuiteTask& task);
/// Throws Error(kInput).
SuiteTask SuiteTaskFromJson(const Json& json);

}  // namespace evald
