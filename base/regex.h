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

/// A search that was given up: it needed more steps, or more places to go back to, than allowed.
class RegexGivenUp : public Error {
 public:
  using Error::Error;
};

/// As long as this object lives, all answers that this thread searches belong to one document.
/// Together they may take 400 million steps (four times the limit of one text, RegexSteps) and 60 s
/// of processor time. After that, each search still gets a thousand steps. So a document with many
/// filters or answers cannot hold a process for long. Not nested.
class RegexDocument {
 public:
  RegexDocument();
  ~RegexDocument();
  RegexDocument(const RegexDocument&) = delete;
  RegexDocument& operator=(const RegexDocument&) = delete;

 private:
  friend class RegexSteps;
  unsigned long left_ = 400'000'000;
  double end_;
};

/// The steps back that all searches of one text may take together. Steps are counted and not timed,
/// so the machine's load decides nothing. Characters that a search passes over without a step back
/// do not count, as in `[^}]*` before a `}`. Such a search may pass over the rest of the text once
/// from each place, which takes long and counts no steps. So processor time is limited, too. The
/// limit is far above the time of a text that was not written to be slow.
class RegexSteps {
 public:
  /// The owner of the text. The task's own texts do not count against the document's limit
  /// (RegexDocument). So an answer cannot use up the steps that the task's texts need.
  enum class Text { kAnswer, kTasks };
  explicit RegexSteps(Text text = Text::kAnswer, double seconds = 20);
  /// Called at each place from which a search is tried. False if there is no time left.
  bool Start();
  /// The most steps for the next try of a search; 0 if none are left.
  unsigned long Try(unsigned long wanted) const;
  void Take(unsigned long steps);

 private:
  RegexDocument* document_;  ///< whose text it is; null: of none
  unsigned long left_ = 100'000'000;
  double end_;
  unsigned starts_ = 0;
};

struct RegexOptions {
  bool dot_all = false;  ///< '.' matches a line feed too
  bool ignore_case = false;
  /// Without case one character matches one: "ss" does not match a sharp s.
  bool fold_one_to_one = false;
  /// A search with RegexSteps calls RegexSteps::Start at each place from which the search is tried;
  /// Start looks at the clock now and then. This takes a little time at each place, and the search
  /// can no longer skip ahead to a fixed text that each match has.
  bool timed = false;
  std::string shown;  ///< the pattern that errors quote; empty: the one that is compiled
};

/// A compiled pattern over UTF-8 in Oniguruma's Ruby syntax, which the Hugging Face tokenizers
/// library takes too; python/regex.h compiles those of Python's `re`. Several threads may match at
/// once.
/// A search gives up with RegexGivenUp (an Error(kInput)) after 50 million steps, so that endless
/// backtracking cannot hang the process, or if it needs a stack of more than 16 Mi entries. With
/// `steps`, all searches of the text together are bounded, too: such a text comes from others, who
/// may have made it for the pattern.
class Regex {
 public:
  /// Throws Error(kInput) that quotes the pattern and names its fault.
  Regex(const std::string& pattern, const RegexOptions& options);
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  /// Byte range [begin, end) of a group. begin is npos if the group did not take part.
  struct Span {
    size_t begin = std::string_view::npos;
    size_t end = std::string_view::npos;
    bool matched() const { return begin != std::string_view::npos; }
  };
  /// Group 0 is the whole match.
  using Match = std::vector<Span>;

  /// The first match at or after byte `start`; false if there is none.
  bool Search(std::string_view text, size_t start, Match* match, RegexSteps* steps = nullptr) const;

  /// Visits the matches that do not overlap, from left to right, like Python's re.finditer (after
  /// an empty match it looks for one that is not empty at the same place), until `visit` returns
  /// false. Its memory does not grow with the text.
  void ForEachMatch(std::string_view text, const std::function<bool(const Match&)>& visit,
                    RegexSteps* steps = nullptr) const;

  /// All matches.
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

/// The ranges of code points, first and last of each, that \p{name} matches in Oniguruma's dialect.
/// Throws Error(kInput) for an unknown property.
std::vector<std::pair<char32_t, char32_t>> OnigurumaRanges(const std::string& property);

}  // namespace evald
