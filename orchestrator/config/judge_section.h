#pragma once

#include <string>
#include <vector>

#include "datasets/task_set.h"
#include "evald/json.h"
#include "metrics/judge/settings.h"
#include "orchestrator/config/eval_config.h"
#include "orchestrator/config/yaml_section.h"

namespace evald {

/// The folder below `cache_dir` with the answers of judges.
inline constexpr const char* kJudgeCache = "judge";

/// The section `judge` of a mapping, the whole file or an entry of `tasks`: the keys that it gives,
/// checked. Null if it is absent.
Json ReadJudge(YamlSection& section);

/// The settings for the tasks of a request: those of the run, with the request's own in their
/// place. Throws Error(kUsage) if neither names a judge.
JudgeSettings JudgeFor(const Json& run, const std::vector<TaskRequest>& tasks,
                       const std::string& request);

/// The same as JSON, for messages: null if there are none.
Json JudgeJsonFor(const Json& run, const std::vector<TaskRequest>& tasks,
                  const std::string& request);

/// The part of such settings that decides scores.
Json DecidingJudge(const Json& settings);

/// Throws Error(kUsage) if a variable that holds a judge's key is not set in this process.
void CheckJudgeKeys(const EvalConfig& config);

}  // namespace evald
