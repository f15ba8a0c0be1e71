#include "metrics/judge/metric.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "metrics/judge/reading.h"

namespace evald {
namespace {

constexpr size_t kDetailTextBytes = 2048;

std::string FieldNames(const Json& doc) {
  std::vector<std::string> names;
  for (const auto& [name, value] : doc.items()) names.push_back(name);
  return Join(names, ", ");
}

Json DetailOf(const JudgeQuestion& question, const JudgeVerdict& verdict, bool pair) {
  Json detail = {{"score", *verdict.score},
                 {"answer", Shortened(verdict.text, kDetailTextBytes)},
                 {"attempts", verdict.attempts}};
  if (pair) detail["response_is"] = question.swapped ? "B" : "A";
  if (verdict.unparsed) detail["unparsed"] = verdict.why;
  return detail;
}

}  // namespace

JudgeMetric::JudgeMetric(const MetricSpec& metric, JudgePanel* panel)
    : spec_(JudgeSpecOf(metric)), panel_(panel) {}

std::string JudgeMetric::ReferenceOf(const PreparedDocument& document) const {
  const auto found = document.doc.find(spec_.reference);
  if (found != document.doc.end() && found->is_string()) return found->get<std::string>();
  throw Error(
      ErrorKind::kInput,
      fmt::format("the metric '{}': reference: the document's field '{}' is {}, expected a text",
                  spec_.name, spec_.reference,
                  found == document.doc.end() ? "absent" : Shortened(ToLine(*found), 80)),
      "the document has the fields " + FieldNames(document.doc));
}

Json JudgeMetric::Messages(const PreparedDocument& document, const Json& target,
                           const std::string& response, bool swapped) const {
  Json variables = document.doc.is_object() ? document.doc : Json::object();
  variables["doc"] = document.doc;
  variables["target"] = target;
  if (spec_.pair()) {
    const std::string reference = ReferenceOf(document);
    variables["answer_a"] = swapped ? reference : response;
    variables["answer_b"] = swapped ? response : reference;
  } else {
    variables["response"] = response;
  }
  Json messages = Json::array();
  for (const JudgeMessage& message : spec_.messages)
    messages.push_back({{"role", message.role}, {"content", message.content->Render(variables)}});
  return messages;
}

std::vector<JudgeQuestion> JudgeMetric::Questions(const PreparedDocument& document,
                                                  const Json& target,
                                                  const std::string& response) const {
  std::vector<JudgeQuestion> questions;
  try {
    for (const bool swapped : {false, true}) {
      if (swapped && !spec_.pair()) break;
      const Json messages = Messages(document, target, response, swapped);
      for (int vote = 0; vote < spec_.votes; ++vote)
        questions.push_back({&spec_, messages, swapped, vote});
    }
  } catch (const Error& e) {  // a response may be too long
    throw Error(ErrorKind::kInput, fmt::format("the metric '{}': {}", spec_.name, e.message()),
                "ask for shorter answers (max_gen_toks), or let the judge's template quote less");
  }
  return questions;
}

void JudgeMetric::Check(const PreparedDocument& document) const {
  const std::string remedy = fmt::format(
      "templates of this metric may name {}, target, doc, and the document's fields: {}",
      spec_.pair() ? "answer_a, answer_b" : "response", FieldNames(document.doc));
  try {
    Messages(document, document.target, "", false);
  } catch (const Error& e) {
    throw Error(ErrorKind::kInput, e.message(), e.remedy().empty() ? remedy : e.remedy());
  }
}

std::optional<double> JudgeMetric::Score(const PreparedDocument& document, const Json& target,
                                         const Json& response, Json* detail) const {
  if (panel_ == nullptr) throw Error(ErrorKind::kInternal, "no judge can be asked here");
  if (!response.is_string()) {
    throw Error(ErrorKind::kInput,
                fmt::format("the metric '{}' rates one text, but the filters leave {}", spec_.name,
                            response.type_name()),
                "end the filter pipeline with take_first");
  }
  const std::vector<JudgeQuestion> questions =
      Questions(document, target, response.get_ref<const std::string&>());
  std::vector<const JudgeVerdict*> verdicts;
  for (const JudgeQuestion& question : questions) verdicts.push_back(panel_->Verdict(question));
  const bool missing = std::count(verdicts.begin(), verdicts.end(), nullptr) > 0;
  if (missing) return std::nullopt;
  Json answers = Json::array();
  for (size_t i = 0; i < questions.size(); ++i) {
    if (!verdicts[i]->score)
      throw NotJudged(fmt::format("the metric '{}': {}", spec_.name, verdicts[i]->why));
    answers.push_back(DetailOf(questions[i], *verdicts[i], spec_.pair()));
  }
  detail->push_back({{"judge", spec_.name}, {"answers", std::move(answers)}});
  std::vector<double> votes;
  for (int vote = 0; vote < spec_.votes; ++vote) {
    const auto as_a = static_cast<size_t>(vote), as_b = static_cast<size_t>(spec_.votes + vote);
    votes.push_back(spec_.pair()
                        ? CombineOrders(spec_, *verdicts[as_a]->score, *verdicts[as_b]->score)
                        : *verdicts[as_a]->score);
  }
  return CombineVotes(spec_, votes);
}

void CheckJudge(const JudgeSpec& spec, const JudgeSettings& settings) {
  const double temperature = settings.temperature.value_or(spec.temperature.value_or(0));
  if (spec.votes == 1 || temperature > 0) return;
  throw Error(ErrorKind::kInput,
              fmt::format("the metric '{}': {} votes would be one and the same, since the "
                          "temperature is 0",
                          spec.name, spec.votes),
              "set a temperature in the task's file, or as 'judge.temperature' in eval.yaml");
}

}  // namespace evald
