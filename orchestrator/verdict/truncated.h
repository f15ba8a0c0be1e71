#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "orchestrator/config/gates.h"
#include "orchestrator/verdict/result_set.h"

namespace evald {

/// The answers of a task or group, and how many of them ran into max_gen_toks.
struct TruncatedCount {
  std::string task;
  int64_t truncated = 0;
  int64_t answers = 0;

  double Share() const {
    return static_cast<double>(truncated) / static_cast<double>(std::max<int64_t>(answers, 1));
  }
  /// "gsm8k: 12 of 80 answers (15.0 %)"
  std::string Text() const;
};

/// The counts that a gate on truncated answers bounds, from evald.truncated_answers of the results.
/// A gate on a task or group has one count. A gate on every task has one for each task that
/// generates text, but for those that another such gate of the policy names, also by a group.
/// Throws Error(kUsage) "file:line: ..." if there is none.
std::vector<TruncatedCount> TruncatedCounts(const Gate& gate, const GatePolicy& policy,
                                            const ResultSet& set);

}  // namespace evald
