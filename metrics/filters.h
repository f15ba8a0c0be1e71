#pragma once

#include <memory>
#include <string>
#include <vector>

#include "evald/json.h"
#include "evald/task.h"
#include "prepared/prepared_task.h"

namespace evald {

/// One step of a filter pipeline: lm_eval 0.4.13's filters/, for the responses of one request.
/// Immutable; any thread may call it.
class Filter {
 public:
  virtual ~Filter() = default;

  /// `responses` is at first the list of a request's repeats (strings, or [log-likelihood,
  /// is_greedy] pairs); later what the step before made of it. Throws Error(kInput) where the
  /// harness raises.
  virtual Json Apply(const Json& responses, const PreparedDocument& document) const = 0;
};

/// Names of all filters.
std::vector<std::string> FilterNames();

/// Throws Error(kInput) naming an unknown filter, argument or function and the nearest known.
std::unique_ptr<Filter> MakeFilter(const FilterStep& step);

/// A named pipeline.
class FilterChain {
 public:
  /// Throws Error(kInput) naming the pipeline and the step.
  explicit FilterChain(const FilterPipeline& pipeline);

  const std::string& name() const { return name_; }

  /// The harness's filtered_resps of one request.
  Json Apply(Json responses, const PreparedDocument& document) const;

 private:
  std::string name_;
  std::vector<std::string> functions_;
  std::vector<std::unique_ptr<Filter>> steps_;
};

}  // namespace evald
