#include "orchestrator/config/judge_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "engines/engines.h"
#include "evald/error.h"

namespace evald {
namespace {

constexpr const char* kKey = "judge";
constexpr const char* kAbsentRemedy =
    "name its server in eval.yaml, judge: {base_url: http://host:8000/v1, model: NAME} "
    "(docs/eval-yaml.md)";

// Numbers are read with the ranges of JudgeSettingsFromJson.
Json KeysOf(YamlSection& judge) {
  using namespace judge_limits;
  Json json = Json::object();
  const auto put = [&](const char* key, const auto& value) {
    if (value) json[key] = *value;
  };
  put("base_url", judge.String("base_url"));
  put("model", judge.String("model"));
  put("api_key_env", judge.String("api_key_env"));
  put("concurrency", judge.Integer("concurrency", 1, kConcurrencyMax));
  put("timeout_s", judge.Number("timeout_s", 0.1, kTimeoutMax));
  put("retries", judge.Integer("retries", 0, kRetriesMax));
  put("max_tokens", judge.Integer("max_tokens", 1, kTokensMax));
  put("temperature", judge.Number("temperature", 0, kTemperatureMax));
  judge.Finish();
  return json;
}

void CheckForm(const YamlSection& judge, const Json& json, const char* key, SettingUse use) {
  if (!json.contains(key)) return;
  const std::string expected = ExpectedInstead(use, json.at(key));
  if (json.at(key) == "" || !expected.empty()) {
    judge.Refuse(key, fmt::format("found {}, expected {}", FoundInstead(json.at(key)),
                                  expected.empty() ? "text" : expected));
  }
}

}  // namespace

Json ReadJudge(YamlSection& section) {
  auto judge = section.Section(kKey);
  if (!judge) return nullptr;
  const Json json = KeysOf(*judge);
  CheckForm(*judge, json, "base_url", SettingUse::kUrl);
  CheckForm(*judge, json, "api_key_env", SettingUse::kVariable);
  try {
    JudgeSettingsFromJson(json, kKey, true);
  } catch (const Error& e) {
    throw Error(ErrorKind::kUsage, fmt::format("{}: {}", section.WhereKey(kKey), e.message()),
                e.remedy());
  }
  return json;
}

Json JudgeJsonFor(const Json& run, const std::vector<TaskRequest>& tasks,
                  const std::string& request) {
  const auto asked = std::find_if(tasks.begin(), tasks.end(),
                                  [&](const TaskRequest& task) { return task.name == request; });
  return MergedJudge(run, asked == tasks.end() ? Json() : asked->judge);
}

JudgeSettings JudgeFor(const Json& run, const std::vector<TaskRequest>& tasks,
                       const std::string& request) {
  const Json settings = JudgeJsonFor(run, tasks, request);
  if (settings.is_null()) {
    throw Error(ErrorKind::kUsage, "it has the metric 'judge', and no judge is configured",
                kAbsentRemedy);
  }
  try {
    return JudgeSettingsFromJson(settings, kKey);
  } catch (const Error& e) {
    throw Error(e.kind(), e.message(), e.remedy().empty() ? kAbsentRemedy : e.remedy());
  }
}

Json DecidingJudge(const Json& settings) {
  Json deciding = Json::object();
  for (const std::string& key : DecidingJudgeKeys()) {
    if (settings.is_object() && settings.contains(key)) deciding[key] = settings.at(key);
  }
  return deciding;
}

void CheckJudgeKeys(const EvalConfig& config) {
  const auto check = [&](const Json& judge) {
    const std::string variable = judge.is_object() ? judge.value("api_key_env", std::string()) : "";
    const char* const key = variable.empty() ? "" : std::getenv(variable.c_str());
    if (variable.empty() || (key != nullptr && *key != '\0')) return;
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: key 'judge.api_key_env': the variable {} is not set",
                            config.called, variable),
                "set it to the judge's key, or leave 'api_key_env' out if the server needs none");
  };
  check(config.judge);
  for (const TaskRequest& task : config.tasks) check(task.judge);
}

}  // namespace evald
