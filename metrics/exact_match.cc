#include "metrics/exact_match.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "jinja/unicode.h"

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
    std::u32string lowered = jinja::Decode(jinja::Lower(text));
    if (lowered.size() > width) lowered.resize(width);
    text = jinja::Encode(lowered);
  }
}

}  // namespace

ExactMatch::ExactMatch(const Json& kwargs)
    : ignore_case_(FieldOr<bool>(kwargs, "ignore_case", false, kWhere)),
      ignore_punctuation_(FieldOr<bool>(kwargs, "ignore_punctuation", false, kWhere)),
      ignore_numbers_(FieldOr<bool>(kwargs, "ignore_numbers", false, kWhere)) {
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

void ExactMatch::Reduce(std::vector<std::string>* texts) const {
  // The first pattern sees the text as it is; every numpy array after it has lost trailing NULs.
  for (const Regex& regex : ignored_) {
    for (std::string& text : *texts) {
      RegexSteps steps;
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
  Reduce(&predictions);
  Reduce(&references);
  size_t equal = 0;
  for (size_t i = 0; i < predictions.size(); ++i) equal += predictions[i] == references[i] ? 1 : 0;
  return static_cast<double>(equal) / static_cast<double>(predictions.size());
}

}  // namespace evald
