#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/regex.h"
#include "evald/error.h"
#include "evald/json.h"
#include "evald/score.h"
#include "evald/task.h"
#include "prepared/prepared_task.h"

namespace evald {

/// An answer that a filter or metric cannot take, by what the model wrote and not by how the task
/// is written. It is scored as the filter's fallback and counted under `reason`.
class AnswerError : public Error {
 public:
  AnswerError(std::string reason, const std::string& message)
      : Error(ErrorKind::kInput, message), reason_(std::move(reason)) {}
  const std::string& reason() const { return reason_; }

 private:
  std::string reason_;
};

/// What an answer becomes where the step that cannot take it has no fallback of its own.
inline constexpr const char* kNoAnswer = "[invalid]";

/// Calls `take`; when the answer alone makes it fail (AnswerError, or a search that was given up),
/// counts why and returns false.
template <typename Take>
bool TakesAnswer(Fallbacks* fallbacks, Take take) {
  try {
    take();
    return true;
  } catch (const AnswerError& e) {
    ++(*fallbacks)[e.reason()];
  } catch (const RegexGivenUp&) {
    ++(*fallbacks)["step limit"];
  }
  return false;
}

/// One step of a filter pipeline: lm_eval 0.4.13's filters/, for the responses of one request.
/// Immutable; any thread may call it.
class Filter {
 public:
  virtual ~Filter() = default;

  /// `responses` is at first the list of a request's repeats (strings, or [log-likelihood,
  /// is_greedy] pairs); later what the step before made of it. A response that the filter cannot
  /// take becomes its fallback and is counted in `fallbacks`. Throws AnswerError where the filter
  /// has none, Error(kInput) where the harness raises whatever the model wrote.
  virtual Json Apply(const Json& responses, const PreparedDocument& document,
                     Fallbacks* fallbacks) const = 0;
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

  /// The harness's filtered_resps of one request. Throws as Filter::Apply.
  Json Apply(Json responses, const PreparedDocument& document, Fallbacks* fallbacks) const;

 private:
  std::string name_;
  std::vector<std::string> functions_;
  std::vector<std::unique_ptr<Filter>> steps_;
};

}  // namespace evald
