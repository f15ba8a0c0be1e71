// process_results by a function of lm_eval's tasks that is built in.
#include "metrics/process_results.h"
#include "metrics/scoring/metrics.h"

namespace evald {
namespace {

class BuiltinResults : public ProcessResults {
 public:
  BuiltinResults(const TaskDefinition& task, const TaskResults& results)
      : results_(results),
        choice_(task.output_type == "multiple_choice"),
        likelihood_(task.output_type != "generate_until"),
        unconditional_(choice_ && NeedsUnconditional(task.metrics)) {
    for (const MetricSpec& spec : task.metrics) names_.push_back(spec.metric);
  }

  size_t Requests(const PreparedDocument& document) const override {
    return choice_ ? document.choices.size() * (unconditional_ ? 2 : 1) : 1;
  }

  std::vector<std::string> Metrics() const override { return names_; }

  // A document that cannot be scored with these answers cannot be scored with any.
  void Check(const PreparedDocument& document) const override {
    const Json answer = likelihood_ ? Json::array({0.0, false}) : Json("");
    results_.score(document.doc, std::vector<Json>(Requests(document), answer));
  }

  Json Run(const PreparedDocument& document, const std::vector<Json>& filtered,
           Json*) const override {
    return results_.score(document.doc, filtered);
  }

 private:
  const TaskResults& results_;
  bool choice_;
  bool likelihood_;
  bool unconditional_;
  std::vector<std::string> names_;
};

}  // namespace

std::unique_ptr<ProcessResults> MakeTaskResults(const TaskDefinition& task,
                                                const TaskResults& results) {
  return std::make_unique<BuiltinResults>(task, results);
}

}  // namespace evald
