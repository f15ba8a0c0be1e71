#include "protocol/engine_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace {

using Use = SettingUse;
using Form = SettingForm;

// More of any of these helps nobody. Without a limit one number takes all memory, or a time that no
// clock can tell.
constexpr double kLengthMax = 2147483647;
constexpr double kConcurrencyMax = 65'536;
constexpr double kChunkMax = 1'048'576;
constexpr double kThreadsMax = 1024;
constexpr double kTriesMax = 10'000;
constexpr double kHourSeconds = 3600, kDaySeconds = 86'400;
constexpr double kTokensPerSecondMax = 1e12;
constexpr size_t kFoundBytesMax = 120;

// A part "." or ".." of a path would lead out of the server's own URL. "%" could spell one.
bool StaysBelow(std::string_view path) {
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part == "." || part == "..") return false;
    begin = end + 1;
  }
  return true;
}

bool IsPlainAscii(std::string_view text, std::string_view without) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return c > 0x20 && c < 0x7f && without.find(c) == without.npos;
  });
}

bool IsUrl(std::string_view url) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!url.starts_with(scheme)) continue;
    const std::string_view rest = url.substr(scheme.size());
    // "user@host" would call another server than the one it seems to be.
    return !rest.empty() && rest.front() != '/' && IsPlainAscii(rest, "@\\?#%") && StaysBelow(rest);
  }
  return false;
}

bool IsVariable(std::string_view name) {
  return name.find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == name.npos;
}

// Text with a NUL in it would end there for a program that is started.
bool IsProgramText(const Json& value) {
  return value.is_string() && value.get_ref<const std::string&>().find('\0') == std::string::npos;
}

bool AreTexts(const Json& value) {
  return value.is_array() && std::all_of(value.begin(), value.end(), IsProgramText);
}

bool AreVariables(const Json& value) {
  if (!value.is_object()) return false;
  for (const auto& [name, text] : value.items()) {
    if (name.empty() || name.find('=') != name.npos || name.find('\0') != name.npos ||
        !IsProgramText(text))
      return false;
  }
  return true;
}

bool IsNumberWithin(const Json& value, double least, double most) {
  return value.is_number() && std::isfinite(value.get<double>()) && value >= least && value <= most;
}

bool IsIntegerWithin(const Json& value, double least, double most) {
  return value.is_number_integer() && IsNumberWithin(value, least, most);
}

bool IsBytes(const Json& value) {
  if (value.is_number_integer()) return value > 0;
  if (!value.is_string()) return false;
  try {
    return ParseBytes(value.get<std::string>()) > 0;
  } catch (const Error&) {
    return false;
  }
}

bool AreFactors(const Json& value, double most) {
  return value.is_object() && std::all_of(value.begin(), value.end(), [&](const Json& factor) {
           return IsNumberWithin(factor, 0, most) && factor > 0;
         });
}

bool IsRange(const Json& value, double least, double most) {
  if (!value.is_array()) return IsIntegerWithin(value, least, most);
  return value.size() == 2 && IsIntegerWithin(value[0], least, most) &&
         IsIntegerWithin(value[1], least, most) && value[0] <= value[1];
}

bool HasForm(const EngineSetting& setting, const Json& value) {
  switch (setting.form) {
    case Form::kSwitch:
      return value.is_boolean();
    case Form::kInteger:
      return IsIntegerWithin(value, setting.least, setting.most);
    case Form::kNumber:
      return IsNumberWithin(value, setting.least, setting.most);
    case Form::kText:
      return value.is_string();
    case Form::kWord:
      return std::find(setting.words.begin(), setting.words.end(), value) != setting.words.end();
    case Form::kBytes:
      return IsBytes(value);
    case Form::kTexts:
      return AreTexts(value);
    case Form::kVariables:
      return AreVariables(value);
    case Form::kMembers:
      return value.is_object();
    case Form::kFactors:
      return AreFactors(value, setting.most);
    case Form::kRange:
      return IsRange(value, setting.least, setting.most);
  }
  return false;
}

// "text or tokens", "a, b or c".
std::string AnyOf(const std::vector<std::string>& words) {
  const std::vector<std::string> before(words.begin(), words.end() - 1);
  return before.empty() ? words.back() : Join(before, ", ") + " or " + words.back();
}

std::string Describe(const EngineSetting& setting) {
  switch (setting.form) {
    case Form::kSwitch:
      return "true or false";
    case Form::kInteger:
      return fmt::format("an integer of at least {:.0f} and at most {:.0f}", setting.least,
                         setting.most);
    case Form::kNumber:
      return fmt::format("a number from {} to {}", setting.least, setting.most);
    case Form::kText:
      return "a string";
    case Form::kWord:
      return AnyOf(setting.words);
    case Form::kBytes:
      return "a size of more than 0, such as 2GiB";
    case Form::kTexts:
      return "a list of strings, such as [server, --port, '{port}']";
    case Form::kVariables:
      return "names of variables with strings as values, such as {OMP_NUM_THREADS: \"1\"}";
    case Form::kMembers:
      return "names with their values, such as {top_k: 1}";
    case Form::kFactors:
      return fmt::format(
          "a factor above 0 and at most {} for each device named, as {{\"cpu:1\": 10}}",
          setting.most);
    case Form::kRange:
      return fmt::format("an integer from {:.0f} to {:.0f}, or [least, most]", setting.least,
                         setting.most);
  }
  return "";
}

bool IsAbsent(const Json& settings, const char* key) {
  const auto found = settings.find(key);
  return found == settings.end() || found->is_null() || *found == "" || *found == Json::array();
}

// The settings without which an engine cannot work. Every value that is there has its form.
std::optional<SettingProblem> FindMissing(const std::string& engine, const Json& settings) {
  if (engine == "replay" && IsAbsent(settings, "generations")) {
    return SettingProblem{
        "generations", "found nothing, expected a run's folder, its `generations` folder or a file",
        "name the folder of the run whose answers are to be scored again"};
  }
  if (engine == "openai" && IsAbsent(settings, "command") == IsAbsent(settings, "base_url")) {
    const bool neither = IsAbsent(settings, "command");
    return SettingProblem{
        neither ? "command" : "base_url",
        fmt::format(
            "found {}, expected either `command`, to start a server, or `base_url`, where one runs",
            neither ? "nothing" : FoundInstead(settings["base_url"])),
        neither ? "give one of the two" : "leave one of the two out"};
  }
  return std::nullopt;
}

}  // namespace

const std::vector<EngineSetting>& EngineSettings() {
  static const std::vector<EngineSetting> kAll = {
      {"native", "max_length", Use::kValue, Form::kInteger, 1, kLengthMax},
      {"native", "kv_cache", Use::kValue, Form::kBytes},
      {"native", "concurrency", Use::kValue, Form::kInteger, 1, kConcurrencyMax},
      {"native", "chunk", Use::kValue, Form::kInteger, 1, kChunkMax},
      {"native",
       "kernels",
       Use::kValue,
       Form::kWord,
       0,
       0,
       {"auto", "avx512", "avx2", "portable", "avx512_bf16"}},
      {"native", "fast", Use::kValue, Form::kSwitch},
      {"native", "graphs", Use::kValue, Form::kSwitch},
      {"native", "ahead", Use::kValue, Form::kSwitch},
      {"native", "copy_threads", Use::kValue, Form::kInteger, 1, kThreadsMax},
      {"native", "generation_config", Use::kValue, Form::kWord, 0, 0, {"checkpoint", "ignore"}},
      {"openai", "command", Use::kCommand, Form::kTexts},
      {"openai", "base_url", Use::kUrl, Form::kText},
      {"openai", "environment", Use::kCommand, Form::kVariables},
      {"openai", "model", Use::kValue, Form::kText},
      {"openai", "prompt", Use::kValue, Form::kWord, 0, 0, {"text", "tokens"}},
      {"openai", "concurrency", Use::kValue, Form::kInteger, 1, kConcurrencyMax},
      {"openai", "max_length", Use::kValue, Form::kInteger, 0, kLengthMax},
      {"openai", "stops_max", Use::kValue, Form::kInteger, 0, kTriesMax},
      {"openai", "send_seed", Use::kValue, Form::kSwitch},
      {"openai", "scoring", Use::kValue, Form::kSwitch},
      {"openai", "deterministic", Use::kValue, Form::kSwitch},
      {"openai", "extra_body", Use::kValue, Form::kMembers},
      {"openai", "health_path", Use::kUrlPath, Form::kText},
      {"openai", "api_key_env", Use::kVariable, Form::kText},
      {"openai", "ready_seconds", Use::kValue, Form::kNumber, 0.001, kDaySeconds},
      {"openai", "request_seconds", Use::kValue, Form::kNumber, 0.001, kDaySeconds},
      {"openai", "connect_seconds", Use::kValue, Form::kNumber, 0.001, kHourSeconds},
      {"openai", "retries", Use::kValue, Form::kInteger, 0, kTriesMax},
      {"openai", "restarts", Use::kValue, Form::kInteger, 0, kTriesMax},
      {"openai", "generation_config", Use::kValue, Form::kWord, 0, 0, {"checkpoint", "ignore"}},
      {"replay", "generations", Use::kReadPath, Form::kText},
      {"emulated", "delay_ms", Use::kValue, Form::kNumber, 0, 1e3 * kHourSeconds},
      {"emulated", "prefill_tokens_per_second", Use::kValue, Form::kNumber, 0, kTokensPerSecondMax},
      {"emulated", "tokens_per_second", Use::kValue, Form::kNumber, 0, kTokensPerSecondMax},
      {"emulated", "jitter", Use::kValue, Form::kNumber, 0, 1},
      {"emulated", "load_seconds", Use::kValue, Form::kNumber, 0, kHourSeconds},
      {"emulated", "clock_scale", Use::kValue, Form::kNumber, 0, 1000},
      {"emulated", "fail_rate", Use::kValue, Form::kNumber, 0, 1},
      {"emulated", "concurrency", Use::kValue, Form::kInteger, 1, kConcurrencyMax},
      {"emulated", "max_length", Use::kValue, Form::kInteger, 1, kLengthMax},
      {"emulated", "tokens_out", Use::kValue, Form::kRange, 0, 1e6},
      {"emulated", "text", Use::kValue, Form::kText},
      {"emulated", "slow", Use::kValue, Form::kFactors, 0, 1e6},
  };
  return kAll;
}

std::vector<std::string> EngineNames() {
  std::vector<std::string> names;
  for (const EngineSetting& setting : EngineSettings()) {
    if (names.empty() || names.back() != setting.engine) names.emplace_back(setting.engine);
  }
  return names;
}

std::vector<std::string> SettingKeys(const std::string& engine) {
  std::vector<std::string> keys;
  for (const EngineSetting& setting : EngineSettings()) {
    if (setting.engine == engine) keys.emplace_back(setting.key);
  }
  return keys;
}

std::string ExpectedInstead(SettingUse use, const Json& value) {
  if (value.is_null() || value == "") return "";
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  switch (use) {
    case Use::kReadPath:
      return value.is_string() && text.find('\0') == text.npos ? "" : "a path";
    case Use::kUrl:
      return IsUrl(text) ? ""
                         : "http://host:port or https://host:port, with a path or without, and "
                           "nothing else in it";
    case Use::kUrlPath:
      if (text.starts_with('/') && IsPlainAscii(text, "\\%") &&
          StaysBelow(text.substr(0, text.find('?'))))
        return "";
      return "a path on the server, such as /health";
    case Use::kVariable:
      return !text.empty() && IsVariable(text) ? "" : "the name of an environment variable";
    case Use::kValue:
    case Use::kCommand:
      return "";
  }
  return "";
}

std::string ExpectedInstead(const EngineSetting& setting, const Json& value) {
  if (value.is_null()) return "";
  const std::string of_use = ExpectedInstead(setting.use, value);
  if (!of_use.empty()) return of_use;
  return HasForm(setting, value) ? "" : Describe(setting);
}

std::string FoundInstead(const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() <= kFoundBytesMax) return text;
  text.resize(kFoundBytesMax);
  return text + "...";
}

std::optional<SettingProblem> FindSettingProblem(const std::string& engine, const Json& settings) {
  if (settings.is_null()) return FindSettingProblem(engine, Json::object());
  const std::string see =
      fmt::format("docs/engines.md says what each setting of engine '{}' takes", engine);
  if (!settings.is_object()) {
    return SettingProblem{
        "", fmt::format("the settings are {}, expected an object", FoundInstead(settings)), see};
  }
  const std::vector<std::string> known = SettingKeys(engine);
  for (const auto& [key, value] : settings.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    return SettingProblem{
        key, "unknown key" + Suggestion(key, known),
        known.empty() ? "it takes no settings" : "the settings are " + Join(known, ", ")};
  }
  for (const EngineSetting& setting : EngineSettings()) {
    const auto found = settings.find(setting.key);
    if (engine != setting.engine || found == settings.end()) continue;
    const std::string expected = ExpectedInstead(setting, *found);
    if (expected.empty()) continue;
    const bool quotes =
        !found->is_structured() && setting.form == Form::kText && setting.use == Use::kValue;
    return SettingProblem{setting.key,
                          fmt::format("found {}, expected {}", FoundInstead(*found), expected),
                          quotes ? "put it in quotes" : see};
  }
  return FindMissing(engine, settings);
}

}  // namespace evald
