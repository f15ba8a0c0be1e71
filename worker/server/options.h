#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/generation_config.h"
#include "evald/json.h"
#include "worker/engine/engine.h"

namespace evald::server {

/// The settings of an engine that asks a server (engines/openai.cc, vllm.cc, …). A setting that the
/// engine does not have keeps its default. In `command` and `environment` of the openai engine, and
/// in `model`, {checkpoint} stands for the staged folder, {host} for 127.0.0.1 and {port} for a
/// free port.
struct Options {
  /// openai: the whole command that starts a server; empty: see base_url. Others: the words in
  /// place of the program's name, such as ["/opt/vllm/bin/vllm"]
  std::vector<std::string> command;
  std::vector<std::string> arguments;  ///< added to the server's arguments
  std::string base_url;  ///< a running server: "http://host:8000", with or without /v1
  std::map<std::string, std::string> environment;  ///< added to the server's environment
  std::string model;       ///< the name in requests; "": the first that /v1/models lists
  std::string model_file;  ///< llama-server: the checkpoint as a GGUF file
  bool tokens = false;     ///< `prompt: tokens` sends token ids, `prompt: text` (default) text
  int concurrency = 0;    ///< requests under way at once; 0: as many as the server computes at once
  int max_length = 0;     ///< context length; 0: from /v1/models, else the checkpoint's config.json
  int stops_max = 4;      ///< stop strings that the server takes in one request
  bool send_seed = true;  ///< a seed in every request
  bool scoring = true;    ///< false: no self-test, no log-likelihoods
  /// openai: the user's word that batching does not change answers. Others: the server is started
  /// so that it does not
  bool deterministic = false;
  bool swap = true;         ///< false: every checkpoint gets a new server
  std::string dtype;        ///< "" and "auto": that of the checkpoint's weights
  double memory_share = 0;  ///< of a GPU's memory that the server takes; 0: its own default
  uint64_t kv_cache = 0;    ///< bytes for keys and values on a processor; 0: evald's choice
  /// The checkpoint's generation settings are in force, or left out.
  GenerationConfig::Use generation_config = GenerationConfig::Use::kCheckpoint;
  Json extra_body = Json::object();  ///< members added to every request
  std::string health_path;           ///< "": /health, or /v1/models if that is not found
  std::string api_key;  ///< from the variable that `api_key_env` names; its absence is an error
  std::chrono::milliseconds ready_timeout{600 * 1000};    ///< `ready_seconds`
  std::chrono::milliseconds request_timeout{600 * 1000};  ///< `request_seconds`
  std::chrono::milliseconds connect_timeout{10 * 1000};   ///< `connect_seconds`
  std::chrono::milliseconds parity_budget{10 * 1000};     ///< `parity_seconds`; 0: no parity check
  int retries = 5;   ///< of one request, on 429, 5xx and lost connections; once after a time-out
  int restarts = 3;  ///< of a server that died, for each checkpoint
};

/// `engine` is the engine's name in eval.yaml. Throws Error(kUsage).
Options ReadOptions(const std::string& engine, const Json& settings);

/// `text` with the placeholders replaced.
std::string Expand(const std::string& text, const std::string& checkpoint, int port);

}  // namespace evald::server
