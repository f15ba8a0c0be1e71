#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/regex.h"
#include "metrics/filters.h"

// Shared by the files that implement filters.
namespace evald {

/// Makes a filter from its arguments. Throws Error(kInput).
struct FilterMaker {
  const char* name;
  std::vector<std::string> arguments;  ///< the names of its arguments
  std::unique_ptr<Filter> (*make)(const Json& kwargs);
};

const std::vector<FilterMaker>& RegexFilterMakers();  ///< regex_filters.cc, multi_choice_filter.cc
const std::vector<FilterMaker>& CodeFilterMakers();   ///< code_filters.cc
const std::vector<FilterMaker>& BbhFilterMakers();    ///< bbh_filters.cc
FilterMaker MultiChoiceFilterMaker();                 ///< multi_choice_filter.cc
FilterMaker BbhMultiChoiceFilterMaker();              ///< multi_choice_filter.cc

/// A filter that maps each response by itself. A response that it cannot map becomes `fallback`.
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

/// Whether the character is of one of Unicode's categories of punctuation.
bool IsPunctuation(char32_t c);

/// The list that a filter makes of a request's responses. Short responses may become long ones (a
/// fallback, a prompt), so the list is bounded. Throws Error(kInput) beyond kDocumentBytesMax.
class FilteredList {
 public:
  void Add(Json value);
  Json Take() { return std::move(list_); }

 private:
  Json list_ = Json::array();
  uint64_t bytes_ = 0;
};

/// About how many bytes of memory the value takes, at least those of its texts.
uint64_t BytesOf(const Json& value);

/// The items of Python's iteration: those of a list, or the characters of a string. Throws
/// AnswerError for null, and Error(kInput) for anything else, and for a text of more than
/// kIteratedMax characters: each takes as much memory as a short text.
std::vector<Json> Iterate(const Json& value);
inline constexpr size_t kIteratedMax = 1'000'000;

/// The response as text. Throws AnswerError for null (which the filter `map` gives without
/// default_value), and Error(kInput) for anything else but a string.
const std::string& TextOf(const Json& response, const char* filter);

/// The index of a list's item by Python's rule: -1 is the last.
struct PythonIndex {
  int64_t value = 0;
};

/// findall(text)[index]: the match as text, or its groups if the pattern has more than one. False
/// if nothing matches. Throws AnswerError if there are matches but too few, and RegexGivenUp if the
/// search takes too many steps.
bool FindNth(const Regex& regex, std::string_view text, PythonIndex index,
             std::vector<std::string>* groups);

}  // namespace evald
