#include "tokenizer/pattern.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/find_text.h"
#include "base/jsonl.h"
#include "evald/error.h"
#include "tokenizer/component.h"
#include "tokenizer/expression.h"
#include "tokenizer/unicode.h"

namespace evald::tok {
namespace {

void AddMatch(Cover* cover, size_t begin, size_t end) {
  const size_t covered = cover->empty() ? 0 : cover->back().end;
  if (covered != begin) cover->push_back({covered, begin, false});
  cover->push_back({begin, end, true});
}

void CoverRest(Cover* cover, size_t size) {
  const size_t covered = cover->empty() ? 0 : cover->back().end;
  if (covered != size) cover->push_back({covered, size, false});
}

Cover FindLiteral(std::string_view text, std::string_view literal) {
  Cover cover;
  for (size_t at = FindText(text, literal); at != std::string_view::npos;) {
    AddMatch(&cover, at, at + literal.size());
    at = FindText(text, literal, at + literal.size());
  }
  CoverRest(&cover, text.size());
  return cover;
}

Cover FindRegex(std::string_view text, const Regex& regex) {
  Cover cover;
  Regex::Match match;
  size_t last_end = std::string_view::npos;
  for (size_t at = 0; regex.Search(text, at, &match);) {
    const auto [begin, end] = match[0];
    if (begin == end && end == last_end) {
      // The last match ended here. The search goes on after the next code point.
      if (at >= text.size()) break;
      NextCodePoint(text, &at);
      continue;
    }
    AddMatch(&cover, begin, end);
    last_end = at = end;
  }
  CoverRest(&cover, text.size());
  return cover;
}

// Joins a match to the piece before it, unless that piece ends with a match.
std::vector<Stretch> MergeWithPrevious(const Cover& cover) {
  std::vector<Stretch> pieces;
  bool previous = false;
  for (const Stretch& stretch : cover) {
    if (stretch.match && !previous && !pieces.empty()) {
      pieces.back().end = stretch.end;
    } else {
      pieces.push_back(stretch);
    }
    previous = stretch.match;
  }
  return pieces;
}

std::vector<Stretch> MergeWithNext(const Cover& cover) {
  std::vector<Stretch> pieces;
  bool previous = false;
  for (auto stretch = cover.rbegin(); stretch != cover.rend(); ++stretch) {
    if (stretch->match && !previous && !pieces.empty()) {
      pieces.back().begin = stretch->begin;
    } else {
      pieces.push_back(*stretch);
    }
    previous = stretch->match;
  }
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

std::vector<Stretch> JoinAlike(const Cover& cover) {
  std::vector<Stretch> pieces;
  bool previous = false;
  for (const Stretch& stretch : cover) {
    if (stretch.match == previous && !pieces.empty()) {
      pieces.back().end = stretch.end;
    } else {
      pieces.push_back(stretch);
    }
    previous = stretch.match;
  }
  return pieces;
}

}  // namespace

Pattern Pattern::FromRegex(const std::string& expression) {
  Pattern pattern;
  pattern.regex_.emplace(WidenProperties(expression), RegexOptions{});
  return pattern;
}

Pattern Pattern::FromJson(const Json& json, const std::string& where) {
  try {
    if (json.is_object() && json.size() == 1 && json.contains("Regex")) {
      Pattern pattern = FromRegex(Field<std::string>(json, "Regex", where));
      pattern.where_ = where;
      return pattern;
    }
    if (json.is_object() && json.size() == 1 && json.contains("String")) {
      Pattern pattern;
      pattern.literal_ = Field<std::string>(json, "String", where);
      if (pattern.literal_.empty()) return FromRegex("");
      return pattern;
    }
  } catch (Error& e) {
    if (!e.message().starts_with(where)) e.AddContext(where);
    throw;
  }
  throw Error(ErrorKind::kInput,
              fmt::format("{}: found {}, expected {{\"String\": ...}} or {{\"Regex\": ...}}", where,
                          ToLine(json).substr(0, 80)));
}

Cover Pattern::Find(std::string_view text) const {
  if (text.empty()) return {{0, 0, false}};
  return regex_ ? FindExpression(text) : FindLiteral(text, literal_);
}

Cover Pattern::FindExpression(std::string_view text) const {
  try {
    return FindRegex(text, *regex_);
  } catch (Error& e) {
    if (!where_.empty()) e.AddContext(where_ + ": pattern");
    throw;
  }
}

std::string Pattern::Replace(std::string_view text, std::string_view replacement) const {
  std::string out;
  for (const Stretch& stretch : Find(text)) {
    out += stretch.match ? replacement : text.substr(stretch.begin, stretch.end - stretch.begin);
    CheckGrowth(text.size(), out.size());
  }
  return out;
}

Cover FindCodePoints(std::string_view text, const std::function<bool(char32_t)>& matches) {
  Cover cover;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    if (matches(NextCodePoint(text, &at))) AddMatch(&cover, begin, at);
  }
  CoverRest(&cover, text.size());
  return cover;
}

Cover Inverted(Cover cover) {
  for (Stretch& stretch : cover) stretch.match = !stretch.match;
  return cover;
}

SplitBehavior SplitBehaviorFromString(const std::string& name, const std::string& where) {
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  RefuseType("split behavior", name,
             {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"}, where);
}

std::vector<Stretch> ApplyBehavior(const Cover& cover, SplitBehavior behavior) {
  switch (behavior) {
    case SplitBehavior::kRemoved: {
      std::vector<Stretch> pieces;
      for (const Stretch& stretch : cover) {
        if (!stretch.match) pieces.push_back(stretch);
      }
      return pieces;
    }
    case SplitBehavior::kIsolated:
      return cover;
    case SplitBehavior::kMergedWithPrevious:
      return MergeWithPrevious(cover);
    case SplitBehavior::kMergedWithNext:
      return MergeWithNext(cover);
    case SplitBehavior::kContiguous:
      return JoinAlike(cover);
  }
  return cover;
}

}  // namespace evald::tok
