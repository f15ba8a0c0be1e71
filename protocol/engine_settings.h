#pragma once

#include <string>
#include <vector>

#include "evald/json.h"

namespace evald {

/// What a setting of an engine makes evald do. The service decides by it what a submitted run may set.
enum class SettingUse {
  kValue,        ///< a number, a switch, or text that names nothing outside of the engine
  kReadPath,     ///< a file or folder that is read; relative ones start from the folder of eval.yaml
  kCommand,      ///< a program that is started, or what it is started with
  kUrl,          ///< a server that is called
  kUrlPath,      ///< what follows the server's URL in a call
  kVariable,     ///< the name of an environment variable whose value is sent to the server
};

struct EngineSetting {
  const char* engine;
  const char* key;
  SettingUse use;
};

/// Every key that any engine takes below `engine:`, and nothing else: an engine refuses what is not in this list,
/// so that no setting can be added without saying what it makes evald do. No setting names a file to write. Paths
/// that only tests need come from the environment of the worker process (docs/engines.md, "emulated").
const std::vector<EngineSetting>& EngineSettings();

/// The engines of the list, each once, and the keys of one engine, in the list's order.
std::vector<std::string> EngineNames();
std::vector<std::string> SettingKeys(const std::string& engine);

/// What is wrong with the form of `value` for such a use, as "an http or https URL" (what is expected); "" when
/// nothing is. A null value is an absent setting. Types are checked where they are known, by the engine.
std::string ExpectedInstead(SettingUse use, const Json& value);

}  // namespace evald
