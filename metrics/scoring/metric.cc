#include "metrics/scoring/metric.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/jsonl.h"
#include "evald/error.h"
#include "metrics/scoring/answer_error.h"
#include "metrics/scoring/score_number.h"
#include "python/numpy.h"

namespace evald {

bool GoldLabels::Holds(size_t choice) const {
  return std::count(labels.begin(), labels.end(), static_cast<int64_t>(choice)) > 0;
}

size_t ChoiceAnswer::Predicted() const { return ArgMax(loglikelihoods); }

Json ChoiceAnswer::Gold() const { return gold.several ? document.target : Json(gold.labels[0]); }

std::vector<std::string> TextsOf(const Json& value, const char* what) {
  std::vector<std::string> texts;
  for (const Json& item : value.is_array() ? value : Json::array({value})) {
    if (item.is_null())
      throw AnswerError("no text", fmt::format("{}: found null, expected text", what));
    if (!item.is_string()) {
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: found {}, expected text", what, ToLine(item)));
    }
    texts.push_back(item.get<std::string>());
  }
  return texts;
}

Json ScoreNumbers(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(NumberToScore(value));
  return list;
}

}  // namespace evald
