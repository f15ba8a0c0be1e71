#include "metrics/foreign_generations.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/hash.h"
#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "metrics/scoring/score_number.h"

namespace evald {
namespace {

// The number of documents that the task has without its limit.
int64_t AllDocuments(const PreparedTask& task) {
  return task.task().value("original_documents", task.document_count());
}

bool NamesDocumentBeyond(const Json& line, const PreparedTask& task) {
  const auto id = line.find("doc_id");
  return id != line.end() && id->is_number_integer() && *id >= task.document_count() &&
         *id < AllDocuments(task);
}

class EvaldLines : public ForeignReader {
 public:
  explicit EvaldLines(const PreparedTask& task) : task_(task) {}
  bool IsBeyondLimit(const Json& line) const override { return NamesDocumentBeyond(line, task_); }
  std::vector<Generation> Read(const Json& line, const std::string& where) override {
    return {GenerationFromJson(line, where)};
  }

 private:
  const PreparedTask& task_;
};

// Samples hold str() of every value: ["-1.5", "False"] for a log-likelihood.
double SampleNumber(const Json& value, const std::string& where) {
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size()) return number;
  }
  throw Error(ErrorKind::kInput, fmt::format("{}: key 'resps': found {}, expected a log-likelihood",
                                             where, ToLine(value)));
}

bool SampleBool(const Json& value, const std::string& where) {
  if (value.is_boolean()) return value.get<bool>();
  if (value == "True") return true;
  if (value == "False") return false;
  throw Error(ErrorKind::kInput, fmt::format("{}: key 'resps': found {}, expected True or False",
                                             where, ToLine(value)));
}

class SampleLines : public ForeignReader {
 public:
  explicit SampleLines(const PreparedTask& task) : task_(task) {}
  bool IsBeyondLimit(const Json& line) const override { return NamesDocumentBeyond(line, task_); }

  std::vector<Generation> Read(const Json& line, const std::string& where) override {
    const auto doc_id = Field<int64_t>(line, "doc_id", where);
    const auto resps = Field<std::vector<Json>>(line, "resps", where);
    const auto filter = FieldOr<std::string>(line, "filter", "none", where);
    Seen& seen = seen_[doc_id];
    const std::string hash = HashHex(ToLine(Json(resps)));
    for (const std::string& other : seen.filters) {
      if (other == filter) {
        throw Error(ErrorKind::kInput,
                    fmt::format("{}: document {} with filter '{}' was there before", where, doc_id,
                                filter));
      }
    }
    seen.filters.push_back(filter);
    if (seen.filters.size() > 1) {
      if (hash == seen.hash) return {};
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: document {} has other responses here than for filter '{}'",
                              where, doc_id, seen.filters.front()));
    }
    seen.hash = hash;
    if (doc_id < 0 || doc_id >= task_.document_count()) {
      throw Error(ErrorKind::kInput, fmt::format("{}: found doc_id {}, expected 0 to {}", where,
                                                 doc_id, task_.document_count() - 1));
    }
    return Generations(line, doc_id, resps, where);
  }

  int64_t other_prompts() const override { return other_prompts_; }

 private:
  struct Seen {
    std::vector<std::string> filters;
    std::string hash;
  };

  std::vector<Generation> Generations(const Json& line, int64_t doc_id,
                                      const std::vector<Json>& resps, const std::string& where) {
    const std::vector<Request> requests = task_.Requests(doc_id, doc_id + 1);
    if (resps.size() != requests.size()) {
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: key 'resps': found responses to {} requests, document {} has {}",
                              where, resps.size(), doc_id, requests.size()));
    }
    const auto prompt_hash = FieldOr<std::string>(line, "prompt_hash", "", where);
    if (!prompt_hash.empty() && prompt_hash != Sha256Hex(requests[0].context)) ++other_prompts_;
    std::vector<Generation> generations;
    for (size_t idx = 0; idx < resps.size(); ++idx) {
      if (!resps[idx].is_array() || resps[idx].empty()) {
        throw Error(ErrorKind::kInput,
                    fmt::format("{}: key 'resps': found {}, expected a list of responses", where,
                                Shortened(ToLine(resps[idx]), 60)));
      }
      for (size_t repeat = 0; repeat < resps[idx].size(); ++repeat) {
        Generation generation;
        generation.doc_id = doc_id;
        generation.idx = static_cast<int>(idx);
        generation.repeat = static_cast<int>(repeat);
        generation.kind = requests[idx].kind;
        Fill(resps[idx][repeat], where, &generation);
        generations.push_back(std::move(generation));
      }
    }
    return generations;
  }

  static void Fill(const Json& response, const std::string& where, Generation* generation) {
    if (generation->kind == RequestKind::kGenerateUntil) {
      if (!response.is_string()) {
        throw Error(ErrorKind::kInput, fmt::format("{}: key 'resps': found {}, expected text",
                                                   where, Shortened(ToLine(response), 60)));
      }
      generation->text = response.get<std::string>();
      return;
    }
    generation->finish = FinishReason::kScored;
    if (generation->kind == RequestKind::kLoglikelihoodRolling) {
      generation->loglikelihood = SampleNumber(response, where);
      return;
    }
    if (!response.is_array() || response.size() != 2) {
      throw Error(
          ErrorKind::kInput,
          fmt::format("{}: key 'resps': found {}, expected a log-likelihood and whether it is "
                      "greedy",
                      where, Shortened(ToLine(response), 60)));
    }
    generation->loglikelihood = SampleNumber(response[0], where);
    generation->is_greedy = SampleBool(response[1], where);
  }

  const PreparedTask& task_;
  std::map<int64_t, Seen> seen_;
  int64_t other_prompts_ = 0;
};

std::string IdText(const Json& id) { return id.is_string() ? id.get<std::string>() : ToLine(id); }

class CompletionLines : public ForeignReader {
 public:
  explicit CompletionLines(const PreparedTask& task)
      : task_name_(task.name()), limited_(AllDocuments(task) > task.document_count()) {
    for (int64_t doc_id = 0; doc_id < task.document_count(); ++doc_id) {
      const Json doc = task.Document(doc_id).doc;
      const auto id = doc.find("task_id");
      if (id == doc.end()) {
        throw Error(
            ErrorKind::kInput,
            fmt::format("the documents of '{}' have no task_id to tell completions by", task_name_),
            "give the generations in evald's form or as samples_*.jsonl");
      }
      doc_ids_[IdText(*id)] = doc_id;
    }
  }

  // The ids of left-out documents are unknown. So with a limit, any unknown id may belong to one.
  bool IsBeyondLimit(const Json& line) const override {
    const auto id = line.find("task_id");
    return limited_ && id != line.end() && doc_ids_.count(IdText(*id)) == 0;
  }

  std::vector<Generation> Read(const Json& line, const std::string& where) override {
    const std::string id = IdText(Field<Json>(line, "task_id", where));
    const auto found = doc_ids_.find(id);
    if (found == doc_ids_.end()) {
      std::vector<std::string> known;
      for (const auto& [name, doc_id] : doc_ids_) known.push_back(name);
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: task '{}' has no document with task_id '{}'{}", where,
                              task_name_, id, Suggestion(id, known)));
    }
    Generation generation;
    generation.doc_id = found->second;
    generation.repeat = repeats_[found->second]++;
    generation.text = Field<std::string>(line, "completion", where);
    return {generation};
  }

 private:
  std::string task_name_;
  bool limited_;
  std::map<std::string, int64_t> doc_ids_;
  std::map<int64_t, int> repeats_;
};

}  // namespace

GenerationsForm FormOf(const Json& line, const std::string& where) {
  if (line.contains("doc_id") && line.contains("resps")) return GenerationsForm::kSamples;
  if (line.contains("doc_id") && (line.contains("text") || line.contains("loglikelihood"))) {
    return GenerationsForm::kEvald;
  }
  if (line.contains("task_id") && line.contains("completion")) return GenerationsForm::kCompletions;
  constexpr const char* kForms =
      "expected evald's own lines (doc_id, idx, repeat, text, ...: docs/formats.md), "
      "lm-evaluation-harness's samples (doc_id, resps) or HumanEval's (task_id, completion)";
  if (!line.is_object()) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: found {}, which is no generation", where, line.type_name()),
                kForms);
  }
  const std::vector<std::string> known = {"doc_id",        "resps",   "text",
                                          "loglikelihood", "task_id", "completion"};
  std::vector<std::string> keys;
  std::string meant;
  for (const auto& [key, value] : line.items()) {
    keys.push_back(key);
    const bool right = std::find(known.begin(), known.end(), key) != known.end();
    if (!right && meant.empty()) meant = NearestName(key, known);
  }
  throw Error(ErrorKind::kInput,
              fmt::format("{}: found {} with the keys [{}], which is no generation{}", where,
                          line.type_name(), Join(keys, ", "),
                          meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant)),
              kForms);
}

std::unique_ptr<ForeignReader> MakeForeignReader(GenerationsForm form, const PreparedTask& task) {
  switch (form) {
    case GenerationsForm::kEvald:
      return std::make_unique<EvaldLines>(task);
    case GenerationsForm::kSamples:
      return std::make_unique<SampleLines>(task);
    case GenerationsForm::kCompletions:
      return std::make_unique<CompletionLines>(task);
  }
  throw Error(ErrorKind::kInternal, "a form of generations without a reader");
}

}  // namespace evald
