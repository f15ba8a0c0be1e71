#pragma once

#include <string>
#include <vector>

// Scores of one answer against one reference, as process_results of lm_eval's tasks compute them.
namespace evald {

/// sacrebleu's corpus_bleu of one answer and one reference with the tokenizer "intl", which sets
/// Unicode's punctuation and symbols apart, from 0 to 100.
double IntlBleu(const std::string& answer, const std::string& reference);

/// F-measures from 0 to 1.
struct RougeScores {
  double rouge1 = 0;
  double rouge2 = 0;
  double rouge_lsum = 0;  ///< of sentences, which lines are
};

/// RougeScorer(["rouge1", "rouge2", "rougeLsum"]).score(reference, answer) of the package
/// rouge-score 0.1.2 (Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries"). Throws
/// Error(kInput) for texts whose comparison would take more than some seconds.
RougeScores Rouge(const std::string& reference, const std::string& answer);

}  // namespace evald
