#include "worker/engine/settings.h"

#include <fmt/format.h>

#include "base/text.h"
#include "engines/engines.h"

namespace evald {

Settings::Settings(const std::string& engine, const Json& settings)
    : json_(settings.is_null() ? Json::object() : settings),
      where_(fmt::format("engine '{}'", engine)) {
  const auto wrong = FindSettingProblem(engine, json_);
  if (!wrong) return;
  if (wrong->key.empty())
    throw Error(ErrorKind::kUsage, where_ + ": " + wrong->problem, wrong->remedy);
  throw SettingError(where_, wrong->key, wrong->problem, wrong->remedy);
}

bool Settings::Has(const std::string& key) const {
  const auto found = json_.find(key);
  return found != json_.end() && !found->is_null();
}

uint64_t Settings::Bytes(const std::string& key) const {
  const Json value = Get<Json>(key, Json());
  if (value.is_string()) return ParseBytes(value.get<std::string>());
  return Get<uint64_t>(key, 0);
}

void Settings::Refuse(const std::string& key, const std::string& expected,
                      const std::string& remedy) const {
  const auto found = json_.find(key);
  throw SettingError(where_, key,
                     fmt::format("found {}, expected {}",
                                 found == json_.end() ? "nothing" : FoundInstead(*found), expected),
                     remedy);
}

std::string Settings::Problem(const std::string& key, const std::string& message) const {
  std::string_view text = message;
  for (const std::string& part : {where_ + ": ", fmt::format("key '{}': ", key)}) {
    if (text.starts_with(part)) text.remove_prefix(part.size());
  }
  return std::string(text);
}

GenerationConfig::Use ReadGenerationConfigUse(const Settings& settings) {
  const auto word = settings.Get<std::string>("generation_config", "checkpoint");
  return word == "ignore" ? GenerationConfig::Use::kIgnore : GenerationConfig::Use::kCheckpoint;
}

}  // namespace evald
