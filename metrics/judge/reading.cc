#include "metrics/judge/reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace {

constexpr size_t kShownVerdictBytes = 80;
constexpr size_t kVerdictValuesMax = 10'000;
constexpr double kTie = 0.5;

// Where a verdict stands, before it is known what it counts.
struct Found {
  std::optional<std::string> text;
  bool at_end = false;  // the text's end is the answer's: the rest of a cut answer may change it
  std::string why;
};

std::string LowerAscii(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

std::string ShownVerdict(std::string_view text) {
  return PrintableLine(Shortened(ReplaceInvalidUtf8(Trim(text)), kShownVerdictBytes));
}

Found FindByPattern(const JudgeSpec& spec, const std::string& text) {
  Found found;
  found.why = fmt::format("the pattern matches nothing in '{}'", ShownVerdict(text));
  const auto group = static_cast<size_t>(spec.group);
  try {
    RegexSteps steps;
    spec.pattern->ForEachMatch(
        text,
        [&](const Regex::Match& match) {
          if (!match[group].matched()) return true;
          found.text = text.substr(match[group].begin, match[group].end - match[group].begin);
          found.at_end = match[group].end == text.size();
          return !spec.first_match;
        },
        &steps);
  } catch (const RegexGivenUp&) {
    found.text.reset();
    found.why = "the search for the pattern was given up: it took too many steps";
  }
  return found;
}

// The JSON object in a text: the whole text, or what stands between its first and last brace, in a
// code block or amid prose.
Json ObjectIn(const std::string& text) {
  constexpr const char* kAnswer = "the judge's answer";
  try {
    return ParseJson(Trim(text), kAnswer, kVerdictValuesMax);
  } catch (const Error&) {
    const size_t begin = text.find('{'), end = text.rfind('}');
    if (begin == std::string::npos || end == std::string::npos || end < begin) throw;
    return ParseJson(std::string_view(text).substr(begin, end - begin + 1), kAnswer,
                     kVerdictValuesMax);
  }
}

Found FindByPath(const JudgeSpec& spec, const std::string& text) {
  Found found;
  try {
    const Json document = ObjectIn(text);
    const Json& value = spec.path->Find(document);
    if (value.is_string() || value.is_number() || value.is_boolean()) {
      found.text = value.is_string() ? value.get<std::string>() : ToLine(value);
      return found;
    }
    found.why = fmt::format("{} is {}, expected a text or a number", spec.path->text(),
                            ShownVerdict(ToLine(value)));
  } catch (const Error& e) {
    found.why = fmt::format("no verdict at {} in '{}': {}", spec.path->text(), ShownVerdict(text),
                            Shortened(e.message(), 2 * kShownVerdictBytes));
  }
  return found;
}

std::optional<double> ScoreOfChoice(const JudgeSpec& spec, const std::string& text) {
  const auto of = [&](const auto& same) -> std::optional<double> {
    for (const auto& [choice, score] : spec.choices) {
      if (same(choice)) return score;
    }
    return std::nullopt;
  };
  const std::string verdict(Trim(text));
  if (const auto exact = of([&](const std::string& choice) { return choice == verdict; }))
    return exact;
  const std::string lower = LowerAscii(verdict);
  return of([&](const std::string& choice) { return LowerAscii(choice) == lower; });
}

std::optional<double> NumberIn(std::string_view text) {
  text = Trim(text);
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || after != end) return std::nullopt;
  return value;
}

JudgeReading ScoreInRange(const JudgeSpec& spec, const Found& found, bool cut) {
  const auto [low, high] = *spec.range;
  const std::optional<double> number = NumberIn(*found.text);
  if (!number) {
    return {std::nullopt,
            fmt::format("the verdict is '{}', expected a number", ShownVerdict(*found.text))};
  }
  // "1" may be the beginning of "10".
  if (cut && found.at_end)
    return {std::nullopt, "the answer was cut off amid the verdict (max_tokens)"};
  if (*number >= low && *number <= high) return {number, ""};
  return {std::nullopt, fmt::format("the verdict is {}, expected a number from {:g} to {:g}",
                                    ShownVerdict(*found.text), low, high)};
}

}  // namespace

JudgeReading ReadVerdict(const JudgeSpec& spec, const Completion& answer, bool swapped) {
  if (Trim(answer.text).empty()) {
    return {std::nullopt,
            answer.cut ? "the answer is empty, and ran into max_tokens" : "the answer is empty"};
  }
  const Found found = spec.path ? FindByPath(spec, answer.text) : FindByPattern(spec, answer.text);
  if (!found.text) return {std::nullopt, found.why};
  if (spec.range) return ScoreInRange(spec, found, answer.cut);
  const std::optional<double> score = ScoreOfChoice(spec, *found.text);
  if (!score) {
    return {std::nullopt,
            fmt::format("the verdict is '{}', which is no choice", ShownVerdict(*found.text))};
  }
  return {spec.pair() && swapped ? 1 - *score : *score, ""};
}

double CombineVotes(const JudgeSpec& spec, const std::vector<double>& votes) {
  if (!spec.majority) {
    double sum = 0;
    for (const double vote : votes) sum += vote;
    return sum / static_cast<double>(votes.size());
  }
  double best = votes.front();
  ptrdiff_t most = 0;
  for (const double vote : votes) {
    const ptrdiff_t count = std::count(votes.begin(), votes.end(), vote);
    if (count > most) best = vote;
    most = std::max(most, count);
  }
  return best;
}

double CombineOrders(const JudgeSpec& spec, double as_a, double as_b) {
  if (as_a == as_b) return as_a;
  return spec.differ_is_tie ? kTie : (as_a + as_b) / 2;
}

}  // namespace evald
