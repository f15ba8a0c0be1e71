#pragma once

#include <map>
#include <string>
#include <vector>

#include "evald/json.h"
#include "orchestrator/prepare/preparation.h"
#include "orchestrator/schedule/prior.h"

namespace evald {

/// A mean over documents, from parts of which only the sums are known, and the spread of the parts'
/// means.
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

/// The expected and the measured costs of a run's tasks. Later runs are planned from them. A plain
/// value.
class RunCosts {
 public:
  /// The priors of the suite's tasks, in its order.
  void Expect(std::vector<Prior> priors) { priors_ = std::move(priors); }
  /// A slice was generated on a device of this kind.
  void SawSlice(size_t task, const std::string& device, int64_t documents, int64_t tokens_in,
                int64_t tokens_out, double device_s, double longest_s);
  void SawJob(size_t task, int64_t documents, double slot_s);

  /// The measured costs, for the database.
  std::vector<TaskCost> Measured(const Suite& suite, const CostPlace& place, double ended) const;
  /// {"tasks": {NAME: {"basis", "expected_device_s", "device_s", "factor", ...}}, "factor"}: how
  /// far the estimates were off, with tasks weighted by their device seconds. Only tasks that were
  /// measured.
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

/// The facts that are known of a prepared task before it runs.
TaskFacts FactsOf(const SuiteTask& task);

}  // namespace evald
