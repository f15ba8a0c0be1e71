#include "orchestrator/verdict/examples.h"

#include <algorithm>
#include <map>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace {

constexpr size_t kPerTask = 5;
constexpr size_t kTasksMax = 20;
constexpr size_t kLinesMax = 1000;
constexpr size_t kBytesMax = 1500;

// Keeps the end of a long prompt, or the beginning of a long answer.
std::string Cut(const std::string& text, bool keep_end) {
  if (text.size() <= kBytesMax) return text;
  std::string cut = keep_end ? "…" : "";
  cut += text.substr(keep_end ? text.size() - kBytesMax : 0, kBytesMax);
  if (!keep_end) cut += "…";
  return ReplaceInvalidUtf8(cut);
}

std::string Text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : ToLine(value);
}

std::string AnswerOf(const Json& line) {
  const auto filtered = line.find("resps");
  if (filtered == line.end()) return "";
  const Json* value = &*filtered;
  while (value->is_array() && value->size() == 1) value = &(*value)[0];
  return value->is_null() ? "(too long to be shown)" : Cut(Text(*value), false);
}

std::string PromptOf(const Json& line) {
  const auto arguments = line.find("arguments");
  if (arguments == line.end() || arguments->empty()) return "";
  const Json& first = arguments->front();
  const Json* prompt = first.is_object() ? (first.contains("arg_0") ? &first["arg_0"] : nullptr)
                       : first.is_array() && !first.empty() ? &first.front()
                                                            : nullptr;
  return prompt == nullptr ? "" : Cut(Text(*prompt), true);
}

bool IsWrong(const SampleScore& score, const std::string& metric) {
  const auto value = score.metrics.find(metric);
  return value != score.metrics.end() && value->is_number() && value->get<double>() == 0;
}

bool IsRight(const TaskSamples* samples, const std::string& filter, int64_t doc_id,
             const std::string& metric) {
  if (samples == nullptr || samples->count(filter) == 0) return false;
  const auto score = samples->at(filter).find(doc_id);
  if (score == samples->at(filter).end()) return false;
  const auto value = score->second.metrics.find(metric);
  return value != score->second.metrics.end() && value->is_number() && value->get<double>() == 1;
}

void Describe(const Json& line, Example* example) {
  example->prompt = PromptOf(line);
  example->target = Cut(Text(line.value("target", Json(""))), false);
  example->answer = AnswerOf(line);
}

// The first wrong answers of a samples file. Reads no more of the file than needed, and only its
// beginning: a run must not wait for its page.
std::vector<Example> FirstWrong(const ResultSet& set, const std::string& task,
                                const std::string& metric, const std::string& filter) {
  std::vector<Example> examples;
  set.ForEachSample(task, [&](size_t number, Json&& line) {
    const bool more = number < kLinesMax;
    const auto value = line.find(metric);
    const bool wrong = value != line.end() && (value->is_boolean()  ? !value->get<bool>()
                                               : value->is_number() ? value->get<double>() == 0
                                                                    : false);
    if (!wrong || line.value("filter", "none") != filter) return more;
    examples.push_back({task, line.value("doc_id", int64_t{-1}), "", "", "", "", false});
    Describe(line, &examples.back());
    return more && examples.size() < kPerTask;
  });
  return examples;
}

// Adds these documents' answers from a samples file.
void ReadTexts(const ResultSet& set, const std::string& task, const std::string& filter,
               std::map<int64_t, Example>* examples, bool of_baseline) {
  set.ForEachSample(task, [&](size_t, Json&& line) {
    if (line.value("filter", "none") != filter) return true;
    const auto example = examples->find(line.value("doc_id", int64_t{-1}));
    if (example == examples->end()) return true;
    if (of_baseline) {
      example->second.baseline_answer = AnswerOf(line);
    } else {
      Describe(line, &example->second);
    }
    return true;
  });
}

std::vector<Example> OfTask(ResultSet* candidate, ResultSet* baseline, const std::string& task) {
  const auto metrics = candidate->Metrics(task);
  if (metrics.empty()) return {};
  const auto& [metric, filter] = metrics[0];
  if (baseline == nullptr || baseline->Entry(task).is_null())
    return FirstWrong(*candidate, task, metric, filter);
  const TaskSamples& mine = candidate->Samples(task);
  const TaskSamples* other = &baseline->Samples(task);
  if (mine.count(filter) == 0) return {};
  std::vector<int64_t> lost, wrong;
  for (const auto& [doc_id, score] : mine.at(filter)) {
    if (!IsWrong(score, metric)) continue;
    (IsRight(other, filter, doc_id, metric) ? lost : wrong).push_back(doc_id);
  }
  std::map<int64_t, Example> examples;
  for (const auto* list : {&lost, &wrong}) {
    for (const int64_t doc_id : *list) {
      if (examples.size() == kPerTask) break;
      examples[doc_id] = {task, doc_id, "", "", "", "", list == &lost};
    }
  }
  if (examples.empty()) return {};
  ReadTexts(*candidate, task, filter, &examples, false);
  ReadTexts(*baseline, task, filter, &examples, true);
  std::vector<Example> ordered;
  for (const bool first : {true, false}) {
    for (auto& [doc_id, example] : examples) {
      if (example.lost == first) ordered.push_back(std::move(example));
    }
  }
  return ordered;
}

}  // namespace

std::vector<Example> WrongAnswers(ResultSet* candidate, ResultSet* baseline) {
  std::vector<Example> examples;
  size_t tasks = 0;
  for (const auto& [task, entry] : candidate->results()["results"].items()) {
    if (candidate->Leaves(task) != std::vector<std::string>{task} || ++tasks > kTasksMax) continue;
    try {
      for (Example& example : OfTask(candidate, baseline, task))
        examples.push_back(std::move(example));
    } catch (const Error&) {
      // Examples are an extra: a file without samples has none.
    }
  }
  return examples;
}

}  // namespace evald
