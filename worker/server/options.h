#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/generation_config.h"
#include "evald/json.h"
#include "worker/engine/engine.h"

namespace evald::server {

/// The settings of the openai engine. In `command`, `environment` and `model`, {checkpoint} stands
/// for the staged folder, {host} for 127.0.0.1 and {port} for a free port.
struct Options {
  std::vector<std::string> command;  ///< starts a server; empty: see base_url
  std::string base_url;              ///< a running server: "http://host:8000", with or without /v1
  std::map<std::string, std::string> environment;  ///< added to the server's environment
  std::string model;      ///< the name in requests; "": the first that /v1/models lists
  bool tokens = false;    ///< `prompt: tokens` sends token ids, `prompt: text` (default) text
  int concurrency = 8;    ///< requests under way at once
  int max_length = 0;     ///< context length; 0: from /v1/models, else the checkpoint's config.json
  int stops_max = 4;      ///< stop strings that the server takes in one request
  bool send_seed = true;  ///< a seed in every request
  bool scoring = true;    ///< false: no self-test, no log-likelihoods
  bool deterministic = false;  ///< the user's word that batching does not change answers
  /// The checkpoint's generation settings are in force, or left out.
  GenerationConfig::Use generation_config = GenerationConfig::Use::kCheckpoint;
  Json extra_body = Json::object();  ///< members added to every request
  std::string health_path;           ///< "": /health, or /v1/models if that is not found
  std::string api_key;  ///< from the variable that `api_key_env` names; its absence is an error
  std::chrono::milliseconds ready_timeout{600 * 1000};    ///< `ready_seconds`
  std::chrono::milliseconds request_timeout{600 * 1000};  ///< `request_seconds`
  std::chrono::milliseconds connect_timeout{10 * 1000};   ///< `connect_seconds`
  int retries = 5;   ///< of one request, on 429, 5xx and lost connections; once after a time-out
  int restarts = 3;  ///< of a server that died, in all
};

/// Throws Error(kUsage).
Options ReadOptions(const Json& settings);

/// `text` with the placeholders replaced.
std::string Expand(const std::string& text, const std::string& checkpoint, int port);

}  // namespace evald::server
