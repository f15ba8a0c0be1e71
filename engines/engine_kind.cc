#include "engines/engine_kind.h"

#include <algorithm>

namespace evald {

std::vector<std::string> EngineKind::SettingKeys() const {
  std::vector<std::string> keys;
  for (const EngineSetting& setting : settings) keys.emplace_back(setting.key);
  return keys;
}

bool EngineKind::HasSetting(const std::string& key) const {
  return std::any_of(settings.begin(), settings.end(),
                     [&](const EngineSetting& setting) { return key == setting.key; });
}

std::string GivenServer(const EngineKind& kind, const Json& settings) {
  for (const EngineSetting& setting : kind.settings) {
    if (setting.use != SettingUse::kUrl || !settings.is_object()) continue;
    const auto found = settings.find(setting.key);
    if (found != settings.end() && found->is_string()) return found->get<std::string>();
  }
  return "";
}

bool TakesTokens(const EngineKind& kind, const Json& settings) {
  if (kind.prompts != PromptForm::kAsSet) return kind.prompts == PromptForm::kTokens;
  return settings.value("prompt", Json()) == "tokens";
}

}  // namespace evald
