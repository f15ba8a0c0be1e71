// The filters of lm_eval 0.4.13 that search with regular expressions: regex, regex_pos,
// format_span.
#include <fmt/format.h>

#include <deque>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "metrics/filter_support.h"
#include "python/regex.h"
#include "python/str.h"
#include "python/unicode.h"

namespace evald {

bool FindNth(const Regex& regex, std::string_view text, PythonIndex index,
             std::vector<std::string>* groups) {
  std::deque<Regex::Match> kept;  // the last few matches, as many as the index may need
  const auto at = static_cast<size_t>(index.value);  // unsigned: -index.value may not fit
  const size_t wanted = index.value >= 0 ? at + 1 : -at;
  size_t seen = 0;
  RegexSteps steps;
  regex.ForEachMatch(
      text,
      [&](const Regex::Match& match) {
        kept.push_back(match);
        if (kept.size() > wanted) kept.pop_front();
        ++seen;
        return index.value < 0 || seen < wanted;
      },
      &steps);
  if (seen == 0) return false;
  if (seen < wanted) {
    throw AnswerError(
        "too few matches",
        fmt::format("group_select is {}, but the pattern matches {} times", index.value, seen));
  }
  const Regex::Match& match = index.value >= 0 ? kept.back() : kept.front();
  groups->clear();
  const size_t first = match.size() > 1 ? 1 : 0;
  for (size_t i = first; i < match.size(); ++i) {
    groups->emplace_back(match[i].matched()
                             ? text.substr(match[i].begin, match[i].end - match[i].begin)
                             : std::string_view());
  }
  return true;
}

namespace {

class RegexFilter : public Filter {
 public:
  explicit RegexFilter(const Json& kwargs)
      : regex_(FieldOr<std::string>(kwargs, "regex_pattern", "#### (\\-?[0-9\\.\\,]+)", "regex")),
        index_{FieldOr<int64_t>(kwargs, "group_select", 0, "regex")},
        fallback_(FieldOr<std::string>(kwargs, "fallback", "[invalid]", "regex")) {}

  Json Apply(const Json& responses, const PreparedDocument&, Fallbacks* fallbacks) const override {
    FilteredList filtered;
    for (const Json& response : Iterate(responses)) {
      std::string extracted = fallback_;
      TakesAnswer(fallbacks, [&] { extracted = Extract(response); });
      filtered.Add(std::move(extracted));
    }
    return filtered.Take();
  }

 private:
  std::string Extract(const Json& response) const {
    const std::string text = response.is_string() ? response.get<std::string>() : "";
    std::vector<std::string> groups;
    if (!FindNth(regex_, text, index_, &groups)) return fallback_;
    if (groups.size() == 1) return std::string(python::Strip(groups[0]));
    for (const std::string& group : groups) {
      if (!group.empty()) return std::string(python::Strip(group));
    }
    return std::string(python::Strip(fallback_));
  }

  PythonRegex regex_;
  PythonIndex index_;
  std::string fallback_;
};

// The tags of "('token', 'TAG')" pairs. The filter's own pattern is accepted and never used, as in
// the harness.
std::unique_ptr<Filter> MakeRegexPos(const Json& kwargs) {
  const auto regex = std::make_shared<const PythonRegex>("\\('([^']*)', '([^']*)'\\)");
  const Json fallback = FieldOr<Json>(kwargs, "fallback", Json::array({"invalid"}), "regex_pos");
  const auto tags_of = [regex, fallback](const Json& response) {
    const std::string& text = TextOf(response, "regex_pos");
    Json tags = Json::array();
    RegexSteps steps;
    regex->ForEachMatch(
        text,
        [&](const Regex::Match& match) {
          tags.push_back(text.substr(match[2].begin, match[2].end - match[2].begin));
          return true;
        },
        &steps);
    return tags.empty() ? fallback : tags;
  };
  return std::make_unique<EachFilter>(tags_of, fallback);
}

// Rewrites a model's answer to "find the named entities" as "per: a $ loc: b".
class FormatSpan {
 public:
  FormatSpan() : entity_("\\b(PER|LOC|ORG|DATE):\\s*([^$]+)") {
    static const std::pair<const char*, const char*> kLabels[] = {
        {"person", "PER"},  {"location", "LOC"},  {"organization", "ORG"}, {"counties", "LOC"},
        {"places", "LOC"},  {"people", "PER"},    {"persons", "PER"},      {"company", "ORG"},
        {"country", "LOC"}, {"continent", "LOC"}, {"time", "DATE"},        {"date", "DATE"},
        {"per", "PER"},     {"loc", "LOC"},       {"org", "ORG"}};
    for (const auto& [word, label] : kLabels) {
      labels_.emplace_back(PythonRegex(fmt::format("\\b{}\\s*:", word)), fmt::format("{}:", label));
    }
  }

  std::string operator()(const std::string& response) const { return Entities(Labelled(response)); }

 private:
  std::string Labelled(const std::string& response) const {
    std::string text = python::Lower(python::Lower(response));
    for (const auto& [regex, label] : labels_) {
      RegexSteps steps;
      text = regex.ReplaceAll(text, label, &steps);
    }
    std::string joined;
    for (size_t i = 0; i < text.size(); ++i) {
      joined += text[i];
      if (text[i] == '$' && i + 1 < text.size() && text[i + 1] == '$') ++i;
    }
    while (!joined.empty() && joined.back() == '$') joined.pop_back();
    return joined;
  }

  std::string Entities(std::string text) const {
    for (char& c : text) c = c == '\n' ? '$' : c;
    const std::string stripped(python::Strip(text));
    std::vector<std::string> entities;
    RegexSteps steps;
    entity_.ForEachMatch(
        stripped,
        [&](const Regex::Match& match) {
          const std::string label =
              python::Lower(stripped.substr(match[1].begin, match[1].end - match[1].begin));
          for (const std::string& part : Split(
                   std::string_view(stripped).substr(match[2].begin, match[2].end - match[2].begin),
                   ',')) {
            const std::string_view entity = python::Strip(part);
            if (python::Lower(entity) != "none")
              entities.push_back(fmt::format("{}: {}", label, entity));
          }
          return true;
        },
        &steps);
    return Join(entities, " $ ");
  }

  std::vector<std::pair<PythonRegex, std::string>> labels_;
  PythonRegex entity_;
};

std::unique_ptr<Filter> MakeFormatSpan(const Json&) {
  const auto format = std::make_shared<const FormatSpan>();
  return std::make_unique<EachFilter>(
      [format](const Json& response) { return Json((*format)(TextOf(response, "format_span"))); },
      "");
}

}  // namespace

const std::vector<FilterMaker>& RegexFilterMakers() {
  static const std::vector<FilterMaker> makers = {
      {"regex",
       {"regex_pattern", "group_select", "fallback"},
       [](const Json& kwargs) -> std::unique_ptr<Filter> {
         return std::make_unique<RegexFilter>(kwargs);
       }},
      {"regex_pos", {"regex_pattern", "group_select", "fallback"}, MakeRegexPos},
      {"format_span", {}, MakeFormatSpan},
      MultiChoiceFilterMaker(),
  };
  return makers;
}

}  // namespace evald
