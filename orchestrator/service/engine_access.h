#pragma once

#include <map>
#include <string>
#include <vector>

#include "orchestrator/config/eval_config.h"

namespace evald {

/// The service's permissions for the engines and judges of submitted runs (docs/serve.md).
struct EngineAccess {
  /// Servers that may be called, with everything below their URLs. Empty: any server, but without
  /// the service's keys.
  std::vector<std::string> urls;
  /// The keys of `urls`: each URL with the variable of the service's environment that holds its
  /// key. No other variable is sent anywhere.
  std::map<std::string, std::string> keys;
  bool commands = false;  ///< commands of runs may be started, and any server called
  /// Engines that may start their server, with a command of evald's own.
  std::vector<std::string> engines = {};
  /// Judges that may be asked, with everything below their URLs. Empty: none
  std::vector<std::string> judge_urls = {};
  /// The keys of `judge_urls`, as `keys`
  std::map<std::string, std::string> judge_keys = {};
};

/// Throws Error(kUsage) "key 'engine.x': ..." for settings that a submitted run may not have, and
/// for settings that no run may have (FindSettingProblem). Does not check paths.
void CheckEngineIsAllowed(const EngineConfig& engine, const EngineAccess& access);

/// Throws Error(kUsage) "key 'judge.x': ..." if the run would ask a judge that the service does not
/// allow, send a key that is not this judge's, or hold a metric process for too long.
void CheckJudgesAreAllowed(const EvalConfig& config, const EngineAccess& access);

/// Throws Error(kUsage) if a task is a command, and the service starts none for submitted runs.
void CheckCommandsAreAllowed(const std::vector<TaskRequest>& tasks, const EngineAccess& access);

}  // namespace evald
