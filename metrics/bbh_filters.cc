// Filters of lm_eval/tasks/bbh (zeroshot/utils.py and cot_zeroshot/utils.py, 0.4.13), which their
// task files name by their classes. MultiChoiceRegexFilter is in multi_choice_filter.cc.
#include <fmt/format.h>

#include <algorithm>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "metrics/filter_support.h"
#include "python/regex.h"
#include "python/str.h"
#include "python/unicode.h"

namespace evald {
namespace {

constexpr const char* kBbhWhere = "MapRegexFilter";

// The arguments that change a text before a pattern is looked for.
class IgnoredParts {
 public:
  explicit IgnoredParts(const Json& kwargs)
      : case_(FieldOr<bool>(kwargs, "ignore_case", false, kBbhWhere)),
        punctuation_(FieldOr<bool>(kwargs, "ignore_punctuation", false, kBbhWhere)) {
    for (const std::string& pattern :
         FieldOr<std::vector<std::string>>(kwargs, "regexes_to_ignore", {}, kBbhWhere)) {
      patterns_.emplace_back(pattern);
    }
  }

  std::string Without(std::string text) const {
    for (const Regex& pattern : patterns_) {
      RegexSteps steps;
      text = pattern.ReplaceAll(text, "", &steps);
    }
    if (case_) text = python::Lower(text);
    if (!punctuation_) return text;
    std::u32string kept;
    for (const char32_t c : python::Decode(text)) {
      if (!IsPunctuation(c)) kept += c;
    }
    return python::Encode(kept);
  }

 private:
  bool case_;
  bool punctuation_;
  std::vector<PythonRegex> patterns_;
};

// find_match: the text of the match that group_select names; "" if nothing matches.
std::string FindMatch(const Regex& regex, const std::string& text, PythonIndex index) {
  std::vector<std::string> groups;
  if (!FindNth(regex, text, index, &groups)) return "";
  const auto first = std::find_if(groups.begin(), groups.end(),
                                  [](const std::string& group) { return !group.empty(); });
  if (first == groups.end()) {
    if (groups.size() == 1) return "";
    throw AnswerError("too few matches", "no group of the pattern has matched any text");
  }
  return std::string(python::Strip(*first));
}

// MapRegexFilter: the value of the first pattern that matches in what all of them together match.
class MapRegexFilter : public Filter {
 public:
  explicit MapRegexFilter(const Json& kwargs)
      : index_{FieldOr<int64_t>(kwargs, "group_select", 0, kBbhWhere)},
        fallback_(FieldOr<Json>(kwargs, "fallback", "[invalid]", kBbhWhere)),
        ignored_(kwargs) {
    const Json values = FieldOr<Json>(kwargs, "regex_pattern_to_value", Json::object(), kBbhWhere);
    if (!values.is_object())
      ThrowField(kwargs, "regex_pattern_to_value", "a mapping of patterns", kBbhWhere);
    std::vector<std::string> patterns;
    for (const auto& [pattern, value] : values.items()) {
      patterns.push_back(pattern);
      values_.emplace_back(PythonRegex(pattern), value);
    }
    any_.emplace(Join(patterns, "|"));
  }

  Json Apply(const Json& responses, const PreparedDocument&, Fallbacks* fallbacks) const override {
    FilteredList filtered;
    for (const Json& response : Iterate(responses)) {
      Json value = fallback_;
      TakesAnswer(fallbacks, [&] { value = ValueOf(TextOf(response, kBbhWhere)); });
      filtered.Add(std::move(value));
    }
    return filtered.Take();
  }

 private:
  Json ValueOf(const std::string& response) const {
    const std::string whole = FindMatch(*any_, ignored_.Without(response), index_);
    if (whole.empty()) return fallback_;
    for (const auto& [pattern, value] : values_) {
      if (FindMatch(pattern, ignored_.Without(whole), index_).empty()) continue;
      const bool falsy = value.is_null() || value == false || value == "" || value == 0 ||
                         (value.is_structured() && value.empty());
      return falsy ? fallback_ : value;
    }
    return fallback_;
  }

  PythonIndex index_;
  Json fallback_;
  IgnoredParts ignored_;
  std::vector<std::pair<PythonRegex, Json>> values_;
  std::optional<PythonRegex> any_;
};

// WordSortFilter: the document's words in the order in which the response has them last.
class WordSortFilter : public Filter {
 public:
  Json Apply(const Json& responses, const PreparedDocument& document,
             Fallbacks* fallbacks) const override {
    const PythonRegex words(PatternOf(document.doc));
    FilteredList filtered;
    for (const Json& response : Iterate(responses)) {
      std::string sorted = kNoAnswer;
      TakesAnswer(fallbacks, [&] { sorted = Sorted(words, TextOf(response, "WordSortFilter")); });
      filtered.Add(std::move(sorted));
    }
    return filtered.Take();
  }

 private:
  // The words between the first "List:" and the next. They are patterns, as in lm_eval.
  static std::string PatternOf(const Json& doc) {
    constexpr std::string_view kMark = "List:";
    const auto input = Field<std::string>(doc, "input", "WordSortFilter: the document");
    const size_t begin = input.find(kMark);
    if (begin == std::string::npos) {
      throw Error(ErrorKind::kInput,
                  fmt::format("WordSortFilter: the document's input '{}' has no 'List:'",
                              Shortened(input, 100)));
    }
    const std::string rest = input.substr(begin + kMark.size());
    std::vector<std::string> patterns;
    python::Split(rest.substr(0, rest.find(kMark)), -1, false, [&](std::string_view word) {
      patterns.push_back(fmt::format("\\b{}\\b", word));
    });
    return Join(patterns, "|");
  }

  static std::string Sorted(const PythonRegex& words, const std::string& response) {
    if (words.groups() > 1)
      throw Error(ErrorKind::kInput, "WordSortFilter: the document's words hold brackets");
    const auto group = static_cast<size_t>(words.groups());
    std::vector<std::string> last;  // each word once, where it stands last
    RegexSteps steps;
    words.ForEachMatch(
        response,
        [&](const Regex::Match& match) {
          const Regex::Span& span = match[group];
          const std::string word =
              span.matched() ? response.substr(span.begin, span.end - span.begin) : "";
          const auto known = std::find(last.begin(), last.end(), word);
          if (known != last.end()) last.erase(known);
          last.push_back(word);
          return true;
        },
        &steps);
    return Join(last, " ");
  }
};

}  // namespace

const std::vector<FilterMaker>& BbhFilterMakers() {
  static const std::vector<FilterMaker> makers = {
      {"!function bbh/zeroshot/utils.MapRegexFilter",
       {"regex_pattern_to_value", "group_select", "fallback", "ignore_case", "ignore_punctuation",
        "regexes_to_ignore"},
       [](const Json& kwargs) -> std::unique_ptr<Filter> {
         return std::make_unique<MapRegexFilter>(kwargs);
       }},
      {"!function bbh/zeroshot/utils.WordSortFilter",
       {},
       [](const Json&) -> std::unique_ptr<Filter> { return std::make_unique<WordSortFilter>(); }},
      BbhMultiChoiceFilterMaker(),
  };
  return makers;
}

}  // namespace evald
