// process_results of the tasks hendrycks_math, aime and agieval (those with written answers).
#include <algorithm>

#include "base/jsonl.h"
#include "evald/error.h"
#include "metrics/scoring/math_strings.h"
#include "metrics/scoring/task_results.h"
#include "python/unicode.h"
#include "python/value.h"

namespace evald {
namespace {

constexpr const char* kMathDocument = "the document";

std::string BoxOfSolution(const std::string& solution) {
  const auto boxed = LastBoxed(solution, BoxForms::kBracesAndSpace);
  const auto content = boxed ? RemoveBoxed(*boxed, BoxForms::kBracesAndSpace) : std::nullopt;
  if (content) return *content;
  throw Error(ErrorKind::kInput,
              "the document's solution holds no \\boxed{...}, of which the answer is the content",
              "compare the task's data with its source");
}

Json ScoreHendrycks(const Json& doc, const std::vector<Json>& results) {
  const std::string answer = BetweenDollars(TextResult(results));
  const std::string gold = BoxOfSolution(Field<std::string>(doc, "solution", kMathDocument));
  return {{"exact_match", SameMath(answer, gold, SlashRule::kComparesAsIs) ? 1 : 0}};
}

// str() of the member whose name is "answer" in any case.
std::string AimeTarget(const Json& doc) {
  for (const auto& [name, value] : doc.items()) {
    if (python::Lower(name) == "answer") return PythonStr(value);
  }
  throw Error(ErrorKind::kInput, "the document has no column 'answer'");
}

Json ScoreAime(const Json& doc, const std::vector<Json>& results) {
  const std::string& response = TextResult(results);
  std::string answer = BetweenDollars(response);
  if (const auto boxed = LastBoxed(response, BoxForms::kBracesAndSpace)) {
    if (auto content = RemoveBoxed(*boxed, BoxForms::kBracesAndSpace)) answer = *content;
  }
  const bool same = SameMath(answer, AimeTarget(doc), SlashRule::kComparesAsIs);
  return {{"exact_match", same ? 1 : 0}};
}

// is_equiv of agieval compares what it finds in both texts; None equals None.
bool SameInAgieval(const std::string& candidate, const std::string& gold) {
  const auto a = AgievalAnswer(candidate), b = AgievalAnswer(gold);
  if (!a || !b) return a.has_value() == b.has_value();
  return SameMath(*a, *b, SlashRule::kGoesOn);
}

Json ScoreAgieval(const Json& doc, const std::vector<Json>& results) {
  const std::string& candidate = TextResult(results);
  const auto gold = doc.find("answer");
  if (gold != doc.end() && gold->is_null()) return {{"acc", 0}};
  const auto text = Field<std::string>(doc, "answer", kMathDocument);
  return {{"acc", SameInAgieval(candidate, text) ? 1 : 0}};
}

}  // namespace

extern constinit const TaskResults kHendrycksMathResults = {"hendrycks_math/utils.process_results",
                                                            ScoreHendrycks};
extern constinit const TaskResults kAimeResults = {"aime/utils.process_results", ScoreAime};
extern constinit const TaskResults kAgievalMathResults = {"agieval/utils.process_results",
                                                          ScoreAgieval};

}  // namespace evald
