#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace evald {

/// The dialect in which a pattern is written.
enum class RegexDialect {
  kPython,     ///< Python's `re`, for filters and metrics (see base/python_pattern.h)
  kOniguruma,  ///< what the Hugging Face tokenizers library takes (Oniguruma's Ruby syntax)
};

struct RegexFlags {
  bool dot_all = false;      ///< re.DOTALL
  bool ignore_case = false;  ///< re.IGNORECASE
  bool multiline = false;    ///< re.MULTILINE (Python dialect)
};

/// A compiled pattern over UTF-8 (Oniguruma). Matching may be done from several threads at once.
/// A search gives up with Error(kInput) after a bounded number of steps, so that a pattern that
/// backtracks without end cannot hang the process, or needs a stack of more than 16 Mi entries.
class Regex {
 public:
  /// Throws Error(kInput) that quotes the pattern and says what is wrong with it.
  explicit Regex(const std::string& pattern, RegexDialect dialect = RegexDialect::kPython,
                 RegexFlags flags = {});
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  /// Byte range [begin, end) of a group; begin is npos for a group that did not take part.
  struct Span {
    size_t begin = std::string_view::npos;
    size_t end = std::string_view::npos;
    bool matched() const { return begin != std::string_view::npos; }
  };
  /// Group 0 is the whole match.
  using Match = std::vector<Span>;

  /// The first match at or after byte `start`; false when there is none.
  bool Search(std::string_view text, size_t start, Match* match) const;

  /// Visits the matches from left to right that do not overlap, as Python's re.finditer gives them
  /// (after an empty match it looks for one that is not empty at the same place), until `visit`
  /// returns false. Needs no memory that grows with the text.
  void ForEachMatch(std::string_view text, const std::function<bool(const Match&)>& visit) const;

  /// All of them.
  std::vector<Match> FindAll(std::string_view text) const;

  /// re.sub with a literal replacement.
  std::string ReplaceAll(std::string_view text, std::string_view replacement) const;

  /// Number of capture groups, not counting group 0.
  int groups() const;

 private:
  struct Compiled;
  bool MatchNotEmptyAt(std::string_view text, size_t at, Match* match) const;

  std::unique_ptr<Compiled> compiled_;
};

/// The code points, first and last of each range, that \p{name} takes in Oniguruma's dialect.
/// Throws Error(kInput) for a property that it does not know.
std::vector<std::pair<char32_t, char32_t>> OnigurumaRanges(const std::string& property);

}  // namespace evald
