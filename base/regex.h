#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "evald/error.h"

namespace evald {

/// A search that was given up: it needed more steps, or more places to go back to, than it may.
class RegexGivenUp : public Error {
 public:
  using Error::Error;
};

/// The steps that the searches of one text may take together. They are counted, not timed, so that
/// the machine's load decides nothing.
class RegexSteps {
 public:
  /// The most that the next try of a search may take; 0 when nothing is left.
  unsigned long Try(unsigned long wanted) const { return wanted < left_ ? wanted : left_; }
  void Take(unsigned long steps) { left_ -= steps < left_ ? steps : left_; }

 private:
  unsigned long left_ = 100'000'000;
};

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
/// A search gives up with RegexGivenUp (an Error(kInput)) after 50 million steps, so that a pattern
/// that backtracks without end cannot hang the process, or where it needs a stack of more than 16
/// Mi entries. With `steps`, all searches of the text together are bounded as well: the text is
/// then somebody else's, who may have made it for the pattern.
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
  bool Search(std::string_view text, size_t start, Match* match, RegexSteps* steps = nullptr) const;

  /// Visits the matches from left to right that do not overlap, as Python's re.finditer gives them
  /// (after an empty match it looks for one that is not empty at the same place), until `visit`
  /// returns false. Needs no memory that grows with the text.
  void ForEachMatch(std::string_view text, const std::function<bool(const Match&)>& visit,
                    RegexSteps* steps = nullptr) const;

  /// All of them.
  std::vector<Match> FindAll(std::string_view text) const;

  /// re.sub with a literal replacement.
  std::string ReplaceAll(std::string_view text, std::string_view replacement,
                         RegexSteps* steps = nullptr) const;

  /// Number of capture groups, not counting group 0.
  int groups() const;

 private:
  struct Compiled;
  bool MatchNotEmptyAt(std::string_view text, size_t at, Match* match, RegexSteps* steps) const;

  std::unique_ptr<Compiled> compiled_;
};

/// The code points, first and last of each range, that \p{name} takes in Oniguruma's dialect.
/// Throws Error(kInput) for a property that it does not know.
std::vector<std::pair<char32_t, char32_t>> OnigurumaRanges(const std::string& property);

}  // namespace evald
