#pragma once

#include <map>
#include <string>
#include <vector>

#include "evald/json.h"
#include "orchestrator/run/preparation.h"
#include "orchestrator/schedule/prior.h"

namespace evald {

/// A mean over documents, from parts that give their sum only, and how far the parts' means were
/// from it.
class PartMean {
 public:
  void Add(double documents, double sum);
  double documents() const { return documents_; }
  double sum() const { return sum_; }
  /// Standard deviation of the parts' means, weighted by their documents.
  double deviation() const;

 private:
  double documents_ = 0, sum_ = 0, squares_ = 0;
};

/// What a run's tasks were expected to cost, and what they did: what later runs are planned from. A
/// plain value.
class RunCosts {
 public:
  /// The priors of the suite's tasks, in its order.
  void Expect(std::vector<Prior> priors) { priors_ = std::move(priors); }
  /// A slice was generated on a device of this kind.
  void SawSlice(size_t task, const std::string& device, int64_t documents, int64_t tokens_in,
                int64_t tokens_out, double device_s, double longest_s);
  void SawJob(size_t task, int64_t documents, double slot_s);

  /// What was measured, for the database.
  std::vector<TaskCost> Measured(const Suite& suite, const CostPlace& place, double ended) const;
  /// {"tasks": {NAME: {"basis", "expected_device_s", "device_s", "factor", ...}}, "factor"}: how
  /// far estimates were off, tasks weighted by their device seconds. Of tasks that were measured.
  Json Report(const Suite& suite) const;

 private:
  struct Device {
    PartMean seconds;
    double tokens_in = 0, tokens_out = 0, longest_s = 0;
  };
  std::vector<Prior> priors_;
  std::map<size_t, std::map<std::string, Device>> generated_;  // by task and kind of device
  std::map<size_t, PartMean> scored_;
};

/// What is known of a prepared task before it runs.
TaskFacts FactsOf(const SuiteTask& task);

}  // namespace evald
