#include "metrics/judge/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "http_client/url.h"

namespace evald {
namespace {

using namespace judge_limits;

[[noreturn]] void RefuseSetting(const std::string& where, const std::string& key,
                                const std::string& message, const std::string& remedy = "") {
  throw Error(ErrorKind::kUsage, fmt::format("{}: key '{}': {}", where, key, message), remedy);
}

class SettingsReader {
 public:
  SettingsReader(const Json& json, const std::string& where) : json_(json), where_(where) {
    if (!json.is_object()) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{}: found {}, expected a mapping", where, json.type_name()));
    }
    for (const auto& [key, value] : json.items()) {
      if (std::count(JudgeKeys().begin(), JudgeKeys().end(), key) > 0) continue;
      throw Error(ErrorKind::kUsage,
                  fmt::format("{}: unknown key '{}'{}", where, key, Suggestion(key, JudgeKeys())));
    }
  }

  bool Has(const char* key) const { return json_.contains(key) && !json_.at(key).is_null(); }

  void Text(const char* key, std::string* value) const {
    if (!Has(key)) return;
    if (!json_.at(key).is_string() || json_.at(key) == "")
      RefuseSetting(where_, key, fmt::format("found {}, expected text", ToLine(json_.at(key))));
    *value = json_.at(key).get<std::string>();
  }

  template <typename T>
  void Within(const char* key, double least, double most, T* value) const {
    if (!Has(key)) return;
    const Json& given = json_.at(key);
    const bool whole = !std::is_same_v<T, double> && !std::is_same_v<T, std::optional<double>>;
    const bool number = whole ? given.is_number_integer() : given.is_number();
    if (!number || !std::isfinite(given.get<double>()) || given.get<double>() < least ||
        given.get<double>() > most) {
      RefuseSetting(where_, key,
                    fmt::format("found {}, expected {} from {:g} to {:g}", ToLine(given),
                                whole ? "an integer" : "a number", least, most));
    }
    if constexpr (std::is_same_v<T, std::optional<int64_t>>) {
      *value = given.get<int64_t>();
    } else if constexpr (std::is_same_v<T, std::optional<double>>) {
      *value = given.get<double>();
    } else {
      *value = given.get<T>();
    }
  }

 private:
  const Json& json_;
  const std::string& where_;
};

// A user, a password or a query in the URL would be kept in the run's files.
void CheckJudgeUrl(const std::string& where, const std::string& text) {
  http_client::Url url;
  try {
    url = http_client::ParseUrl(text);
  } catch (const Error& e) {
    RefuseSetting(where, "base_url", e.message());
  }
  if (url.has_user || url.has_query) {
    RefuseSetting(
        where, "base_url",
        fmt::format("'{}' has a user, a password, a query or a fragment", http_client::Shown(text)),
        "name the server alone, http://host:8000/v1, and its key by 'api_key_env'");
  }
}

// "http://host:8000" means the API at "/v1", as for the engine openai.
std::string WholeUrl(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return http_client::ParseUrl(url).path == "/" ? url + "/v1" : url;
}

}  // namespace

const std::vector<std::string>& JudgeKeys() {
  static const std::vector<std::string> kKeys = {"base_url",    "model",      "api_key_env",
                                                 "concurrency", "timeout_s",  "retries",
                                                 "max_tokens",  "temperature"};
  return kKeys;
}

const std::vector<std::string>& DecidingJudgeKeys() {
  static const std::vector<std::string> kKeys = {"model", "max_tokens", "temperature"};
  return kKeys;
}

Json MergedJudge(const Json& run, const Json& task) {
  if (run.is_null() || task.is_null()) return run.is_null() ? task : run;
  Json merged = run;
  if (task.contains("base_url")) merged.erase("api_key_env");
  merged.update(task);
  return merged;
}

JudgeSettings JudgeSettingsFromJson(const Json& json, const std::string& where, bool partial) {
  const SettingsReader reader(json, where);
  JudgeSettings settings;
  reader.Text("base_url", &settings.base_url);
  reader.Text("model", &settings.model);
  reader.Text("api_key_env", &settings.api_key_env);
  reader.Within("concurrency", 1, kConcurrencyMax, &settings.concurrency);
  reader.Within("timeout_s", 0.1, kTimeoutMax, &settings.timeout_s);
  reader.Within("retries", 0, kRetriesMax, &settings.retries);
  reader.Within("max_tokens", 1, static_cast<double>(kTokensMax), &settings.max_tokens);
  reader.Within("temperature", 0, kTemperatureMax, &settings.temperature);
  if (!settings.base_url.empty()) {
    CheckJudgeUrl(where, settings.base_url);
    settings.base_url = WholeUrl(settings.base_url);
  }
  if (partial) return settings;
  if (settings.base_url.empty()) {
    RefuseSetting(where, "base_url", "absent, expected the judge's server, http://host:8000/v1");
  }
  if (settings.model.empty())
    RefuseSetting(where, "model", "absent, expected the judge's name on its server");
  return settings;
}

}  // namespace evald
