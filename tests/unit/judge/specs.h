#pragma once

#include <string>
#include <utility>

#include "evald/json.h"
#include "evald/task.h"
#include "metrics/judge/spec.h"

namespace evald::test {

inline MetricSpec JudgeEntry(Json arguments, std::string name = "judge") {
  MetricSpec spec;
  spec.metric = std::move(name);
  spec.function = kJudgeFunction;
  spec.aggregation = "mean";
  spec.kwargs = std::move(arguments);
  return spec;
}

/// A rubric from 1 to 10, with `changes` in the place of its arguments; null takes one away.
inline Json RubricArguments(const Json& changes = Json::object()) {
  Json arguments = {{"prompt", "Question: {{question}}\nAnswer: {{response}}"},
                    {"pattern", "Score: ([0-9.]+)"},
                    {"range", {1, 10}}};
  for (const auto& [key, value] : changes.items()) {
    if (value.is_null()) {
      arguments.erase(key);
    } else {
      arguments[key] = value;
    }
  }
  return arguments;
}

/// A pair, likewise.
inline Json PairArguments(const Json& changes = Json::object()) {
  Json arguments = RubricArguments({{"range", nullptr},
                                    {"prompt", "A: {{answer_a}}\nB: {{answer_b}}"},
                                    {"pattern", "Better: ([ABC])"},
                                    {"reference", "other"}});
  arguments.update(changes);
  return arguments;
}

inline JudgeSpec Rubric(const Json& changes = Json::object()) {
  return JudgeSpecOf(JudgeEntry(RubricArguments(changes)));
}
inline JudgeSpec Pair(const Json& changes = Json::object()) {
  return JudgeSpecOf(JudgeEntry(PairArguments(changes)));
}

}  // namespace evald::test
