#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "evald/json.h"

namespace evald {

/// Where and how the judge of a task is asked (docs/eval-yaml.md, "judge").
struct JudgeSettings {
  std::string base_url;     ///< without "/" at its end; calls go to <base_url>/chat/completions
  std::string model;        ///< as the server calls it
  std::string api_key_env;  ///< the variable with the server's key; "": no key is sent
  int concurrency = 8;      ///< calls under way at once
  double timeout_s = 120;   ///< of a call
  int retries = 6;          ///< of a call that the server did not answer, or will answer later
  // Absent: the task's own, else the metric's default
  std::optional<int64_t> max_tokens;
  std::optional<double> temperature;
};

/// The most that the settings may be.
namespace judge_limits {
inline constexpr int kConcurrencyMax = 1024;
inline constexpr double kTimeoutMax = 3600;
/// The same in a run that is submitted to a service, whose metric processes others wait for.
inline constexpr double kTimeoutSubmittedMax = 120;
inline constexpr int kRetriesMax = 20;
inline constexpr int64_t kTokensMax = 65'536;
inline constexpr double kTemperatureMax = 10;
}  // namespace judge_limits

/// The keys of the settings, in eval.yaml as in JSON.
const std::vector<std::string>& JudgeKeys();

/// The keys of the settings that decide verdicts.
const std::vector<std::string>& DecidingJudgeKeys();

/// The settings of a task: those of the run, with the task's own in their place. Both are objects
/// with some of the keys, or null. A task that names another server takes no key from the run's
/// settings, which would send it to that server. Null if there are none.
Json MergedJudge(const Json& run, const Json& task);

/// Throws Error(kUsage) "<where>: ..." for a value of the wrong type or beyond its limits, and
/// without base_url or model, unless `partial`.
JudgeSettings JudgeSettingsFromJson(const Json& json, const std::string& where,
                                    bool partial = false);

}  // namespace evald
