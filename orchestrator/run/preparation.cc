#include "orchestrator/run/preparation.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "datasets/task_set.h"
#include "evald/error.h"
#include "orchestrator/run/shared_prefix.h"
#include "prepared/prepared_task.h"

namespace evald {
namespace {

// Tokens of an average document, from the first ones.
void CountTokens(const PreparedTask& prepared, SuiteTask* task) {
  constexpr int64_t kSample = 32;
  constexpr double kBytesPerToken = 4;
  const int64_t count = std::min(kSample, prepared.document_count());
  for (const Request& request : prepared.Requests(0, count)) {
    task->tokens_in += request.context_tokens.empty() ? static_cast<double>(request.context.size()) / kBytesPerToken
                                                      : static_cast<double>(request.context_tokens.size());
    task->tokens_out_most += request.kind == RequestKind::kGenerateUntil
                                 ? static_cast<double>(request.sampling.max_gen_toks)
                                 : static_cast<double>(request.continuation.size()) / kBytesPerToken;
  }
  const double scale = static_cast<double>(prepared.repeats()) / static_cast<double>(std::max<int64_t>(1, count));
  task->tokens_in *= scale;
  task->tokens_out_most *= scale;
}

SuiteTask PrepareOne(const LeafTask& leaf, const PrepareOptions& options, const Tokenizer* tokenizer,
                     int threads) {
  SuiteTask task;
  const int64_t begin = MonotonicMicros();
  task.prepared = PrepareTask(leaf, options);
  PreparedTask prepared(task.prepared);
  task.definition = TaskFromJson(prepared.task(), (task.prepared / "task.json").string());
  if (tokenizer != nullptr) {
    task.tokenizer_key = tokenizer->key();
    prepared.MakeTokens(task.tokenizer_key,
                        [&](Request* request) { EncodeRequest(*tokenizer, request); }, threads);
  }
  task.documents = prepared.document_count();
  task.requests = prepared.request_count() * prepared.repeats();
  CountTokens(prepared, &task);
  task.prefix_tokens = SharedPrefixTokens(prepared);
  task.prepare_s = static_cast<double>(MonotonicMicros() - begin) / 1e6;
  return task;
}

}  // namespace

PromptOptions PromptOptionsOf(const EvalConfig& config) {
  PromptOptions options;
  options.system_instruction = config.prompts.system_instruction;
  options.fewshot_as_multiturn = config.prompts.Multiturn();
  if (config.prompts.chat_template) {
    options.chat = std::make_shared<ChatTemplate>(
        ChatTemplate::Load(config.checkpoint, config.prompts.template_name, config.prompts.chat_date));
  }
  return options;
}

Suite PrepareSuite(const EvalConfig& config, const Tokenizer* tokenizer, int threads,
                   const std::function<void(size_t, size_t)>& progress,
                   const std::atomic<bool>& cancel) {
  const TaskRegistry registry(config.task_dirs);
  const ResolvedTasks resolved = registry.Resolve(config.tasks);
  PrepareOptions options;
  options.data_dir = config.data_dir;
  options.cache_dir = config.cache_dir;
  options.fewshot_seed = config.fewshot_seed;
  options.cancel = &cancel;
  options.prompts = PromptOptionsOf(config);
  Suite suite;
  suite.prompts = options.prompts;
  suite.groups = resolved.groups;
  progress(0, resolved.leaves.size());
  for (const LeafTask& leaf : resolved.leaves) {
    if (cancel) throw Error(ErrorKind::kInfrastructure, "preparation was cancelled");
    suite.tasks.push_back(PrepareOne(leaf, options, tokenizer, threads));
    progress(suite.tasks.size(), resolved.leaves.size());
  }
  return suite;
}

}  // namespace evald
