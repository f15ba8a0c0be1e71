#include "worker/server/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "engines/engines.h"
#include "worker/engine/settings.h"

namespace evald::server {
namespace {

std::chrono::milliseconds ReadSeconds(const Settings& settings, const std::string& key,
                                      std::chrono::milliseconds fallback) {
  const double seconds = settings.Get(key, std::chrono::duration<double>(fallback).count());
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1e3));
}

void ReadServer(const Settings& settings, Options* options) {
  options->command = settings.Get<std::vector<std::string>>("command", {});
  options->base_url = settings.Get<std::string>("base_url", "");
  while (options->base_url.ends_with('/')) options->base_url.pop_back();
  if (options->base_url.ends_with("/v1")) options->base_url.resize(options->base_url.size() - 3);
  const Json environment = settings.Get<Json>("environment", Json::object());
  for (const auto& [name, value] : environment.items()) {
    options->environment[name] = value.get<std::string>();
  }
  const std::string variable = settings.Get<std::string>("api_key_env", "");
  if (variable.empty()) return;
  const char* key = std::getenv(variable.c_str());
  if (key == nullptr) {
    settings.Refuse(
        "api_key_env", "the name of an environment variable that is set",
        "set it in the environment of evald, or of the agent on whose host the engine runs");
  }
  options->api_key = key;
}

bool NamesFile(const EngineKind& kind, const std::string& key) {
  return std::any_of(kind.settings.begin(), kind.settings.end(), [&](const EngineSetting& one) {
    return one.key == key && one.use == SettingUse::kReadPath;
  });
}

}  // namespace

Options ReadOptions(const std::string& engine, const Json& json) {
  const Settings settings(engine, json);
  Options options;
  ReadServer(settings, &options);
  options.arguments = settings.Get<std::vector<std::string>>("arguments", {});
  const bool file = NamesFile(EngineNamed(engine), "model");
  (file ? options.model_file : options.model) = settings.Get<std::string>("model", "");
  options.tokens = TakesTokens(EngineNamed(engine), json);
  options.concurrency = settings.Get("concurrency", options.concurrency);
  options.max_length = settings.Get("max_length", options.max_length);
  options.stops_max = settings.Get("stops_max", options.stops_max);
  options.send_seed = settings.Get("send_seed", options.send_seed);
  options.scoring = settings.Get("scoring", options.scoring);
  options.deterministic = settings.Get("deterministic", options.deterministic);
  options.swap = settings.Get("swap", options.swap);
  options.dtype = settings.Get<std::string>("dtype", "");
  options.memory_share = settings.Get("memory_share", options.memory_share);
  options.kv_cache = settings.Bytes("kv_cache");
  options.generation_config = ReadGenerationConfigUse(settings);
  options.extra_body = settings.Get("extra_body", options.extra_body);
  options.health_path = settings.Get<std::string>("health_path", "");
  options.ready_timeout = ReadSeconds(settings, "ready_seconds", options.ready_timeout);
  options.request_timeout = ReadSeconds(settings, "request_seconds", options.request_timeout);
  options.connect_timeout = ReadSeconds(settings, "connect_seconds", options.connect_timeout);
  options.parity_budget = ReadSeconds(settings, "parity_seconds", options.parity_budget);
  options.retries = settings.Get("retries", options.retries);
  options.restarts = settings.Get("restarts", options.restarts);
  return options;
}

std::string Expand(const std::string& text, const std::string& checkpoint, int port) {
  std::string expanded = text;
  const std::pair<const char*, std::string> values[] = {
      {"{checkpoint}", checkpoint}, {"{host}", "127.0.0.1"}, {"{port}", std::to_string(port)}};
  for (const auto& [name, value] : values) {
    const std::string_view what = name;
    for (size_t at = 0; (at = expanded.find(what, at)) != std::string::npos; at += value.size()) {
      expanded.replace(at, what.size(), value);
    }
  }
  return expanded;
}

}  // namespace evald::server
