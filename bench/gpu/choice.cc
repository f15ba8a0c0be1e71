#include <fmt/format.h>

#include <atomic>
#include <thread>

#include "base/clock.h"
#include "bench/gpu/gpu_bench.h"
#include "bench/gpu/prefix_work.h"
#include "evald/error.h"
#include "orchestrator/config/eval_config.h"
#include "orchestrator/prepare/preparation.h"
#include "prepared/prepared_task.h"

namespace evald::bench {
namespace {

struct Questions {
  std::vector<Request> requests;
  int64_t documents = 0;
  size_t tasks = 0;
  double prepare_seconds = 0;
};

// The requests as `evald run` prepares them, with tokens.
Questions Prepare(const Options& options, const std::filesystem::path& checkpoint) {
  const int64_t begin = MonotonicMicros();
  Json task = {{"task", "mmlu"}};
  if (options.quick) task.update({{"limit_total", 57}, {"num_fewshot", 0}});
  const Json config = {{"checkpoint", checkpoint.string()},
                       {"tasks", Json::array({task})},
                       {"data_dir", options.data_dir.string()},
                       {"cache_dir", (options.scratch / "cache").string()},
                       {"state_dir", (options.scratch / "state").string()}};
  const EvalConfig eval = ParseEvalConfig(config.dump(), options.scratch / "eval.yaml", {});
  PreparationInput input = InputOf(eval, PreparationInput::Work::kPrepare);
  input.tokens = true;
  const Suite suite = PrepareSuite(input, {[](size_t, size_t) {}, [](const std::string&) {}});
  Questions questions;
  questions.tasks = suite.tasks.size();
  for (const SuiteTask& task : suite.tasks) {
    PreparedTask prepared(task.prepared);
    if (!prepared.AttachTokens(task.tokenizer_key)) {
      throw Error(ErrorKind::kInternal, task.prepared.string() + ": has no tokens");
    }
    questions.documents += prepared.document_count();
    for (Request& request : prepared.Requests(0, prepared.document_count())) {
      questions.requests.push_back(std::move(request));
    }
  }
  questions.prepare_seconds = static_cast<double>(MonotonicMicros() - begin) / 1e6;
  return questions;
}

// The tokens that an engine computes: all but the last, whose probability is asked for.
PrefixWork WorkOf(const std::vector<Request>& requests) {
  std::vector<std::vector<int32_t>> sequences;
  for (const Request& request : requests) {
    std::vector<int32_t> tokens = request.context_tokens;
    tokens.insert(tokens.end(), request.continuation_tokens.begin(),
                  request.continuation_tokens.end());
    tokens.pop_back();
    sequences.push_back(std::move(tokens));
  }
  return PrefixWorkOf(std::move(sequences));
}

// Throws if a prompt was truncated: the missing tokens would be counted as work.
void CheckWhole(const Answered& answered) {
  for (const Generation& generation : answered.generations) {
    if (generation.truncated == 0) continue;
    throw Error(ErrorKind::kInput, "prompts are longer than the checkpoint's context",
                "give a checkpoint with a max_position_embeddings of 8192 or more");
  }
}

}  // namespace

Result RunGpuChoice(const Options& options) {
  const auto checkpoint = GpuCheckpoint(options);
  UseBenchGpu(options);
  const Questions questions = Prepare(options, checkpoint);
  const PrefixWork work = WorkOf(questions.requests);
  const ModelShape model(checkpoint);
  const auto engine = GpuEngine(options, Json::object());
  engine->Load(checkpoint);
  const double before = MatrixRate(SizesOf(options));
  // The first questions, in another order, let the engine choose its algorithms and take its
  // buffers.
  AnswerAll(engine.get(),
            {questions.requests.rbegin(),
             questions.requests.rbegin() + static_cast<int64_t>(questions.requests.size() / 50)});
  const Json warmed = engine->WorkReport();
  const Answered answered = AnswerAll(engine.get(), questions.requests);
  const Json done = engine->WorkReport();
  if (!options.quick) CheckWhole(answered);
  const double after = MatrixRate(SizesOf(options));

  const auto documents = static_cast<double>(questions.documents);
  const double flops =
      model.Flops(static_cast<double>(work.tokens_distinct), work.pairs, documents);
  const int64_t computed =
      done.at("rows_computed").get<int64_t>() - warmed.at("rows_computed").get<int64_t>();
  Result result;
  result.unit = "TFLOP/s";
  result.value = flops / answered.seconds / 1e12;
  result.baseline = "a bf16 product of 8,192 x 8,192 x 8,192, before and after";
  result.baseline_value = std::max(before, after) / 1e12;
  result.target = 0.6;
  result.details = {
      {"questions_per_s", documents / answered.seconds},
      {"seconds", answered.seconds},
      {"questions", questions.documents},
      {"subjects", questions.tasks},
      {"requests", questions.requests.size()},
      {"tokens_asked", work.tokens_asked},
      {"tokens_distinct", work.tokens_distinct},
      {"tokens_computed", computed},
      {"prepare_seconds", questions.prepare_seconds},
      {"work", done},
      {"product_tflops", {before / 1e12, after / 1e12}},
      {"fast", options.fast},
      {"counted", "of distinct tokens alone: what is computed twice counts as time, not as work"},
      {"engine", ToJson(engine->Info())}};
  return result;
}

}  // namespace evald::bench
