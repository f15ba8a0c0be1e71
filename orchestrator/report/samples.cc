// samples_<task>.jsonl. Sources: lm_eval 0.4.13's evaluator.evaluate (the content of a sample) and
// EvaluationTracker.save_results_samples (its form).
#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "evald/error.h"
#include "metrics/scoring/score_number.h"
#include "orchestrator/report/results.h"
#include "python/json.h"
#include "python/value.h"

namespace evald {
namespace {

constexpr int64_t kDocumentsPerThread = 32;  // rendered before they are written

// sanitize_list: every value inside in the form of str().
Json Sanitized(const Json& value) {
  if (!value.is_array()) return PythonStr(value);
  Json list = Json::array();
  for (const Json& item : value) list.push_back(Sanitized(item));
  return list;
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

// The responses to each request, with repeats side by side.
Json Responses(const std::vector<Generation>& generations) {
  Json responses = Json::array();
  for (const Generation& generation : generations) {
    if (static_cast<size_t>(generation.idx) >= responses.size()) responses.push_back(Json::array());
    Json response;
    if (generation.kind == RequestKind::kGenerateUntil) {
      response = generation.text;
    } else if (generation.kind == RequestKind::kLoglikelihood) {
      response = {NumberToScore(generation.loglikelihood), generation.is_greedy};
    } else {
      response = NumberToScore(generation.loglikelihood);
    }
    responses.back().push_back(std::move(response));
  }
  return responses;
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

Sample Render(const TaskDefinition& task, const PreparedTask& prepared, const SampleSource& source,
              const std::string& filter, int64_t doc_id) {
  const std::optional<ScoredDocument> score = source.score(doc_id);
  if (!score) return {};
  const FilterScore& filtered = ScoreOf(task, *score, filter);
  const PreparedDocument document = prepared.Document(doc_id);
  const std::vector<Request> requests = prepared.Requests(doc_id, doc_id + 1);
  const std::string target = PythonStr(document.target);
  const std::string doc_hash = Sha256Hex(PythonJsonIndented(document.doc));
  const std::string prompt_hash = Sha256Hex(requests.empty() ? "" : requests[0].context);
  const std::string target_hash = Sha256Hex(target);
  Json sample = Json::object();
  sample["doc_id"] = doc_id;
  sample["doc"] = document.doc;
  sample["target"] = target;
  sample["arguments"] = Arguments(task, requests);
  sample["resps"] = Sanitized(Responses(source.generations(doc_id)));
  sample["filtered_resps"] = Sanitized(filtered.filtered);
  sample["filter"] = filter;
  Json names = Json::array();
  for (const auto& [name, value] : filtered.metrics.items()) names.push_back(name);
  sample["metrics"] = std::move(names);
  sample["doc_hash"] = doc_hash;
  sample["prompt_hash"] = prompt_hash;
  sample["target_hash"] = target_hash;
  for (const auto& [name, value] : filtered.metrics.items()) sample[name] = value;
  if (!filtered.fallbacks.empty()) sample["evald_fallbacks"] = filtered.fallbacks;
  return {PythonJson(sample) + "\n", doc_hash + prompt_hash + target_hash};
}

}  // namespace

std::string WriteSamples(const std::filesystem::path& path, const TaskDefinition& task,
                         const PreparedTask& prepared, const SampleSource& source, int threads) {
  PendingFile file(path);
  std::string hashes;
  const int64_t documents = prepared.document_count();
  const int64_t block = kDocumentsPerThread * std::max(threads, 1);
  for (const FilterPipeline& pipeline : task.filters) {
    for (int64_t first = 0; first < documents; first += block) {
      std::vector<Sample> samples(static_cast<size_t>(std::min(block, documents - first)));
      ParallelFor(static_cast<int64_t>(samples.size()), threads, [&](int64_t i) {
        samples[static_cast<size_t>(i)] = Render(task, prepared, source, pipeline.name, first + i);
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
