#pragma once

#include <string>
#include <vector>

#include "evald/json.h"

namespace evald {

/// The effect of an engine's setting on evald. It decides whether a submitted run may have the
/// setting.
enum class SettingUse {
  kValue,     ///< a number, a switch, or text that names nothing outside the engine
  kReadPath,  ///< a file or folder to read; relative ones start from the folder of eval.yaml
  kCommand,   ///< a program to start, or its arguments
  kUrl,       ///< a server to call
  kUrlPath,   ///< the part of a call's URL after the server's URL
  kVariable,  ///< an environment variable whose value is sent to the server
};

/// The type of a setting's value in JSON.
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

/// A key that an engine takes below `engine:`.
struct EngineSetting {
  const char* key;
  SettingUse use;
  SettingForm form;
  double least = 0;
  double most = 0;
  std::vector<std::string> words = {};
};

/// Upper limits of settings, beyond any use. Without them one number takes all memory, or a time
/// that no clock can tell.
namespace setting_limits {
inline constexpr double kLengthMax = 2147483647;
inline constexpr double kConcurrencyMax = 65'536;
inline constexpr double kTriesMax = 10'000;
inline constexpr double kHourSeconds = 3600, kDaySeconds = 86'400;
inline constexpr double kParitySecondsMax = 3600;
}  // namespace setting_limits

/// The setting `generation_config`, which engines have that heed a checkpoint's generation
/// settings. In eval.yaml the key stands beside `engine`.
EngineSetting GenerationConfigSetting();

/// The form that a text with such a use must have, such as "http://host:port ..."; "" if `value`
/// has it. A value that is no string does not have the form of a path, a URL or a name. A null
/// value or empty text is an absent setting: "".
std::string ExpectedInstead(SettingUse use, const Json& value);

/// The values that `setting` takes, such as "an integer from 1 to 65536"; "" if `value` is one of
/// them. A null value is an absent setting: "".
std::string ExpectedInstead(const EngineSetting& setting, const Json& value);

/// A value for an error message: one line of ASCII, cut if it is long.
std::string FoundInstead(const Json& value);

/// Whether the settings lack `key`, or have null, empty text or an empty list there.
bool IsAbsent(const Json& settings, const char* key);

}  // namespace evald
