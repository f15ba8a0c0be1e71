#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "evald/json.h"
#include "evald/score.h"
#include "evald/task.h"
#include "metrics/own_filters.h"
#include "metrics/scoring/answer_error.h"
#include "prepared/prepared_task.h"

namespace evald {

/// One step of a filter pipeline: lm_eval 0.4.13's filters/, for the responses of one request.
/// Immutable; any thread may call it.
class Filter {
 public:
  virtual ~Filter() = default;

  /// `responses` is at first the list of a request's repeats (strings, or [log-likelihood,
  /// is_greedy] pairs), and later the result of the step before. A response that the filter cannot
  /// take becomes its fallback and is counted in `fallbacks`. Throws AnswerError if the filter has
  /// no fallback, and Error(kInput) if the harness raises whatever the answer is.
  virtual Json Apply(const Json& responses, const PreparedDocument& document,
                     Fallbacks* fallbacks) const = 0;
};

/// Names of all filters.
std::vector<std::string> FilterNames();

/// Throws Error(kInput) naming an unknown filter, argument or function, and the nearest known one.
std::unique_ptr<Filter> MakeFilter(const FilterStep& step);

/// A named pipeline.
class FilterChain {
 public:
  /// `code` runs steps that are the task's own; null if no document will be scored. With
  /// `runs_own` false such steps are refused. Throws Error(kInput) naming the pipeline and the
  /// step.
  FilterChain(const FilterPipeline& pipeline, bool runs_own, TaskCode* code);

  const std::string& name() const { return name_; }

  /// The harness's filtered_resps of one request. Adds what the task's own steps did to `own_steps`
  /// (FilterScore::own_steps). Throws like Filter::Apply.
  Json Apply(Json responses, const PreparedDocument& document, Fallbacks* fallbacks,
             Json* own_steps) const;

 private:
  struct Step {
    std::string function;
    std::unique_ptr<Filter> filter;  ///< null for a step of the task's own
    std::optional<OwnFilter> own;
  };

  std::string name_;
  std::vector<Step> steps_;
  TaskCode* code_;
};

}  // namespace evald
