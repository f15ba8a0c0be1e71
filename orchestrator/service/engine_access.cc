#include "orchestrator/service/engine_access.h"

#include <fmt/format.h>

#include <algorithm>

#include "engines/engines.h"
#include "evald/error.h"

namespace evald {
namespace {

bool IsAtOrBelow(const std::string& url, const std::string& base) {
  return url == base || url.starts_with(base.ends_with('/') ? base : base + "/");
}

[[noreturn]] void Refuse(const std::string& key, const std::string& why,
                         const std::string& remedy) {
  throw Error(ErrorKind::kUsage, fmt::format("key 'engine.{}': {}", key, why), remedy);
}

void CheckUrl(const std::string& key, const Json& value, const EngineAccess& access) {
  if (!value.is_string()) return;  // refused below, by its type
  const auto& url = value.get_ref<const std::string&>();
  const bool listed = std::any_of(access.urls.begin(), access.urls.end(),
                                  [&](const std::string& base) { return IsAtOrBelow(url, base); });
  if (ExpectedInstead(SettingUse::kUrl, value).empty() && (listed || access.urls.empty())) return;
  Refuse(key, fmt::format("this service does not call {}", url),
         access.urls.empty() ? "expected " + ExpectedInstead(SettingUse::kUrl, value)
                             : "the service's configuration lists the servers under 'engine_urls'");
}

void CheckVariable(const std::string& key, const Json& value, const EngineConfig& engine,
                   const EngineAccess& access) {
  const std::string url = GivenServer(engine.kind(), engine.settings);
  const bool given = std::any_of(access.keys.begin(), access.keys.end(), [&](const auto& entry) {
    return IsAtOrBelow(url, entry.first) && value == entry.second;
  });
  if (given) return;
  Refuse(key,
         "this service gives its keys only to servers that it knows, and to each only the server's "
         "own",
         "list the server's URL under 'engine_urls' in the service's configuration, and the "
         "variable of its key under "
         "'engine_keys'");
}

// An engine that starts a server program, whoever chose the command.
void CheckServer(const EngineConfig& engine, const EngineAccess& access) {
  const bool listed =
      std::find(access.engines.begin(), access.engines.end(), engine.name) != access.engines.end();
  if (engine.kind().server != ServerUse::kStarted || access.commands || listed) return;
  Refuse("name",
         fmt::format("this service does not start the engine '{}' for submitted runs", engine.name),
         "list it under 'allow_engines' in the service's configuration");
}

void CheckSettings(const EngineConfig& engine) {
  const auto wrong = FindSettingProblem(engine.name, engine.settings);
  if (!wrong) return;
  const auto given = engine.where.find(wrong->key), whole = engine.where.find("");
  const std::string where = given != engine.where.end()   ? given->second
                            : whole != engine.where.end() ? whole->second
                                                          : "";
  throw Error(ErrorKind::kUsage,
              fmt::format("{}{}key 'engine{}{}': {}", where, where.empty() ? "" : ": ",
                          wrong->key.empty() ? "" : ".", wrong->key, wrong->problem),
              wrong->remedy);
}

}  // namespace

void CheckCommandsAreAllowed(const std::vector<TaskRequest>& tasks, const EngineAccess& access) {
  for (const TaskRequest& task : tasks) {
    if (!task.command || access.commands) continue;
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: task '{}': this service does not start commands of submitted runs",
                            task.where, task.name),
                "set allow_commands in the service's configuration, or use `evald run`");
  }
}

void CheckEngineIsAllowed(const EngineConfig& engine, const EngineAccess& access) {
  CheckServer(engine, access);
  for (const EngineSetting& setting : engine.kind().settings) {
    const Json value = engine.settings.value(setting.key, Json());
    if (value.is_null()) continue;
    if (setting.use == SettingUse::kCommand && !access.commands) {
      Refuse(setting.key, "this service does not start commands of submitted runs",
             "give it a server's base_url, or set allow_commands in the service's configuration");
    }
    if (setting.use == SettingUse::kUrl && !access.commands) CheckUrl(setting.key, value, access);
    if (setting.use == SettingUse::kVariable && value.is_string() && !access.commands)
      CheckVariable(setting.key, value, engine, access);
  }
  CheckSettings(engine);
}

}  // namespace evald
