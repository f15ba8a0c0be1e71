#pragma once

#include <string>
#include <vector>

#include "base/regex.h"
#include "evald/json.h"

namespace evald {

/// exact_match of lm_eval 0.4.13 (api/metrics.py, exact_match_hf_evaluate): the share of
/// predictions that equal their reference, after, in this order: each of regexes_to_ignore removed,
/// ignore_case, ignore_punctuation, ignore_numbers (ASCII). As there, text is held in numpy arrays
/// of fixed width: trailing NUL characters do not count, and what grows in lower case is cut to the
/// longest text's length.
class ExactMatch {
 public:
  /// Throws Error(kInput) for an unknown argument.
  explicit ExactMatch(const Json& kwargs);

  /// The score of one prediction for each reference; the lists have equal length, at least 1.
  double Score(std::vector<std::string> predictions, std::vector<std::string> references) const;

  /// Whether only whole equality counts, so that values other than text can be compared.
  bool plain() const {
    return ignored_.empty() && !ignore_case_ && !ignore_punctuation_ && !ignore_numbers_;
  }

 private:
  void Reduce(std::vector<std::string>* texts) const;

  std::vector<Regex> ignored_;
  bool ignore_case_;
  bool ignore_punctuation_;
  bool ignore_numbers_;
};

}  // namespace evald
