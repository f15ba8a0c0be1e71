#include "metrics/scoring/task_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "metrics/scoring/answer_error.h"
#include "metrics/scoring/score_number.h"

namespace evald {

// The table of functions. NAME stands for a `kNAMEResults` of a file of this room.
#define EVALD_TASK_RESULTS(RESULTS) \
  RESULTS(HendrycksMath)            \
  RESULTS(Aime)                     \
  RESULTS(AgievalMath)              \
  RESULTS(AgievalChoice)            \
  RESULTS(TruthfulqaMc2)            \
  RESULTS(TruthfulqaGen)            \
  RESULTS(Drop)                     \
  RESULTS(Wikitext)

#define EVALD_DECLARE(NAME) extern const TaskResults k##NAME##Results;
EVALD_TASK_RESULTS(EVALD_DECLARE)
#undef EVALD_DECLARE

namespace {

#define EVALD_ENTRY(NAME) &k##NAME##Results,
constexpr const TaskResults* kTaskResults[] = {EVALD_TASK_RESULTS(EVALD_ENTRY)};
#undef EVALD_ENTRY

}  // namespace

const TaskResults* FindTaskResults(std::string_view function) {
  const auto* const found =
      std::find_if(std::begin(kTaskResults), std::end(kTaskResults),
                   [&](const TaskResults* results) { return function == results->function; });
  return found == std::end(kTaskResults) ? nullptr : *found;
}

std::vector<std::string> TaskResultsNames() {
  std::vector<std::string> names;
  for (const TaskResults* results : kTaskResults) names.emplace_back(results->function);
  return names;
}

const std::string& TextResult(const std::vector<Json>& results) {
  constexpr size_t kShownBytes = 200;
  if (results.empty()) throw Error(ErrorKind::kInput, "the document has no response");
  if (results[0].is_string()) return results[0].get_ref<const std::string&>();
  if (results[0].is_null()) throw AnswerError("no text", "the filters leave null, expected text");
  throw Error(ErrorKind::kInput,
              fmt::format("the filters leave {}, expected text",
                          Shortened(ToLine(results[0]), kShownBytes)),
              "end the filter pipeline with take_first");
}

std::vector<double> LikelihoodsOf(const std::vector<Json>& results) {
  std::vector<double> numbers;
  for (const Json& result : results) {
    if (!result.is_array() || result.empty() || !IsScoreNumber(result[0])) {
      throw Error(ErrorKind::kInput,
                  fmt::format("found {}, expected a log-likelihood and whether it is greedy",
                              ToLine(result)));
    }
    numbers.push_back(NumberFromScore(result[0]));
  }
  return numbers;
}

}  // namespace evald
