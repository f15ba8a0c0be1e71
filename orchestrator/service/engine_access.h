#pragma once

#include <map>
#include <string>
#include <vector>

#include "orchestrator/config/eval_config.h"

namespace evald {

/// What the service's configuration lets the engines of submitted runs do (docs/serve.md).
struct EngineAccess {
  /// Servers that may be called: each of these, and what is below it; empty: any, without the
  /// service's keys.
  std::vector<std::string> urls;
  /// Which variable of the service's environment holds the key of which of `urls`. No other is sent
  /// anywhere.
  std::map<std::string, std::string> keys;
  bool commands =
      false;  ///< programs may be started by commands of their own, and anything may be called
};

/// Throws Error(kUsage) "key 'engine.x': ..." for what a submitted run may not set, and for what no
/// run may set (FindSettingProblem). Paths are for the caller to check.
void CheckEngineIsAllowed(const EngineConfig& engine, const EngineAccess& access);

}  // namespace evald
