#include "protocol/engine_settings.h"

#include <algorithm>
#include <string_view>

namespace evald {
namespace {

using Use = SettingUse;

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
  return std::all_of(text.begin(), text.end(), [&](char c) { return c > 0x20 && c < 0x7f && without.find(c) == without.npos; });
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
  return name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == name.npos;
}

}  // namespace

const std::vector<EngineSetting>& EngineSettings() {
  static const std::vector<EngineSetting> kAll = {
      {"native", "max_length", Use::kValue},
      {"native", "kv_cache", Use::kValue},
      {"native", "concurrency", Use::kValue},
      {"native", "chunk", Use::kValue},
      {"native", "kernels", Use::kValue},
      {"native", "fast", Use::kValue},
      {"native", "graphs", Use::kValue},
      {"native", "ahead", Use::kValue},
      {"native", "copy_threads", Use::kValue},
      {"native", "generation_config", Use::kValue},
      {"openai", "command", Use::kCommand},
      {"openai", "base_url", Use::kUrl},
      {"openai", "environment", Use::kCommand},
      {"openai", "model", Use::kValue},
      {"openai", "prompt", Use::kValue},
      {"openai", "concurrency", Use::kValue},
      {"openai", "max_length", Use::kValue},
      {"openai", "stops_max", Use::kValue},
      {"openai", "send_seed", Use::kValue},
      {"openai", "scoring", Use::kValue},
      {"openai", "deterministic", Use::kValue},
      {"openai", "extra_body", Use::kValue},
      {"openai", "health_path", Use::kUrlPath},
      {"openai", "api_key_env", Use::kVariable},
      {"openai", "ready_seconds", Use::kValue},
      {"openai", "request_seconds", Use::kValue},
      {"openai", "connect_seconds", Use::kValue},
      {"openai", "retries", Use::kValue},
      {"openai", "restarts", Use::kValue},
      {"openai", "generation_config", Use::kValue},
      {"replay", "generations", Use::kReadPath},
      {"emulated", "delay_ms", Use::kValue},
      {"emulated", "prefill_tokens_per_second", Use::kValue},
      {"emulated", "tokens_per_second", Use::kValue},
      {"emulated", "jitter", Use::kValue},
      {"emulated", "load_seconds", Use::kValue},
      {"emulated", "clock_scale", Use::kValue},
      {"emulated", "fail_rate", Use::kValue},
      {"emulated", "concurrency", Use::kValue},
      {"emulated", "max_length", Use::kValue},
      {"emulated", "tokens_out", Use::kValue},
      {"emulated", "text", Use::kValue},
      {"emulated", "slow", Use::kValue},
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
  if (value.is_null() || !value.is_string() || value == "") return "";
  const auto& text = value.get_ref<const std::string&>();
  switch (use) {
    case Use::kReadPath:
      return text.find('\0') == text.npos ? "" : "a path";
    case Use::kUrl:
      return IsUrl(text) ? "" : "http://host:port or https://host:port, with a path or without, and nothing else in it";
    case Use::kUrlPath:
      if (text.front() == '/' && IsPlainAscii(text, "\\%") && StaysBelow(text.substr(0, text.find('?')))) return "";
      return "a path on the server, such as /health";
    case Use::kVariable:
      return IsVariable(text) ? "" : "the name of an environment variable";
    case Use::kValue:
    case Use::kCommand:
      return "";
  }
  return "";
}

}  // namespace evald
