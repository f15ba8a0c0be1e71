// samples_<task>.jsonl: lm_eval 0.4.13's evaluator.evaluate (what a sample holds) and
// EvaluationTracker.save_results_samples (how it is written).
#include <fmt/format.h>

#include "base/file.h"
#include "base/hash.h"
#include "evald/error.h"
#include "jinja/python_value.h"
#include "metrics/aggregations.h"
#include "orchestrator/report/python_json.h"
#include "orchestrator/report/results.h"

namespace evald {
namespace {

// sanitize_list: every value inside as str() gives it.
Json Sanitized(const Json& value) {
  if (!value.is_array()) return jinja::PythonStr(value);
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

// The responses of each request, repeats side by side.
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

class SamplesWriter {
 public:
  SamplesWriter(const std::filesystem::path& path, const TaskDefinition& task,
                const PreparedTask& prepared)
      : task_(task), prepared_(prepared), file_(path) {}

  void Write(const std::string& filter, int64_t doc_id, const SampleSource& source) {
    const std::optional<ScoredDocument> score = source.score(doc_id);
    if (!score) return;
    const FilterScore* filtered = nullptr;
    for (const FilterScore& entry : score->filters) {
      if (entry.filter == filter) filtered = &entry;
    }
    if (filtered == nullptr) {
      throw Error(ErrorKind::kInput,
                  fmt::format("task '{}': the scores of document {} lack the filter '{}'",
                              task_.name, doc_id, filter));
    }
    const PreparedDocument document = prepared_.Document(doc_id);
    const std::vector<Request> requests = prepared_.Requests(doc_id, doc_id + 1);
    const std::string target = jinja::PythonStr(document.target);
    Json sample = Json::object();
    sample["doc_id"] = doc_id;
    sample["doc"] = document.doc;
    sample["target"] = target;
    sample["arguments"] = Arguments(task_, requests);
    sample["resps"] = Sanitized(Responses(source.generations(doc_id)));
    sample["filtered_resps"] = Sanitized(filtered->filtered);
    sample["filter"] = filter;
    Json names = Json::array();
    for (const auto& [name, value] : filtered->metrics.items()) names.push_back(name);
    sample["metrics"] = std::move(names);
    const std::string doc_hash = Sha256Hex(PythonJsonIndented(document.doc));
    const std::string prompt_hash = Sha256Hex(requests.empty() ? "" : requests[0].context);
    const std::string target_hash = Sha256Hex(target);
    sample["doc_hash"] = doc_hash;
    sample["prompt_hash"] = prompt_hash;
    sample["target_hash"] = target_hash;
    for (const auto& [name, value] : filtered->metrics.items()) sample[name] = value;
    file_.Append(PythonJson(sample) + "\n");
    hashes_ += doc_hash + prompt_hash + target_hash;
  }

  std::string Commit() {
    file_.Commit();
    return Sha256Hex(hashes_);
  }

 private:
  const TaskDefinition& task_;
  const PreparedTask& prepared_;
  PendingFile file_;
  std::string hashes_;
};

}  // namespace

std::string WriteSamples(const std::filesystem::path& path, const TaskDefinition& task,
                         const PreparedTask& prepared, const SampleSource& source) {
  SamplesWriter writer(path, task, prepared);
  for (const FilterPipeline& pipeline : task.filters) {
    for (int64_t doc_id = 0; doc_id < prepared.document_count(); ++doc_id) {
      writer.Write(pipeline.name, doc_id, source);
    }
  }
  return writer.Commit();
}

}  // namespace evald
