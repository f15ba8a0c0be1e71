#pragma once

#include <optional>
#include <string>

#include "evald/json.h"
#include "evald/task.h"
#include "metrics/judge/panel.h"
#include "metrics/judge/spec.h"
#include "prepared/prepared_task.h"

namespace evald {

/// A metric `judge` of a task.
class JudgeMetric {
 public:
  /// `panel` may be null if nothing will be scored. Throws like JudgeSpecOf.
  JudgeMetric(const MetricSpec& metric, JudgePanel* panel);
  JudgeMetric(const JudgeMetric&) = delete;
  JudgeMetric& operator=(const JudgeMetric&) = delete;

  const JudgeSpec& spec() const { return spec_; }

  /// Throws Error(kInput) if the document lacks a field that a template names, or the reference.
  void Check(const PreparedDocument& document) const;

  /// The score of a response; nothing while the judge is being asked. Appends the answers to
  /// `detail`. Throws NotJudged, and Error(kInput) for a response that fits into no prompt.
  std::optional<double> Score(const PreparedDocument& document, const Json& target,
                              const Json& response, Json* detail) const;

 private:
  /// The texts of a prompt, in one of the orders of a pair.
  Json Messages(const PreparedDocument& document, const Json& target, const std::string& response,
                bool swapped) const;
  /// One for each order of a pair and each vote. Throws Error(kInput): no prompt can be made with
  /// this response, which may be too long.
  std::vector<JudgeQuestion> Questions(const PreparedDocument& document, const Json& target,
                                       const std::string& response) const;
  std::string ReferenceOf(const PreparedDocument& document) const;

  JudgeSpec spec_;
  JudgePanel* panel_;
};

/// Throws Error(kInput) if the metric and the settings do not fit together: several votes that
/// would all be equal.
void CheckJudge(const JudgeSpec& spec, const JudgeSettings& settings);

}  // namespace evald
