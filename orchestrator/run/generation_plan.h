#pragma once

#include <map>
#include <string>

#include "base/read_roots.h"
#include "evald/json.h"
#include "orchestrator/run/preparation.h"

namespace evald {

/// What a run's generating tasks come to with its checkpoint's generation settings.
struct GenerationPlan {
  /// By task: the settings in force (GenerationConfig::InForce). Empty for engines that answer
  /// without a checkpoint's settings (replay, emulated).
  std::map<std::string, Json> in_force;
  /// By task: why no request of it can be answered, as the engine would say.
  std::map<std::string, std::string> impossible;
};

/// `engine` is EngineInfo as JSON, `checkpoint` the folder that the engine loaded, which need not
/// be there. Throws Error(kInput) for a broken generation_config.json.
GenerationPlan PlanGeneration(const EvalConfig& config, const Suite& suite, const Json& engine,
                              const ReadFolder& checkpoint);

}  // namespace evald
