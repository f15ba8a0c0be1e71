#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "orchestrator/config/eval_config.h"
#include "orchestrator/config/launcher_config.h"

namespace evald {

/// A folder whose checkpoints the service evaluates as they appear.
struct ServeWatch {
  std::filesystem::path checkpoints;
  std::filesystem::path eval;  ///< the eval.yaml by which each checkpoint is evaluated
  std::string which = "all";   ///< all, newest or every
  int every = 1;
  std::string marker;
  double settle_s = 5;
  double poll_s = 5;
  std::string user;
  int priority = 0;
};

struct ServeWebhook {
  std::string url;
  std::string secret_env;           ///< the variable with the key of the signature; "" for none
  std::vector<std::string> events;  ///< types of events; empty: all but progress
};

/// A serve.yaml (docs/serve.md), read strictly, paths absolute.
struct ServeConfig {
  std::string address = "127.0.0.1";
  int port = 8642;
  std::filesystem::path certificate, key;  ///< PEM; empty: no TLS
  std::filesystem::path tokens;            ///< empty: none
  /// Names besides localhost under which clients may reach it
  std::vector<std::string> hosts;
  std::filesystem::path state_dir, output_dir, cache_dir;
  uint64_t cache_bytes_max = kCacheBytesMax;
  WorkersConfig workers;
  MetricsConfig metrics;
  TaskCodeOptions task_code;  ///< for submissions that ask for it
  StagingConfig staging;
  int active_runs = 2;
  double linger_s = 600;  ///< how long this host's agent waits for another service
  std::vector<std::filesystem::path> roots;
  LimitsConfig limits;  ///< upper bounds for submitted runs
  std::vector<std::string> engine_urls;
  std::map<std::string, std::string> engine_keys;  ///< by URL: the variable with that server's key
  std::vector<std::string> judge_urls;
  std::map<std::string, std::string> judge_keys;  ///< likewise, of `judge_urls`
  bool allow_commands = false;
  std::vector<std::string> allow_engines;  ///< engines that may start their server
  int runs_per_user_max = 1000;            ///< runs that are not over
  int unused_per_user_max = 100;           ///< runs kept that ended before anything was computed
  int paused_per_user_max = 8;             ///< runs that were paused at work
  int watches_per_user_max = 16;           ///< registered watches
  int submit_priority_max = 50;            ///< the highest priority for the role submit
  std::vector<LauncherConfig> launchers;
  std::string agent_address = "0.0.0.0";  ///< of the listener for launched agents
  int agent_port = 0;                     ///< 0: any free one, and the same one from then on
  std::string agent_host;  ///< the name by which nodes reach this host; "": its host name
  std::vector<ServeWatch> watches;
  std::vector<ServeWebhook> webhooks;
};

/// Reads a serve.yaml. With an empty `file` all defaults, which `set` may change. Throws
/// Error(kUsage) like ReadEvalConfig.
ServeConfig ReadServeConfig(const std::filesystem::path& file, const std::vector<std::string>& set);

}  // namespace evald
