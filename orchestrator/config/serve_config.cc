#include "orchestrator/config/serve_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "engines/engines.h"
#include "evald/error.h"
#include "orchestrator/config/launcher_section.h"
#include "orchestrator/config/sections.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

// "host:port", "[::1]:port" or a port alone.
void ReadListen(YamlSection& section, std::string* address, int* number) {
  const auto listen = section.String("listen");
  if (!listen) return;
  const size_t colon = listen->rfind(':');
  std::string host = colon == std::string::npos ? "" : listen->substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  const std::string port = colon == std::string::npos ? *listen : listen->substr(colon + 1);
  const bool digits =
      !port.empty() && port.size() <= 5 && std::all_of(port.begin(), port.end(), ::isdigit);
  if (!digits || std::stoi(port) > 65535) {
    section.Refuse(
        "listen", fmt::format("found '{}', expected address:port such as 127.0.0.1:8642", *listen));
  }
  if (!host.empty()) *address = host;
  *number = std::stoi(port);
}

ServeWatch ReadWatch(YamlSection section, const fs::path& file) {
  ServeWatch watch;
  const auto checkpoints = section.String("checkpoints");
  const auto eval = section.String("eval");
  if (!checkpoints)
    section.RefuseAbsent("checkpoints", "absent, expected the folder that checkpoints appear in");
  if (!eval) section.RefuseAbsent("eval", "absent, expected an eval.yaml");
  watch.checkpoints = ResolvePath(file, *checkpoints);
  watch.eval = ResolvePath(file, *eval);
  if (!fs::is_regular_file(watch.eval))
    section.Refuse("eval", fmt::format("{}: no such file", watch.eval.string()));
  watch.which = section.String("which").value_or("all");
  if (watch.which != "all" && watch.which != "newest" && watch.which != "every") {
    section.Refuse("which", fmt::format("found '{}', expected all, newest or every", watch.which));
  }
  const auto every = section.Integer("every", 1, 1'000'000);
  if (every.has_value() != (watch.which == "every")) {
    section.Refuse("every", "goes together with 'which: every', and is needed there");
  }
  watch.every = static_cast<int>(every.value_or(1));
  watch.marker = section.String("marker").value_or("");
  watch.settle_s = section.Number("settle_s", 0, 86400).value_or(5);
  watch.poll_s = section.Number("poll_s", 0.1, 86400).value_or(5);
  watch.user = section.String("user").value_or("");
  watch.priority = static_cast<int>(section.Integer("priority", -100, 100).value_or(0));
  section.Finish();
  return watch;
}

ServeWebhook ReadWebhook(YamlSection section) {
  ServeWebhook webhook;
  const auto url = section.String("url");
  if (!url || (url->rfind("http://", 0) != 0 && url->rfind("https://", 0) != 0)) {
    section.Refuse("url", "expected http://... or https://...");
  }
  webhook.url = *url;
  webhook.secret_env = section.String("secret_env").value_or("");
  webhook.events = section.Strings("events");
  section.Finish();
  return webhook;
}

// Reads which of the servers `urls`, the value of `urls_key`, gets the key in which variable.
std::map<std::string, std::string> ReadServerKeys(YamlSection& top, const char* key,
                                                  const char* urls_key,
                                                  const std::vector<std::string>& urls) {
  std::map<std::string, std::string> variables;
  const Json keys = top.Value(key);
  if (keys.is_null()) return variables;
  if (!keys.is_object()) {
    top.Refuse(key,
               fmt::format("expected URLs of '{}', each with the name of a variable", urls_key));
  }
  for (const auto& [url, variable] : keys.items()) {
    if (std::find(urls.begin(), urls.end(), url) == urls.end())
      top.Refuse(key, fmt::format("'{}' is not one of '{}'", url, urls_key));
    if (!variable.is_string() || variable == "") {
      top.Refuse(key, fmt::format("of '{}': found {}, expected the name of a variable", url,
                                  variable.dump()));
    }
    variables[url] = variable.get<std::string>();
  }
  return variables;
}

// The engines that start a server of evald's choice.
void ReadAllowedEngines(YamlSection& top, ServeConfig* config) {
  std::vector<std::string> known;
  for (const EngineKind& kind : Engines()) {
    if (kind.server == ServerUse::kStarted) known.emplace_back(kind.name);
  }
  config->allow_engines = top.Strings("allow_engines");
  for (const std::string& name : config->allow_engines) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      top.Refuse("allow_engines",
                 fmt::format("found '{}', expected any of {}", name, Join(known, ", ")));
  }
}

void ReadAccess(YamlSection& top, const fs::path& file, ServeConfig* config) {
  if (auto tls = top.Section("tls")) {
    const auto certificate = tls->String("certificate"), key = tls->String("key");
    if (!certificate || !key)
      tls->RefuseAbsent(certificate ? "key" : "certificate", "absent, expected a PEM file");
    config->certificate = ResolvePath(file, *certificate);
    config->key = ResolvePath(file, *key);
    tls->Finish();
  }
  if (const auto tokens = top.String("tokens")) config->tokens = ResolvePath(file, *tokens);
  config->hosts = top.Strings("hosts");
  for (const std::string& root : top.Strings("roots"))
    config->roots.push_back(ResolvePath(file, root));
  config->engine_urls = top.Strings("engine_urls");
  config->engine_keys = ReadServerKeys(top, "engine_keys", "engine_urls", config->engine_urls);
  config->judge_urls = top.Strings("judge_urls");
  config->judge_keys = ReadServerKeys(top, "judge_keys", "judge_urls", config->judge_urls);
  config->allow_commands = top.Boolean("allow_commands").value_or(false);
  ReadAllowedEngines(top, config);
  if (auto quotas = top.Section("quotas")) {
    const auto runs = quotas->Integer("runs_per_user", 1, 1'000'000);
    const auto unused = quotas->Integer("unused_runs_per_user", 0, 1'000'000);
    const auto paused = quotas->Integer("paused_per_user", 0, 1'000);
    const auto watches = quotas->Integer("watches_per_user", 1, 1'000);
    const auto priority = quotas->Integer("submit_priority", -100, 100);
    config->runs_per_user_max = static_cast<int>(runs.value_or(config->runs_per_user_max));
    config->unused_per_user_max = static_cast<int>(unused.value_or(config->unused_per_user_max));
    config->paused_per_user_max = static_cast<int>(paused.value_or(config->paused_per_user_max));
    config->watches_per_user_max = static_cast<int>(watches.value_or(config->watches_per_user_max));
    config->submit_priority_max = static_cast<int>(priority.value_or(config->submit_priority_max));
    quotas->Finish();
  }
}

}  // namespace

ServeConfig ReadServeConfig(const fs::path& file, const std::vector<std::string>& set) {
  ServeConfig config;
  const fs::path at = file.empty() ? fs::current_path() / "serve.yaml" : fs::absolute(file);
  YamlSection top =
      file.empty() ? YamlSection::Parse("{}", "--set", set) : YamlSection::Load(file, set);
  top.Try([&] { ReadListen(top, &config.address, &config.port); });
  ReadAccess(top, at, &config);
  const auto state = top.String("state_dir"), output = top.String("output_dir"),
             cache = top.String("cache_dir");
  config.state_dir = state ? ResolvePath(at, *state) : DefaultStateDir();
  config.output_dir = output ? ResolvePath(at, *output) : config.state_dir / "runs";
  config.cache_dir = cache ? ResolvePath(at, *cache) : DefaultCacheDir();
  config.cache_bytes_max = ReadCacheLimit(top);
  top.Try([&] { config.workers = ReadWorkers(top, "workers"); });
  top.Try([&] { config.metrics = ReadMetrics(top); });
  config.task_code = ReadTaskCode(top, std::nullopt);
  if (config.task_code.python.find('/') != std::string::npos)
    config.task_code.python = ResolvePath(at, config.task_code.python).string();
  top.Try([&] { config.staging = ReadStaging(top, at); });
  top.Try([&] { config.limits = ReadLimits(top, std::nullopt); });
  if (auto agent = top.Section("agent")) {
    config.linger_s = agent->Number("linger_s", 0, 1e9).value_or(config.linger_s);
    config.agent_host = agent->String("host").value_or("");
    top.Try([&] { ReadListen(*agent, &config.agent_address, &config.agent_port); });
    agent->Finish();
  }
  config.launchers = ReadLaunchers(top, at);
  // This host's own processors are no stand-in for the nodes' devices.
  const bool named = config.workers.devices != std::vector<std::string>{"auto"};
  if (!config.launchers.empty() && !named) config.workers.devices = {"none"};
  config.active_runs = static_cast<int>(top.Integer("active_runs", 1, 64).value_or(2));
  for (YamlSection& watch : top.Sections("watch"))
    top.Try([&] { config.watches.push_back(ReadWatch(watch, at)); });
  for (YamlSection& webhook : top.Sections("webhooks"))
    top.Try([&] { config.webhooks.push_back(ReadWebhook(webhook)); });
  top.Finish();
  RequireTextPath(at, "state_dir", config.state_dir);
  RequireTextPath(at, "output_dir", config.output_dir);
  RequireTextPath(at, "cache_dir", config.cache_dir);
  RequireTextPath(at, "staging.root", config.staging.root);
  for (const fs::path& root : config.roots) RequireTextPath(at, "roots", root);
  for (const ServeWatch& watch : config.watches) {
    RequireTextPath(at, "watch.checkpoints", watch.checkpoints);
    RequireTextPath(at, "watch.eval", watch.eval);
  }
  return config;
}

}  // namespace evald
