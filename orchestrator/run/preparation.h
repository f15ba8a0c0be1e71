#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "evald/task.h"
#include "orchestrator/config/eval_config.h"
#include "tokenizer/tokenizer.h"

namespace evald {

/// A leaf task of a run, prepared on disk.
struct SuiteTask {
  TaskDefinition definition;
  std::filesystem::path prepared;  ///< the prepared task's folder
  std::string tokenizer_key;       ///< names its tokens file; "" for none
  int64_t documents = 0;
  int64_t requests = 0;            ///< times repeats
  double tokens_in = 0;            ///< of a document's prompts, mean of the first ones
  double prefix_tokens = 0;        ///< that all of its prompts begin with
  double tokens_out_most = 0;      ///< that a document may generate, likewise
  double prepare_s = 0;            ///< seconds that this run prepared it for
};

/// All tasks of a run in the harness's order, and the groups over them.
struct Suite {
  std::vector<SuiteTask> tasks;
  std::vector<GroupDefinition> groups;
  PromptOptions prompts;      ///< how their prompts were written
  std::string tokenizer_hash;  ///< of the tokenizer.json that tokens were made with; "" for none
};

/// The prompts' options, the checkpoint's chat template read. Throws Error(kInput) where it has none.
PromptOptions PromptOptionsOf(const EvalConfig& config);

/// Finds the configured tasks and prepares them: documents read, prompts rendered, and, when
/// `tokenizer` is given, tokens made. What is in the cache is used as it is. `progress(done, total)`
/// is called from this thread after each task; `cancel` ends it with Error(kInfrastructure).
/// Throws Error(kUsage or kInput) for an unknown task or bad data.
Suite PrepareSuite(const EvalConfig& config, const Tokenizer* tokenizer, int threads,
                   const std::function<void(size_t done, size_t total)>& progress,
                   const std::atomic<bool>& cancel);

}  // namespace evald
