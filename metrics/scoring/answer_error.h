#pragma once

#include <string>

#include "base/regex.h"
#include "evald/error.h"
#include "evald/score.h"

namespace evald {

/// An answer that a filter or metric cannot take. The fault is in the model's text and not in the
/// task. The answer is scored as the filter's fallback and counted under `reason`.
class AnswerError : public Error {
 public:
  AnswerError(std::string reason, const std::string& message)
      : Error(ErrorKind::kInput, message), reason_(std::move(reason)) {}
  const std::string& reason() const { return reason_; }

 private:
  std::string reason_;
};

/// The value of an answer that a step cannot take, if the step has no fallback of its own.
inline constexpr const char* kNoAnswer = "[invalid]";

/// Calls `take`. If it fails because of the answer alone (AnswerError, or a search that was given
/// up), counts the reason and returns false.
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

}  // namespace evald
