#include "orchestrator/config/engine_section.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "evald/error.h"
#include "orchestrator/config/key_hints.h"
#include "orchestrator/config/sections.h"
#include "orchestrator/config/thinking_section.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

void CheckName(const YamlSection& section, const std::string& name) {
  if (FindEngine(name) != nullptr) return;
  const std::vector<std::string> engines = EngineNames();
  section.Refuse("name", fmt::format("found '{}', expected one of {}{}", name, Join(engines, ", "),
                                     Suggestion(name, engines)));
}

// Calls `with` for each text setting of one use, for example paths.
template <typename Do>
void ForEachText(const EngineConfig& engine, SettingUse use, const Do& with) {
  for (const EngineSetting& setting : engine.kind().settings) {
    if (setting.use != use) continue;
    const auto found = engine.settings.find(setting.key);
    if (found != engine.settings.end() && found->is_string())
      with(setting.key, found->get<std::string>());
  }
}

}  // namespace

void ReadEngine(YamlSection& top, EvalConfig* config) {
  auto section = top.Section("engine");
  EngineConfig& engine = config->engine;
  engine.where[""] = section ? top.WhereKey("engine") : config->file.string();
  if (!section) return;
  engine.name = section->String("name").value_or(kDefaultEngine);
  CheckName(*section, engine.name);
  engine.enable_thinking = section->Boolean(kEnableThinking);
  if (engine.enable_thinking) engine.where[kEnableThinking] = section->WhereKey(kEnableThinking);
  engine.think_end = ReadThinkEnd(*section);
  if (engine.think_end.given()) engine.where[kThinkEndToken] = section->WhereKey(kThinkEndToken);
  engine.settings = section->Rest();
  engine.where["name"] = section->WhereKey("name");
  std::vector<std::string> known = engine.kind().SettingKeys();
  known.insert(known.end(), {kEnableThinking, kThinkEndToken});
  for (const auto& [key, value] : engine.settings.items()) {
    engine.where[key] = section->WhereKey(key);
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string hint = HintOfEvalKey("engine", key);
    section->Keep(
        Error(ErrorKind::kUsage,
              fmt::format("{}: key 'engine.{}': unknown key{}", engine.where[key], key,
                          hint.empty() ? Suggestion(key, known) : hint),
              fmt::format("the settings of engine '{}' are {}", engine.name, Join(known, ", "))));
  }
  ForEachText(engine, SettingUse::kReadPath, [&](const char* key, const std::string& text) {
    engine.settings[key] = ResolvePath(config->file, text).string();
  });
}

std::map<std::string, fs::path> PathsOf(const EngineConfig& engine) {
  std::map<std::string, fs::path> paths;
  ForEachText(engine, SettingUse::kReadPath,
              [&](const char* key, const std::string& text) { paths[key] = text; });
  return paths;
}

}  // namespace evald
