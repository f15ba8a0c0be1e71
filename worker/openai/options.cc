#include "worker/openai/options.h"

#include <fmt/format.h>

#include <cstdlib>

#include "worker/settings.h"

namespace evald::openai {
namespace {

std::chrono::milliseconds ReadSeconds(const Settings& settings, const std::string& key,
                                      std::chrono::milliseconds fallback) {
  const double seconds =
      settings.AtLeast(key, 0.001, std::chrono::duration<double>(fallback).count());
  if (seconds > 1e6) settings.Refuse(key, "at most 1000000 seconds");
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1e3));
}

void ReadServer(const Settings& settings, Options* options) {
  options->command = settings.Get<std::vector<std::string>>("command", {});
  options->base_url = settings.Get<std::string>("base_url", "");
  if (options->command.empty() == options->base_url.empty()) {
    settings.Refuse(options->command.empty() ? "command" : "base_url",
                    "either `command`, to start a server, or `base_url`, where one runs");
  }
  while (options->base_url.ends_with('/')) options->base_url.pop_back();
  if (options->base_url.ends_with("/v1")) options->base_url.resize(options->base_url.size() - 3);
  const Json environment = settings.Get<Json>("environment", Json::object());
  if (!environment.is_object()) settings.Refuse("environment", "names with their values");
  for (const auto& [name, value] : environment.items()) {
    if (!value.is_string()) settings.Refuse("environment", "strings as values");
    options->environment[name] = value.get<std::string>();
  }
  const std::string variable = settings.Get<std::string>("api_key_env", "");
  if (variable.empty()) return;
  const char* key = std::getenv(variable.c_str());
  if (key == nullptr)
    settings.Refuse("api_key_env", "the name of an environment variable that is set");
  options->api_key = key;
}

}  // namespace

Options ReadOptions(const Json& json) {
  const Settings settings("openai", json);
  Options options;
  ReadServer(settings, &options);
  options.model = settings.Get<std::string>("model", "");
  const std::string prompt = settings.Get<std::string>("prompt", "text");
  if (prompt != "text" && prompt != "tokens") settings.Refuse("prompt", "text or tokens");
  options.tokens = prompt == "tokens";
  options.concurrency = settings.AtLeast("concurrency", 1, options.concurrency);
  options.max_length = settings.AtLeast("max_length", 0, options.max_length);
  options.stops_max = settings.AtLeast("stops_max", 0, options.stops_max);
  options.send_seed = settings.Get("send_seed", options.send_seed);
  options.scoring = settings.Get("scoring", options.scoring);
  options.deterministic = settings.Get("deterministic", options.deterministic);
  options.generation_config = ReadGenerationConfigUse(settings);
  options.extra_body = settings.Get("extra_body", options.extra_body);
  if (!options.extra_body.is_object()) settings.Refuse("extra_body", "names with their values");
  options.health_path = settings.Get<std::string>("health_path", "");
  options.ready_timeout = ReadSeconds(settings, "ready_seconds", options.ready_timeout);
  options.request_timeout = ReadSeconds(settings, "request_seconds", options.request_timeout);
  options.connect_timeout = ReadSeconds(settings, "connect_seconds", options.connect_timeout);
  options.retries = settings.AtLeast("retries", 0, options.retries);
  options.restarts = settings.AtLeast("restarts", 0, options.restarts);
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

}  // namespace evald::openai
