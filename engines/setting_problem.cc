#include <fmt/format.h>

#include "base/text.h"
#include "engines/engines.h"

namespace evald {
namespace {

SettingProblem UnknownKey(const std::string& key, const std::vector<std::string>& known) {
  return {key, "unknown key" + Suggestion(key, known),
          known.empty() ? "it takes no settings" : "the settings are " + Join(known, ", ")};
}

}  // namespace

std::optional<SettingProblem> FindSettingProblem(const std::string& engine, const Json& settings) {
  if (settings.is_null()) return FindSettingProblem(engine, Json::object());
  const std::string see =
      fmt::format("docs/engines.md says what each setting of engine '{}' takes", engine);
  if (!settings.is_object()) {
    return SettingProblem{
        "", fmt::format("the settings are {}, expected an object", FoundInstead(settings)), see};
  }
  const EngineKind* kind = FindEngine(engine);
  if (kind == nullptr) {
    if (settings.empty()) return std::nullopt;
    return UnknownKey(settings.begin().key(), {});
  }
  for (const auto& [key, value] : settings.items()) {
    if (!kind->HasSetting(key)) return UnknownKey(key, kind->SettingKeys());
  }
  for (const EngineSetting& setting : kind->settings) {
    const auto found = settings.find(setting.key);
    if (found == settings.end()) continue;
    const std::string expected = ExpectedInstead(setting, *found);
    if (expected.empty()) continue;
    const bool quotes = !found->is_structured() && setting.form == SettingForm::kText &&
                        setting.use == SettingUse::kValue;
    return SettingProblem{setting.key,
                          fmt::format("found {}, expected {}", FoundInstead(*found), expected),
                          quotes ? "put it in quotes" : see};
  }
  if (const size_t bytes = settings.dump(-1, ' ', false, Json::error_handler_t::replace).size();
      bytes > kSettingsBytesMax) {
    return SettingProblem{"",
                          fmt::format("the settings are {} bytes as JSON, expected at most {}",
                                      bytes, kSettingsBytesMax),
                          see};
  }
  return kind->find_missing == nullptr ? std::nullopt : kind->find_missing(settings);
}

}  // namespace evald
