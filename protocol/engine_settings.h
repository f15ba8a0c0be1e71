#pragma once

#include <optional>
#include <string>
#include <vector>

#include "evald/json.h"

namespace evald {

/// What a setting of an engine makes evald do. The service decides by it what a submitted run may
/// set.
enum class SettingUse {
  kValue,     ///< a number, a switch, or text that names nothing outside of the engine
  kReadPath,  ///< a file or folder that is read; relative ones start from the folder of eval.yaml
  kCommand,   ///< a program that is started, or what it is started with
  kUrl,       ///< a server that is called
  kUrlPath,   ///< what follows the server's URL in a call
  kVariable,  ///< the name of an environment variable whose value is sent to the server
};

/// The type that a setting's value has in JSON.
enum class SettingForm {
  kSwitch,     ///< true or false
  kInteger,    ///< an integer from `least` to `most`
  kNumber,     ///< a number from `least` to `most`
  kText,       ///< a string; its use may ask for more
  kWord,       ///< one of `words`
  kBytes,      ///< a number of bytes above 0, or text such as 2GiB
  kTexts,      ///< a list of strings, the words of a command
  kVariables,  ///< names of environment variables with their values, all strings
  kMembers,    ///< any JSON object
  kFactors,    ///< an object whose values are numbers above 0 and at most `most`
  kRange,      ///< an integer from `least` to `most`, or a list of two, the lower first
};

struct EngineSetting {
  const char* engine;
  const char* key;
  SettingUse use;
  SettingForm form;
  double least = 0;
  double most = 0;
  std::vector<std::string> words = {};
};

/// Every key that any engine takes below `engine:`, and nothing else: an engine refuses what is not
/// in this list, so that no setting can be added without saying what it makes evald do and which
/// values it takes. No setting names a file to write. Paths that only tests need come from the
/// environment of the worker process (docs/engines.md, "emulated").
const std::vector<EngineSetting>& EngineSettings();

/// The engines of the list, each once, and the keys of one engine, in the list's order.
std::vector<std::string> EngineNames();
std::vector<std::string> SettingKeys(const std::string& engine);

/// The form that text of such a use must have, as "http://host:port ..."; "" when `value` has it. A
/// value that is no string has not the form of a path, a URL or a name. A null value or empty text
/// is an absent setting: "".
std::string ExpectedInstead(SettingUse use, const Json& value);

/// The values that `setting` takes, as "an integer from 1 to 65536"; "" when `value` is one of
/// them. A null value is an absent setting: "".
std::string ExpectedInstead(const EngineSetting& setting, const Json& value);

/// A value as an error message shows it: one line of ASCII, cut when it is long.
std::string FoundInstead(const Json& value);

struct SettingProblem {
  std::string key;  ///< "" where the settings as a whole are wrong
  std::string problem;
  std::string remedy;
};

/// The first thing wrong with an engine's settings (an object; null is none) that shows without a
/// look at files, the environment or the processor. The service, `evald validate`, `evald run` and
/// the worker ask here, so that they agree.
std::optional<SettingProblem> FindSettingProblem(const std::string& engine, const Json& settings);

}  // namespace evald
