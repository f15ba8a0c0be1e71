#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "evald/task.h"
#include "orchestrator/prepare/input.h"
#include "prepared/cache.h"

namespace evald {

/// A leaf task of a run, prepared on disk.
struct SuiteTask {
  TaskDefinition definition;
  std::filesystem::path prepared;  ///< the prepared task's folder
  std::string request;             ///< the name by which the run asked for it (RequestOf)
  std::string tokenizer_key;       ///< names its tokens file; "" for none
  int64_t documents = 0;
  int64_t requests = 0;        ///< repeats included
  double tokens_in = 0;        ///< tokens of a document's prompts: a mean over the first ones
  double prefix_tokens = 0;    ///< tokens that all its prompts begin with
  double tokens_out_most = 0;  ///< tokens that a document may generate: a mean as well
  double prepare_s = 0;        ///< seconds that this run spent preparing it
};

/// All tasks of a run in the harness's order, and the groups over them.
struct Suite {
  std::vector<SuiteTask> tasks;
  std::vector<GroupDefinition> groups;
  std::optional<std::string> chat_template;  ///< the template that the prompts were written with
  std::string tokenizer_hash;  ///< of the tokenizer.json that made the tokens; "" for none
  /// Keeps the tasks in the cache while the run uses them; null if nothing does
  std::shared_ptr<const PreparedUse> use;
};

/// Callbacks during preparation. They are called on the thread that does the work.
struct PreparationHooks {
  std::function<void(size_t done, size_t total)> progress;  ///< called after each task
  std::function<void(const std::string& what)> doing;       ///< as in PrepareOptions
  /// Starts the processes for task code and for reading tables; null: tasks with functions of their
  /// own are refused
  sandbox::BoxMaker* boxes = nullptr;
  /// Ends the work with Error(kInfrastructure)
  const std::atomic<bool>* cancel = nullptr;
};

/// Finds the tasks and prepares them: reads documents, renders prompts, and makes tokens if `input`
/// asks for them. Uses what is in the cache. Reads other people's files in this process: see
/// Preparer. Throws Error(kUsage or kInput) for an unknown task or bad data.
Suite PrepareSuite(const PreparationInput& input, const PreparationHooks& hooks);

/// For PreparationInput::Work::kCheck: {"tasks": [names], "groups": [names], "programs": whether
/// programs of the model are run}, and "checkpoint" if it has complete weights: {"path", "bytes",
/// "files", "shards"}. All that is wrong is thrown at once, as a Problems. Throws like
/// PrepareSuite, and like CheckGates (orchestrator/verdict/judgement.h) for the input's gates.
Json CheckInput(const PreparationInput& input, const PreparationHooks& hooks);

/// For kJudge: the Judgement of JudgeResults as JSON. Throws like it.
Json JudgeInput(const PreparationInput& input, const PreparationHooks& hooks);

/// For kDescribe: what `evald validate` shows of checkpoint, prompts and tasks. Throws like
/// CheckInput.
Json DescribeInput(const PreparationInput& input, const PreparationHooks& hooks);

Json ToJson(const SuiteTask& task);
/// Throws Error(kInput).
SuiteTask SuiteTaskFromJson(const Json& json);

}  // namespace evald
