// samples_<task>.jsonl. Sources: lm_eval 0.4.13's evaluator.evaluate (the content of a sample) and
// EvaluationTracker.save_results_samples (its form).
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>

#include "base/file.h"
#include "base/hash.h"
#include "base/json_walk.h"
#include "base/parallel.h"
#include "evald/error.h"
#include "metrics/line_index.h"
#include "metrics/scoring/score_number.h"
#include "orchestrator/report/results.h"
#include "python/json.h"
#include "python/value.h"

namespace evald {
namespace {

constexpr int64_t kDocumentsPerThread = 32;  // rendered before they are written

using Sink = std::function<void(std::string_view)>;

// sanitize_list: every value inside in the form of str(). Holds no more than one of them.
void WriteSanitized(JsonWalk* walk, TextSpan value, const Sink& out) {
  if (walk->FirstOf(value) != '[')
    return out(
        PythonJson(PythonStr(walk->Parse(value, kRunLineLimits.bytes, kRunLineLimits.values))));
  const char* before = "[";
  walk->Items(value, [&](TextSpan item) {
    out(before);
    WriteSanitized(walk, item, out);
    before = ", ";
  });
  out(*before == '[' ? "[]" : "]");
}

Json Arguments(const TaskDefinition& task, const std::vector<Request>& requests) {
  Json arguments = Json::object();
  for (size_t i = 0; i < requests.size(); ++i) {
    const Request& request = requests[i];
    Json argument = {{"arg_0", request.context}};
    if (request.kind == RequestKind::kLoglikelihood) argument["arg_1"] = request.continuation;
    if (request.kind == RequestKind::kGenerateUntil) {
      const auto kwargs = task.config.find("generation_kwargs");
      argument["arg_1"] = kwargs == task.config.end() ? ToJson(request.sampling) : *kwargs;
    }
    arguments[fmt::format("gen_args_{}", i)] = std::move(argument);
  }
  return arguments;
}

// The response as str() writes its values.
Json Response(Generation&& generation) {
  const auto number = [&] { return PythonStr(NumberToScore(generation.loglikelihood)); };
  switch (generation.kind) {
    case RequestKind::kGenerateUntil:
      return std::move(generation.text);
    case RequestKind::kLoglikelihood:
      return {number(), PythonStr(generation.is_greedy)};
    case RequestKind::kLoglikelihoodRolling:
      return number();
  }
  throw Error(ErrorKind::kInternal, "a request kind without a response");
}

// The responses to each request, with repeats side by side. Returns in the same form which of them
// are truncated answers; "" if none is.
std::string WriteResponses(const SampleSource& source, int64_t doc_id, const Sink& out) {
  int idx = -1;
  bool any = false;
  std::string truncated = "[";
  out("[");
  source.generations(doc_id, [&](Generation&& generation) {
    const char* before = generation.idx == idx ? ", " : idx < 0 ? "[" : "], [";
    const bool cut = IsTruncatedAnswer(generation);
    any = any || cut;
    truncated += before;
    truncated += cut ? "true" : "false";
    idx = generation.idx;
    out(before);
    out(PythonJson(Response(std::move(generation))));
  });
  const char* end = idx < 0 ? "]" : "]]";
  out(end);
  return any ? truncated + end : "";
}

// The thinking before each answer, in the form of the responses.
void WriteThinking(const SampleSource& source, int64_t doc_id, const Sink& out) {
  int idx = -1;
  out("[");
  source.generations(doc_id, [&](Generation&& generation) {
    out(generation.idx == idx ? ", " : idx < 0 ? "[" : "], [");
    idx = generation.idx;
    out(PythonJson(Json(std::move(generation.thinking))));
  });
  out(idx < 0 ? "]" : "]]");
}

bool HasThinking(const std::vector<Request>& requests) {
  return std::any_of(requests.begin(), requests.end(),
                     [](const Request& request) { return request.sampling.think_end.given(); });
}

// One line of the file, and its part of the task's hash. Empty for a document that is left out.
struct Sample {
  std::string line;
  std::string hashes;
};

const FilterScore& ScoreOf(const TaskDefinition& task, const ScoredDocument& score,
                           const std::string& filter) {
  for (const FilterScore& entry : score.filters) {
    if (entry.filter == filter) return entry;
  }
  throw Error(ErrorKind::kInput,
              fmt::format("task '{}': the scores of document {} lack the filter '{}'", task.name,
                          score.doc_id, filter));
}

// Writes the document's line, and returns its part of the task's hash. Writes nothing for a
// document that is left out.
std::string WriteSample(const TaskDefinition& task, const PreparedTask& prepared,
                        const SampleSource& source, const std::string& filter, int64_t doc_id,
                        const Sink& out) {
  const std::optional<ScoredDocument> score = source.score(doc_id);
  if (!score) return {};
  const FilterScore& filtered = ScoreOf(task, *score, filter);
  const PreparedDocument document = prepared.Document(doc_id);
  const std::vector<Request> requests = prepared.Requests(doc_id, doc_id + 1);
  const std::string target = PythonStr(document.target);
  const std::string doc_hash = Sha256Hex(PythonJsonIndented(document.doc));
  const std::string prompt_hash = Sha256Hex(requests.empty() ? "" : requests[0].context);
  const std::string target_hash = Sha256Hex(target);
  Json head = {{"doc_id", doc_id}, {"doc", document.doc}, {"target", target}};
  head["arguments"] = Arguments(task, requests);
  std::string text = PythonJson(head);
  text.pop_back();  // the object goes on
  out(text);
  out(", \"resps\": ");
  const std::string truncated = WriteResponses(source, doc_id, out);
  if (!truncated.empty()) out(", \"evald_truncated\": " + truncated);
  if (HasThinking(requests)) {
    out(", \"evald_thinking\": ");
    WriteThinking(source, doc_id, out);
  }
  const std::string_view detail = source.detail ? source.detail(doc_id) : std::string_view();
  if (!detail.empty()) {
    out(", \"evald_detail\": ");
    out(detail);
  }
  out(", \"filtered_resps\": ");
  const std::string_view answers = source.filtered(doc_id, filter);
  TextInMemory memory(answers);
  JsonWalk walk(&memory, fmt::format("the scores of document {}", doc_id));
  WriteSanitized(&walk, walk.Value({0, answers.size()}), out);
  Json tail = {{"filter", filter}};
  Json names = Json::array();
  for (const auto& [name, value] : filtered.metrics.items()) names.push_back(name);
  tail["metrics"] = std::move(names);
  tail["doc_hash"] = doc_hash;
  tail["prompt_hash"] = prompt_hash;
  tail["target_hash"] = target_hash;
  for (const auto& [name, value] : filtered.metrics.items()) tail[name] = value;
  if (!filtered.fallbacks.empty()) tail["evald_fallbacks"] = filtered.fallbacks;
  out(", " + PythonJson(tail).substr(1) + "\n");
  return doc_hash + prompt_hash + target_hash;
}

// The end of the documents from `first` on that are rendered before they are written.
int64_t EndOfBlock(const SampleSource& source, int64_t first, int64_t end) {
  uint64_t bytes = 0;
  for (int64_t document = first; document < end; ++document) {
    bytes += source.bytes(document);
    if (bytes > kSamplesHeldMax) return document;
  }
  return end;
}

}  // namespace

std::string WriteSamples(const std::filesystem::path& path, const TaskDefinition& task,
                         const PreparedTask& prepared, const SampleSource& source, int threads) {
  PendingFile file(path);
  std::string hashes;
  const int64_t documents = prepared.document_count();
  const int64_t most = kDocumentsPerThread * std::max(threads, 1);
  for (const FilterPipeline& pipeline : task.filters) {
    for (int64_t first = 0, end = 0; first < documents; first = end) {
      end = EndOfBlock(source, first, std::min(first + most, documents));
      if (end == first) {  // too long to be held
        hashes += WriteSample(task, prepared, source, pipeline.name, first,
                              [&](std::string_view text) { file.Append(text); });
        ++end;
        continue;
      }
      std::vector<Sample> samples(static_cast<size_t>(end - first));
      ParallelFor(end - first, threads, [&](int64_t i) {
        Sample& sample = samples[static_cast<size_t>(i)];
        sample.hashes = WriteSample(task, prepared, source, pipeline.name, first + i,
                                    [&](std::string_view text) { sample.line += text; });
      });
      for (const Sample& sample : samples) {
        file.Append(sample.line);
        hashes += sample.hashes;
      }
    }
  }
  file.Commit();
  return Sha256Hex(hashes);
}

}  // namespace evald
