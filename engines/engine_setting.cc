#include "engines/engine_setting.h"

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

constexpr size_t kFoundBytesMax = 120;

// Whether the path stays below the server's own URL: a part "." or ".." would lead out of it. "%"
// could spell one. Some servers cut a part at ";".
bool StaysBelow(std::string_view path) {
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view written = path.substr(begin, end - begin);
    const std::string_view part = written.substr(0, written.find(';'));
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
    // "user@host" would call another server than it seems to.
    return !rest.empty() && rest.front() != '/' && IsPlainAscii(rest, "@\\?#%") && StaysBelow(rest);
  }
  return false;
}

bool IsVariable(std::string_view name) {
  return name.find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == name.npos;
}

// Whether a started program can take the text: a NUL would end it.
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
      return value.is_string() &&
             std::ranges::count(setting.words, value.get_ref<const std::string&>()) > 0;
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

}  // namespace

EngineSetting GenerationConfigSetting() {
  return {"generation_config", Use::kValue, Form::kWord, 0, 0, {"checkpoint", "ignore"}};
}

bool IsAbsent(const Json& settings, const char* key) {
  const auto found = settings.find(key);
  return found == settings.end() || found->is_null() || *found == "" || *found == Json::array();
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

}  // namespace evald
