#include "orchestrator/run/preparation.h"

#include <fmt/format.h>

#include "datasets/task_set.h"
#include "evald/error.h"
#include "prepared/prepared_task.h"

namespace evald {
namespace {

// Tokens in and at most out of an average document, from its first documents.
double CostPerDocument(const PreparedTask& task) {
  constexpr int64_t kSample = 32;
  constexpr double kBytesPerToken = 4;
  const int64_t count = std::min(kSample, task.document_count());
  double cost = 0;
  for (const Request& request : task.Requests(0, count)) {
    const double tokens = request.context_tokens.empty()
                              ? static_cast<double>(request.context.size()) / kBytesPerToken
                              : static_cast<double>(request.context_tokens.size());
    cost += tokens + (request.kind == RequestKind::kGenerateUntil
                          ? static_cast<double>(request.sampling.max_gen_toks)
                          : 1.0);
  }
  return std::max(1.0, cost * task.repeats() / static_cast<double>(std::max<int64_t>(1, count)));
}

SuiteTask PrepareOne(const LeafTask& leaf, const PrepareOptions& options, const Tokenizer* tokenizer,
                     int threads) {
  SuiteTask task;
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
  task.cost_per_document = CostPerDocument(prepared);
  return task;
}

}  // namespace

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
  Suite suite;
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
