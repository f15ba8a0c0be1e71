#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/regex.h"
#include "metrics/filters.h"

// What the files that implement filters share.
namespace evald {

/// Makes a filter from its arguments. Throws Error(kInput).
struct FilterMaker {
  const char* name;
  std::vector<std::string> arguments;  ///< the names it takes
  std::unique_ptr<Filter> (*make)(const Json& kwargs);
};

const std::vector<FilterMaker>& RegexFilterMakers();  ///< regex_filters.cc, multi_choice_filter.cc
const std::vector<FilterMaker>& CodeFilterMakers();   ///< code_filters.cc
FilterMaker MultiChoiceFilterMaker();                 ///< multi_choice_filter.cc

/// A filter that maps each response by itself, to `fallback` one that it cannot take.
class EachFilter : public Filter {
 public:
  using Map = std::function<Json(const Json& response)>;
  explicit EachFilter(Map map, Json fallback = nullptr)
      : map_(std::move(map)), fallback_(std::move(fallback)) {}
  Json Apply(const Json& responses, const PreparedDocument& document,
             Fallbacks* fallbacks) const override;

 private:
  Map map_;
  Json fallback_;
};

/// What Python's iteration gives: the items of a list, the characters of a string. Throws
/// AnswerError for null, Error(kInput) for anything else.
std::vector<Json> Iterate(const Json& value);

/// The response as text. Throws AnswerError for null (what a filter `map` without default_value
/// gives), Error(kInput) for anything else but a string.
const std::string& TextOf(const Json& response, const char* filter);

/// `str.strip()`: without white space in Python's sense at both ends.
std::string_view PythonStrip(std::string_view text);

/// A list's item by Python's rule: -1 is the last.
struct PythonIndex {
  int64_t value = 0;
};

/// findall(text)[index]: the match as text, or its groups when the pattern has more than one.
/// False when nothing matches. Throws AnswerError when something matches but not so often,
/// RegexGivenUp when that takes too many steps.
bool FindNth(const Regex& regex, std::string_view text, PythonIndex index,
             std::vector<std::string>* groups);

}  // namespace evald
