// multi_choice_regex of lm_eval 0.4.13 (filters/extraction.py), and MultiChoiceRegexFilter of its
// tasks/bbh: finds the letter of the chosen answer, by a pattern, else by the text of a choice,
// else by ": X".
#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <map>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "metrics/filter_support.h"
#include "python/regex.h"
#include "python/str.h"
#include "python/unicode.h"

namespace evald {
namespace {

constexpr const char* kWhere = "multi_choice_regex";

// A pattern that matches `text` itself (re.escape).
std::string Escaped(const std::string& text) {
  std::string pattern;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && !std::isalnum(byte)) {
      pattern += fmt::format("\\x{:02x}", byte);
    } else {
      pattern += c;
    }
  }
  return pattern;
}

// The filter's patterns for the choices of one document.
struct Choices {
  PythonRegex by_text;    // the choices' texts, longest first
  PythonRegex by_letter;  // ": A"
  std::map<std::string, std::string> text_to_letter;
  std::map<std::string, std::string> letter_to_letter;
};

class MultiChoiceFilter : public Filter {
 public:
  /// Where a document has its choices: in a list, or in the text of `input`, behind (A), (B), ...
  enum class From { kChoices, kInput };

  MultiChoiceFilter(const Json& kwargs, From from)
      : from_(from),
        regex_(FieldOr<std::string>(kwargs, "regex_pattern", "#### (\\-?[0-9\\.\\,]+)", kWhere)),
        index_{FieldOr<int64_t>(kwargs, "group_select", 0, kWhere)},
        fallback_(FieldOr<std::string>(kwargs, "fallback", "[invalid]", kWhere)),
        ignore_case_(FieldOr<bool>(kwargs, "ignore_case", false, kWhere)),
        ignore_punctuation_(FieldOr<bool>(kwargs, "ignore_punctuation", false, kWhere)) {
    for (const std::string& pattern :
         FieldOr<std::vector<std::string>>(kwargs, "regexes_to_ignore", {}, kWhere)) {
      ignored_.emplace_back(pattern);
    }
  }

  Json Apply(const Json& responses, const PreparedDocument& document,
             Fallbacks* fallbacks) const override {
    const Choices choices = ReadChoices(document.doc);
    FilteredList filtered;
    for (const Json& response : Iterate(responses)) {
      std::string match;
      if (!TakesAnswer(fallbacks, [&] { match = Letter(response, choices); })) match.clear();
      filtered.Add(match.empty() ? fallback_ : match);
    }
    return filtered.Take();
  }

 private:
  // "" if no letter is found.
  std::string Letter(const Json& response, const Choices& choices) const {
    const std::string text = response.is_string() ? response.get<std::string>() : "";
    std::string match = Find(regex_, text, {});
    if (match.empty())
      match =
          Find(choices.by_text, Reduced(text, RegexSteps::Text::kAnswer), choices.text_to_letter);
    if (match.empty()) match = Find(choices.by_letter, text, choices.letter_to_letter);
    return match;
  }

  // Python's iteration over doc["choices"]: a mapping has its keys, a text its characters.
  static std::vector<std::string> TextsOfChoices(const Json& doc) {
    constexpr const char* kDocument = "multi_choice_regex: the document";
    const auto choices = Field<Json>(doc, "choices", kDocument);
    std::vector<std::string> texts;
    if (choices.is_object()) {
      for (const auto& [key, value] : choices.items()) texts.push_back(key);
      return texts;
    }
    if (!choices.is_string()) return Field<std::vector<std::string>>(doc, "choices", kDocument);
    for (const Json& character : Iterate(choices)) texts.push_back(character);
    return texts;
  }

  static std::vector<std::string> TextsInInput(const Json& doc) {
    static const PythonRegex kChoice("\\([A-Z]\\)([^\\n^(]*)");
    const auto input = Field<std::string>(doc, "input", "bbh: the document");
    std::vector<std::string> texts;
    for (const Regex::Match& match : kChoice.FindAll(input))
      texts.push_back(input.substr(match[1].begin, match[1].end - match[1].begin));
    return texts;
  }

  Choices ReadChoices(const Json& doc) const {
    std::vector<std::string> patterns;
    std::vector<std::string> letters;
    std::map<std::string, std::string> text_to_letter, letter_to_letter;
    char32_t letter = U'A';
    for (const std::string& choice :
         from_ == From::kInput ? TextsInInput(doc) : TextsOfChoices(doc)) {
      const std::string text =
          Reduced(std::string(python::Strip(choice)), RegexSteps::Text::kTasks);
      std::string name;
      python::AppendUtf8(letter++, &name);
      patterns.push_back(text);
      text_to_letter[text] = "(" + name + ")";
      letters.push_back(Escaped(name));
      letter_to_letter[name] = "(" + name + ")";
    }
    // The harness sorts by the length of the escaped text.
    std::stable_sort(patterns.begin(), patterns.end(),
                     [](const std::string& a, const std::string& b) {
                       return EscapedLength(a) > EscapedLength(b);
                     });
    for (std::string& pattern : patterns) pattern = Escaped(pattern);
    return {PythonRegex(Join(patterns, "|")),
            PythonRegex(fmt::format(":[\\s]*({})", Join(letters, "|"))), std::move(text_to_letter),
            std::move(letter_to_letter)};
  }

  // len(re.escape(text)): re.escape puts a backslash before these characters.
  static size_t EscapedLength(const std::string& text) {
    static const std::string kSpecial("()[]{}?*+-|^$\\.&~# \t\n\r\v\f");
    return CodePoints(text) +
           static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
             return kSpecial.find(c) != std::string::npos;
           }));
  }

  std::string Reduced(std::string text, RegexSteps::Text whose) const {
    for (const Regex& regex : ignored_) {
      RegexSteps steps(whose);
      text = regex.ReplaceAll(text, "", &steps);
    }
    if (ignore_case_) text = python::Lower(text);
    if (!ignore_punctuation_) return text;
    std::u32string kept;
    for (const char32_t c : python::Decode(text)) {
      if (!IsPunctuation(c)) kept += c;
    }
    return python::Encode(kept);
  }

  std::string Find(const Regex& regex, const std::string& text,
                   const std::map<std::string, std::string>& names) const {
    std::vector<std::string> groups;
    if (!FindNth(regex, text, index_, &groups)) return "";
    const auto first = std::find_if(groups.begin(), groups.end(),
                                    [](const std::string& group) { return !group.empty(); });
    if (first == groups.end()) return "";
    std::string match(python::Strip(*first));
    const auto found = names.find(match);
    return match.empty() || found == names.end() ? match : found->second;
  }

  From from_;
  PythonRegex regex_;
  PythonIndex index_;
  std::string fallback_;
  bool ignore_case_;
  bool ignore_punctuation_;
  std::vector<PythonRegex> ignored_;
};

const std::vector<std::string> kMultiChoiceArguments = {"regex_pattern",      "group_select",
                                                        "fallback",           "ignore_case",
                                                        "ignore_punctuation", "regexes_to_ignore"};

}  // namespace

bool IsPunctuation(char32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      return true;
    default:
      return false;
  }
}

FilterMaker MultiChoiceFilterMaker() {
  return {kWhere, kMultiChoiceArguments, [](const Json& kwargs) -> std::unique_ptr<Filter> {
            return std::make_unique<MultiChoiceFilter>(kwargs, MultiChoiceFilter::From::kChoices);
          }};
}

FilterMaker BbhMultiChoiceFilterMaker() {
  return {"!function bbh/zeroshot/utils.MultiChoiceRegexFilter", kMultiChoiceArguments,
          [](const Json& kwargs) -> std::unique_ptr<Filter> {
            return std::make_unique<MultiChoiceFilter>(kwargs, MultiChoiceFilter::From::kInput);
          }};
}

}  // namespace evald
