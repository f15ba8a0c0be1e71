#pragma once

#include <optional>
#include <string>
#include <vector>

#include "metrics/judge/completion.h"
#include "metrics/judge/spec.h"

namespace evald {

/// What is read from one answer of a judge.
struct JudgeReading {
  std::optional<double> score;  ///< of the response; nothing: the answer has no verdict
  std::string why;              ///< why it has none
};

/// Finds the verdict in an answer. Of a pair, `swapped` says that the response was shown as B.
JudgeReading ReadVerdict(const JudgeSpec& spec, const Completion& answer, bool swapped);

/// The score of a response from its votes: their mean, or the most frequent one (of several equally
/// frequent ones the first). At least one vote.
double CombineVotes(const JudgeSpec& spec, const std::vector<double>& votes);

/// One vote on a pair, from the verdicts of both orders: their mean, or a tie if they differ and
/// the metric says so.
double CombineOrders(const JudgeSpec& spec, double as_a, double as_b);

}  // namespace evald
