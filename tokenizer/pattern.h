#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/regex.h"
#include "evald/json.h"

namespace evald::tok {

/// Bytes [begin, end) of a text, and whether a pattern matched them.
struct Stretch {
  size_t begin = 0;
  size_t end = 0;
  bool match = false;
};

/// Stretches that cover a text from left to right.
using Cover = std::vector<Stretch>;

/// {"String": "..."} or {"Regex": "..."} of a tokenizer.json. Several threads may use
/// one Pattern at once.
class Pattern {
 public:
  /// Throws Error(kInput) "<where>: ..." for any other form and for a bad expression.
  static Pattern FromJson(const Json& json, const std::string& where);
  static Pattern FromRegex(const std::string& expression);

  /// Returns a cover of `text`: the matches, and the stretches between them. Matches do not
  /// overlap. An empty match that touches the match before it does not count. Throws Error(kInput)
  /// if the expression backtracks too often on this text.
  Cover Find(std::string_view text) const;
  /// `text` with every match replaced by `replacement`.
  std::string Replace(std::string_view text, std::string_view replacement) const;

 private:
  Pattern() = default;

  Cover FindExpression(std::string_view text) const;

  std::string where_;    // place of the pattern in its file; "" for evald's own patterns
  std::string literal_;  // used if there is no expression; never empty
  std::optional<Regex> regex_;
};

/// A cover of `text`. Each code point for which `matches` is true is one match.
Cover FindCodePoints(std::string_view text, const std::function<bool(char32_t)>& matches);

/// The same stretches: matches become non-matches, and the other way round.
Cover Inverted(Cover cover);

/// The treatment of matches when a text is split (the SplitDelimiterBehavior of the tokenizers
/// library).
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

/// Throws Error(kInput) "<where>: ..." for an unknown name.
SplitBehavior SplitBehaviorFromString(const std::string& name, const std::string& where);

/// Splits a text at the matches of `cover` and returns the byte ranges of the pieces. Some may be
/// empty. Their `match` has no meaning.
std::vector<Stretch> ApplyBehavior(const Cover& cover, SplitBehavior behavior);

}  // namespace evald::tok
