#include "orchestrator/service/engine_access.h"

#include <fmt/format.h>

#include <algorithm>

#include "evald/error.h"
#include "protocol/engine_settings.h"

namespace evald {
namespace {

bool IsAtOrBelow(const std::string& url, const std::string& base) {
  return url == base || url.starts_with(base.ends_with('/') ? base : base + "/");
}

[[noreturn]] void Refuse(const std::string& key, const std::string& why, const std::string& remedy) {
  throw Error(ErrorKind::kUsage, fmt::format("key 'engine.{}': {}", key, why), remedy);
}

void CheckUrl(const std::string& key, const Json& value, const EngineAccess& access) {
  if (!value.is_string()) return;  // the engine refuses it
  const auto& url = value.get_ref<const std::string&>();
  const bool listed = std::any_of(access.urls.begin(), access.urls.end(),
                                  [&](const std::string& base) { return IsAtOrBelow(url, base); });
  if (ExpectedInstead(SettingUse::kUrl, value).empty() && (listed || access.urls.empty())) return;
  Refuse(key, fmt::format("this service does not call {}", url),
         access.urls.empty() ? "expected " + ExpectedInstead(SettingUse::kUrl, value)
                             : "the service's configuration lists the servers under 'engine_urls'");
}

void CheckVariable(const std::string& key, const Json& value, const EngineConfig& engine, const EngineAccess& access) {
  const Json url = engine.settings.value("base_url", Json());
  const bool given = std::any_of(access.keys.begin(), access.keys.end(), [&](const auto& entry) {
    return url.is_string() && IsAtOrBelow(url.get<std::string>(), entry.first) && value == entry.second;
  });
  if (given) return;
  Refuse(key, "this service gives its keys only to servers that it knows, and to each only the server's own",
         "list the server's URL under 'engine_urls' in the service's configuration, and the variable of its key under "
         "'engine_keys'");
}

}  // namespace

void CheckEngineIsAllowed(const EngineConfig& engine, const EngineAccess& access) {
  for (const EngineSetting& setting : EngineSettings()) {
    if (engine.name != setting.engine) continue;
    const Json value = engine.settings.value(setting.key, Json());
    if (value.is_null()) continue;
    if (setting.use == SettingUse::kCommand && !access.commands) {
      Refuse(setting.key, "this service does not start commands of submitted runs",
             "give it a server's base_url, or set allow_commands in the service's configuration");
    }
    if (setting.use == SettingUse::kUrl && !access.commands) CheckUrl(setting.key, value, access);
    if (setting.use == SettingUse::kVariable && !access.commands) CheckVariable(setting.key, value, engine, access);
    const std::string expected = ExpectedInstead(setting.use, value);
    if (!expected.empty()) {
      Refuse(setting.key, fmt::format("found {}, expected {}", value.dump(-1, ' ', false, Json::error_handler_t::replace), expected), "");
    }
  }
}

}  // namespace evald
