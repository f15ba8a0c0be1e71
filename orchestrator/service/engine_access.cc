#include "orchestrator/service/engine_access.h"

#include <fmt/format.h>

#include <algorithm>

#include "engines/engines.h"
#include "evald/error.h"
#include "orchestrator/config/judge_section.h"

namespace evald {
namespace {

bool IsAtOrBelow(const std::string& url, const std::string& base) {
  return url == base || url.starts_with(base.ends_with('/') ? base : base + "/");
}

bool IsListed(const std::string& url, const std::vector<std::string>& bases) {
  return std::any_of(bases.begin(), bases.end(),
                     [&](const std::string& base) { return IsAtOrBelow(url, base); });
}

// Whether the variable is the key of this server.
bool IsKeyOf(const std::string& url, const Json& variable,
             const std::map<std::string, std::string>& keys) {
  return std::any_of(keys.begin(), keys.end(), [&](const auto& entry) {
    return IsAtOrBelow(url, entry.first) && variable == entry.second;
  });
}

[[noreturn]] void Refuse(const std::string& key, const std::string& why,
                         const std::string& remedy) {
  throw Error(ErrorKind::kUsage, fmt::format("key 'engine.{}': {}", key, why), remedy);
}

[[noreturn]] void RefuseJudge(const std::string& place, const std::string& why,
                              const std::string& remedy) {
  throw Error(ErrorKind::kUsage, fmt::format("key '{}': {}", place, why), remedy);
}

// The settings of the run, or of one request with the run's: `place` names them.
void CheckJudge(const Json& judge, const std::string& place, const EngineAccess& access) {
  if (judge.is_null()) return;
  const auto timeout = judge.value("timeout_s", 0.0);
  if (timeout > judge_limits::kTimeoutSubmittedMax) {
    RefuseJudge(place + ".timeout_s",
                fmt::format("found {:g}, expected at most {:g} in a submitted run", timeout,
                            judge_limits::kTimeoutSubmittedMax),
                "others wait for the metric process that asks the judge");
  }
  if (access.commands) return;
  const std::string url = judge.value("base_url", std::string());
  if (!url.empty() && !IsListed(url, access.judge_urls)) {
    RefuseJudge(place + ".base_url", fmt::format("this service does not ask the judge at {}", url),
                "the service's configuration lists the judges under 'judge_urls'");
  }
  const Json variable = judge.value("api_key_env", Json());
  if (variable.is_null() || IsKeyOf(url, variable, access.judge_keys)) return;
  RefuseJudge(place + ".api_key_env",
              "this service gives its keys only to judges that it knows, and to each only the "
              "judge's own",
              "list the variable of the judge's key under 'judge_keys' in the service's "
              "configuration");
}

void CheckUrl(const std::string& key, const Json& value, const EngineAccess& access) {
  if (!value.is_string()) return;  // refused below, by its type
  const auto& url = value.get_ref<const std::string&>();
  const bool listed = IsListed(url, access.urls);
  if (ExpectedInstead(SettingUse::kUrl, value).empty() && (listed || access.urls.empty())) return;
  Refuse(key, fmt::format("this service does not call {}", url),
         access.urls.empty() ? "expected " + ExpectedInstead(SettingUse::kUrl, value)
                             : "the service's configuration lists the servers under 'engine_urls'");
}

void CheckVariable(const std::string& key, const Json& value, const EngineConfig& engine,
                   const EngineAccess& access) {
  const std::string url = GivenServer(engine.kind(), engine.settings);
  if (IsKeyOf(url, value, access.keys)) return;
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

void CheckJudgesAreAllowed(const EvalConfig& config, const EngineAccess& access) {
  CheckJudge(config.judge, "judge", access);
  for (const TaskRequest& task : config.tasks) {
    if (!task.judge.is_null())
      CheckJudge(MergedJudge(config.judge, task.judge), "tasks[].judge", access);
  }
}

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
