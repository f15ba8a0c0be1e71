#include "worker/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "protocol/engine_settings.h"

namespace evald {

Settings::Settings(const std::string& engine, const Json& settings)
    : json_(settings.is_null() ? Json::object() : settings),
      where_(fmt::format("engine '{}'", engine)) {
  if (!json_.is_object()) {
    throw Error(ErrorKind::kUsage, fmt::format("{}: the settings are {}, expected an object",
                                               where_, json_.type_name()));
  }
  const std::vector<std::string> known = SettingKeys(engine);
  for (const auto& [key, value] : json_.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    throw SettingError(
        where_, key, "unknown key" + Suggestion(key, known),
        known.empty() ? "it takes no settings" : "the settings are " + Join(known, ", "));
  }
  for (const EngineSetting& setting : EngineSettings()) {
    if (setting.engine != engine) continue;
    const std::string expected = ExpectedInstead(setting.use, json_.value(setting.key, Json()));
    if (!expected.empty()) Refuse(setting.key, expected);
  }
}

bool Settings::Has(const std::string& key) const {
  const auto found = json_.find(key);
  return found != json_.end() && !found->is_null();
}

void Settings::Refuse(const std::string& key, const std::string& expected) const {
  const auto found = json_.find(key);
  throw SettingError(where_, key,
                     fmt::format("found {}, expected {}",
                                 found == json_.end() ? "nothing" : ToLine(*found), expected));
}

std::string Settings::Problem(const std::string& key, const std::string& message) const {
  std::string_view text = message;
  for (const std::string& part : {where_ + ": ", fmt::format("key '{}': ", key)}) {
    if (text.starts_with(part)) text.remove_prefix(part.size());
  }
  return std::string(text);
}

GenerationConfig::Use ReadGenerationConfigUse(const Settings& settings) {
  const std::string key = "generation_config";
  const auto word = settings.Get<std::string>(key, "checkpoint");
  if (word != "checkpoint" && word != "ignore") settings.Refuse(key, "checkpoint or ignore");
  return word == "ignore" ? GenerationConfig::Use::kIgnore : GenerationConfig::Use::kCheckpoint;
}

}  // namespace evald
