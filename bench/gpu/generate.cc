#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "base/jsonl.h"
#include "bench/gpu/chat_trace.h"
#include "bench/gpu/gpu_bench.h"
#include "evald/error.h"

namespace evald::bench {
namespace {

constexpr double kTokensPerSecond = 16'000;  // the rate to reach
constexpr uint64_t kTraceSeed = 7;

// The least work for these requests, in operations and bytes. With any schedule each token is
// multiplied once, each step reads the weights, and each token of an answer reads the keys and
// values to which it attends.
struct Bound {
  double flops = 0;
  double bytes = 0;
  double steps = 0;  ///< with `concurrency` sequences at once

  Bound(const ModelShape& model, const std::vector<ChatLengths>& trace, int concurrency) {
    double outputs = 0, longest = 0;
    for (const ChatLengths& lengths : trace) {
      const double rows = lengths.prompt + lengths.output - 1;
      flops += model.Flops(rows, rows * (rows + 1) / 2, lengths.output);
      const double read = (lengths.output - 1) * (lengths.prompt + lengths.output / 2.0);
      bytes += model.KvBytes(read);
      outputs += lengths.output;
      longest = std::max<double>(longest, lengths.output);
    }
    steps = std::max(longest, std::ceil(outputs / concurrency));
    bytes += steps * model.WeightBytes();
  }

  double Seconds(double matrix_rate, double memory_rate) const {
    return std::max(flops / matrix_rate, bytes / memory_rate);
  }
};

// The least time of a scheduler that does not know how long answers get. Requests begin in their
// order, `concurrency` at once, with up to kRowsMost tokens in a step. Each step takes the time of
// its operations or of its bytes, whichever is longer. Once most answers have ended, a step reads
// all weights for few tokens: therefore this time is longer than Bound's.
double ScheduleSeconds(const ModelShape& model, const std::vector<ChatLengths>& trace,
                       int concurrency, double matrix_rate, double memory_rate) {
  constexpr double kRowsMost = 8192;
  struct Active {
    double positions, left;
  };
  std::vector<Active> active;
  size_t next = 0;
  double seconds = 0;
  while (next < trace.size() || !active.empty()) {
    double rows = static_cast<double>(active.size()), pairs = 0, read = 0;
    for (const Active& sequence : active) read += sequence.positions;
    pairs = read;
    while (next < trace.size() && active.size() < static_cast<size_t>(concurrency) &&
           rows + trace[next].prompt <= kRowsMost) {
      const double prompt = trace[next].prompt;
      rows += prompt;
      pairs += prompt * (prompt + 1) / 2;
      active.push_back({prompt, static_cast<double>(trace[next].output)});
      ++next;
    }
    const double flops = model.Flops(rows, pairs, static_cast<double>(active.size()));
    seconds +=
        std::max(flops / matrix_rate, (model.WeightBytes() + model.KvBytes(read)) / memory_rate);
    for (Active& sequence : active) {
      ++sequence.positions;
      --sequence.left;
    }
    std::erase_if(active, [](const Active& sequence) { return sequence.left <= 0; });
  }
  return seconds;
}

std::vector<Request> RequestsOf(const std::vector<ChatLengths>& trace, int vocab_size,
                                uint64_t seed) {
  std::vector<Request> requests;
  for (size_t i = 0; i < trace.size(); ++i) {
    Request request;
    request.doc_id = static_cast<int64_t>(i);
    request.context_tokens = RandomTokens(trace[i].prompt, vocab_size, seed + i);
    request.sampling.max_gen_toks = trace[i].output;
    requests.push_back(std::move(request));
  }
  return requests;
}

void WriteLengths(const std::filesystem::path& file, const std::vector<ChatLengths>& trace) {
  Json pairs = Json::array();
  for (const ChatLengths& lengths : trace) pairs.push_back({lengths.prompt, lengths.output});
  WriteFileAtomic(file, ToLine(pairs));
}

void CheckLengths(const std::vector<ChatLengths>& trace, const Answered& answered) {
  for (size_t i = 0; i < trace.size(); ++i) {
    if (answered.generations[i].tokens_out == trace[i].output) continue;
    throw Error(ErrorKind::kInternal,
                fmt::format("request {}: {} tokens were generated, {} are wanted", i,
                            answered.generations[i].tokens_out, trace[i].output),
                "the checkpoint must not end texts by itself (bench/gpu/make_checkpoint.py)");
  }
}

}  // namespace

Result RunGpuGenerate(const Options& options) {
  const auto checkpoint = GpuCheckpoint(options);
  UseBenchGpu(options);
  const ModelShape model(checkpoint);
  std::vector<ChatLengths> trace = ChatTrace(options.quick ? 12 : 1000, kTraceSeed);
  if (options.quick) {
    for (ChatLengths& lengths : trace) {
      lengths = {std::min(lengths.prompt, 24), std::min(lengths.output, 8)};
    }
  }
  if (!options.lengths.empty()) WriteLengths(options.lengths, trace);
  const double matrix_rate = MatrixRate(SizesOf(options));
  const double memory_rate = MemoryRate(SizesOf(options));

  Result result;
  Json rounds = Json::array();
  std::vector<int> concurrencies = {256, 512, 1000};
  if (options.quick) concurrencies = {8};
  if (options.concurrency > 0) concurrencies = {options.concurrency};
  for (const int concurrency : concurrencies) {
    const auto engine = GpuEngine(
        options, {{"concurrency", concurrency}, {"max_length", options.quick ? 128 : 4096}});
    engine->Load(checkpoint);
    AnswerAll(engine.get(), RequestsOf({trace.begin(), trace.begin() + trace.size() / 8},
                                       model.vocab_size, 1'000'000));
    const Answered answered = AnswerAll(engine.get(), RequestsOf(trace, model.vocab_size, 1));
    CheckLengths(trace, answered);
    const Bound bound(model, trace, concurrency);
    const double rate = static_cast<double>(answered.tokens_out) / answered.seconds;
    const double bound_seconds = bound.Seconds(matrix_rate, memory_rate);
    const double schedule_seconds =
        ScheduleSeconds(model, trace, concurrency, matrix_rate, memory_rate);
    rounds.push_back({{"concurrency", concurrency},
                      {"seconds", answered.seconds},
                      {"tokens_in", answered.tokens_in},
                      {"tokens_out", answered.tokens_out},
                      {"output_tokens_per_s", rate},
                      {"bound_seconds", bound_seconds},
                      {"of_bound", bound_seconds / answered.seconds},
                      {"schedule_seconds", schedule_seconds},
                      {"of_schedule", schedule_seconds / answered.seconds},
                      {"bound_flops_seconds", bound.flops / matrix_rate},
                      {"bound_bytes_seconds", bound.bytes / memory_rate},
                      {"least_steps", bound.steps},
                      {"load", engine->LoadReport()},
                      {"work", engine->WorkReport()},
                      {"engine", ToJson(engine->Info())}});
    result.value = std::max(result.value, rate);
  }
  result.unit = "tokens/s";
  result.baseline = "the bar; SGLang has been reported at 16,215 and vLLM at 12,553 on an H100";
  result.baseline_value = kTokensPerSecond;
  result.target = 1;
  result.details = {{"rounds", rounds},
                    {"requests", trace.size()},
                    {"fast", options.fast},
                    {"matrix_tflops", matrix_rate / 1e12},
                    {"memory_gb_per_s", memory_rate / 1e9}};
  return result;
}

}  // namespace evald::bench
