// exact_match: of text, and of the most likely choice.
#include <fmt/format.h>

#include <algorithm>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "metrics/scoring/answer_error.h"
#include "metrics/scoring/metric.h"
#include "python/regex.h"
#include "python/unicode.h"

namespace evald {
namespace {

constexpr const char* kWhere = "exact_match";
constexpr std::string_view kPunctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
constexpr std::string_view kDigits = "0123456789";

void CutNuls(std::string* text) {
  while (!text->empty() && text->back() == '\0') text->pop_back();
}

void Remove(std::string_view characters, std::string* text) {
  std::erase_if(*text, [&](char c) { return characters.find(c) != std::string_view::npos; });
}

void LowerInWidth(std::vector<std::string>* texts) {
  size_t width = 1;
  for (const std::string& text : *texts) width = std::max(width, CodePoints(text));
  for (std::string& text : *texts) {
    std::u32string lowered = python::Decode(python::Lower(text));
    if (lowered.size() > width) lowered.resize(width);
    text = python::Encode(lowered);
  }
}

// exact_match of lm_eval 0.4.13 (api/metrics.py, exact_match_hf_evaluate): the share of
// predictions that equal their reference, after these steps in this order: remove each of
// regexes_to_ignore, ignore_case, ignore_punctuation, ignore_numbers (ASCII). There, text is held
// in numpy arrays of fixed width: trailing NUL characters do not count, and text that grows in
// lower case is cut to the length of the longest text. The same is done here.
class ExactMatch {
 public:
  // Throws Error(kInput) for an unknown argument.
  explicit ExactMatch(const Json& kwargs);

  // The score of one prediction for each reference; the lists have equal length, at least 1.
  double Score(std::vector<std::string> predictions, std::vector<std::string> references) const;

  // Whether a list of targets that holds no text is scored: none of them equals the answer. The
  // arguments left out here fail on numpy's arrays of numbers, of which an empty list is one.
  bool ScoresAsUnequal(const Json& targets) const {
    const bool numbers = std::all_of(targets.begin(), targets.end(), [](const Json& target) {
      return target.is_number() || target.is_boolean();
    });
    return targets.empty() ? !ignore_case_ && !ignore_punctuation_ && !ignore_numbers_
                           : numbers && plain();
  }

  // Whether only whole equality counts, so that values other than text can be compared, too.
  bool plain() const {
    return ignored_.empty() && !ignore_case_ && !ignore_punctuation_ && !ignore_numbers_;
  }

 private:
  void Reduce(RegexSteps::Text whose, std::vector<std::string>* texts) const;

  std::vector<PythonRegex> ignored_;
  bool ignore_case_;
  bool ignore_punctuation_;
  bool ignore_numbers_;
};

// Whether Python takes the argument for true: any text is, unless it is empty.
bool Flag(const Json& kwargs, const char* key) {
  const auto found = kwargs.find(key);
  if (found == kwargs.end() || found->is_null()) return false;
  if (found->is_boolean()) return found->get<bool>();
  if (found->is_string()) return !found->get_ref<const std::string&>().empty();
  return found->is_number() ? found->get<double>() != 0 : !found->empty();
}

ExactMatch::ExactMatch(const Json& kwargs)
    : ignore_case_(Flag(kwargs, "ignore_case")),
      ignore_punctuation_(Flag(kwargs, "ignore_punctuation")),
      ignore_numbers_(Flag(kwargs, "ignore_numbers")) {
  static const std::vector<std::string> kArguments = {"regexes_to_ignore", "ignore_case",
                                                      "ignore_punctuation", "ignore_numbers"};
  for (const auto& [key, value] : kwargs.items()) {
    if (std::find(kArguments.begin(), kArguments.end(), key) == kArguments.end()) {
      throw Error(ErrorKind::kInput, fmt::format("exact_match has no argument '{}'{}", key,
                                                 Suggestion(key, kArguments)));
    }
  }
  for (const std::string& pattern :
       FieldOr<std::vector<std::string>>(kwargs, "regexes_to_ignore", {}, kWhere)) {
    ignored_.emplace_back(pattern);
  }
}

void ExactMatch::Reduce(RegexSteps::Text whose, std::vector<std::string>* texts) const {
  // The first pattern sees the unchanged text. Each numpy array after it has lost trailing NULs.
  for (const Regex& regex : ignored_) {
    for (std::string& text : *texts) {
      RegexSteps steps(whose);
      text = regex.ReplaceAll(text, "", &steps);
      CutNuls(&text);
    }
  }
  for (std::string& text : *texts) CutNuls(&text);
  if (ignore_case_) LowerInWidth(texts);
  for (std::string& text : *texts) {
    if (ignore_punctuation_) Remove(kPunctuation, &text);
    if (ignore_numbers_) Remove(kDigits, &text);
    CutNuls(&text);
  }
}

double ExactMatch::Score(std::vector<std::string> predictions,
                         std::vector<std::string> references) const {
  Reduce(RegexSteps::Text::kAnswer, &predictions);
  Reduce(RegexSteps::Text::kTasks, &references);
  size_t equal = 0;
  for (size_t i = 0; i < predictions.size(); ++i) equal += predictions[i] == references[i] ? 1 : 0;
  return static_cast<double>(equal) / static_cast<double>(predictions.size());
}

// As many targets as there are predictions: one is that of all. The arrays of numpy do not compare
// otherwise; a list of targets and one prediction is not served.
std::vector<std::string> AsMany(std::vector<std::string> golds, size_t count) {
  if (golds.size() == count) return golds;
  if (golds.size() == 1) return std::vector<std::string>(count, golds[0]);
  throw Error(ErrorKind::kInput,
              fmt::format("exact_match: found {} targets and {} answers", golds.size(), count));
}

TextScorer MakeExactMatch(const TaskDefinition& task, const MetricSpec& spec, CodeRunner*) {
  const auto match = std::make_shared<const ExactMatch>(spec.kwargs);
  if (task.multiple_target) {
    return [match](const TextAnswer& answer, Json* metrics, Json*) {
      if (!answer.result.is_string()) {
        throw Error(ErrorKind::kInput, "exact_match with several targets takes one text");
      }
      if (match->ScoresAsUnequal(answer.gold)) {
        (*metrics)["exact_match"] = 0.0;
        return;
      }
      const std::vector<std::string> golds = TextsOf(answer.gold, "exact_match, the target");
      const std::vector<std::string> predictions(golds.size(), answer.result.get<std::string>());
      (*metrics)["exact_match"] = match->Score(predictions, golds) > 0.0 ? 1.0 : 0.0;
    };
  }
  return [match](const TextAnswer& answer, Json* metrics, Json*) {
    if (answer.result.is_array() && !match->plain()) {
      throw Error(ErrorKind::kInput,
                  "exact_match with arguments takes one text, but the filters leave a list",
                  "end the filter pipeline with take_first");
    }
    const std::vector<std::string> predictions = TextsOf(answer.result, "exact_match");
    if (predictions.empty()) throw AnswerError("no text", "exact_match: the filters leave nothing");
    const std::vector<std::string> golds =
        AsMany(TextsOf(answer.gold, "exact_match, the target"), predictions.size());
    (*metrics)["exact_match"] = match->Score(predictions, golds);
  };
}

bool TakesTargets(const MetricSpec& spec, const Json& targets) {
  return ExactMatch(spec.kwargs).ScoresAsUnequal(targets);
}

// Whether the gold continuation is the greedy one. A negative label counts from the end.
Json GoldIsGreedy(const ChoiceAnswer& answer) {
  const auto count = static_cast<int64_t>(answer.greedy.size());
  for (const int64_t label : answer.gold.labels) {
    if (label == GoldLabels::kOutOfRange) continue;
    const int64_t index = label < 0 ? label + count : label;
    if (index < 0) {
      throw Error(ErrorKind::kInput, fmt::format("the label {} is out of range", label));
    }
    if (answer.greedy[static_cast<size_t>(index)]) return 1;
  }
  return 0;
}

void CheckRange(const PreparedDocument&, const GoldLabels& gold, size_t choices) {
  for (const int64_t label : gold.labels) {
    if (label != GoldLabels::kOutOfRange && label < -static_cast<int64_t>(choices)) {
      throw Error(ErrorKind::kInput, fmt::format("the label {} is out of range", label));
    }
  }
}

}  // namespace

extern constinit const Metric kExactMatchMetric = {
    .name = "exact_match",
    .aggregation = "mean",
    .text = TextRule{.takes_targets = TakesTargets, .make = MakeExactMatch},
    .choice = ChoiceRule{.check = CheckRange, .score = GoldIsGreedy},
};

}  // namespace evald
