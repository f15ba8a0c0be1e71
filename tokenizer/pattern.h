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

/// {"String": "..."} or {"Regex": "..."} of a tokenizer.json. Any thread may call it.
class Pattern {
 public:
  /// Throws Error(kInput) "<where>: ..." for anything else and for a bad expression.
  static Pattern FromJson(const Json& json, const std::string& where);
  static Pattern FromRegex(const std::string& expression);

  /// Matches do not overlap. An empty match that touches the match before it does not count. Throws
  /// Error(kInput) for an expression that goes back too often on this text.
  Cover Find(std::string_view text) const;
  /// `text` with `replacement` in the place of every match.
  std::string Replace(std::string_view text, std::string_view replacement) const;

 private:
  Pattern() = default;

  Cover FindExpression(std::string_view text) const;

  std::string where_;    // of the pattern in its file; "" for one of evald's own
  std::string literal_;  // used when there is no expression; never empty
  std::optional<Regex> regex_;
};

/// Every code point for which `matches` holds is a match of its own.
Cover FindCodePoints(std::string_view text, const std::function<bool(char32_t)>& matches);

/// Swaps what is a match and what is not.
Cover Inverted(Cover cover);

/// What becomes of the matches when a text is split (the SplitDelimiterBehavior of the tokenizers
/// library).
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

/// Throws Error(kInput) "<where>: ..." for an unknown name.
SplitBehavior SplitBehaviorFromString(const std::string& name, const std::string& where);

/// The byte ranges of the pieces, some of them maybe empty.
std::vector<Stretch> ApplyBehavior(const Cover& cover, SplitBehavior behavior);

}  // namespace evald::tok
