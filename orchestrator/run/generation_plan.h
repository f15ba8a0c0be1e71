#pragma once

#include <map>
#include <string>

#include "base/read_roots.h"
#include "evald/json.h"
#include "orchestrator/prepare/preparation.h"

namespace evald {

/// The effect of a checkpoint's generation settings on a run's generating tasks.
struct GenerationPlan {
  /// By task: the settings in force (GenerationConfig::InForce). Empty for engines without
  /// the setting `generation_config`: they do not heed a checkpoint's settings.
  std::map<std::string, Json> in_force;
  /// By task: why no request of the task can be answered, in the engine's words.
  std::map<std::string, std::string> impossible;
};

/// `engine` is EngineInfo as JSON. `checkpoint` is the folder that the engine loaded, which need
/// not exist. Throws Error(kInput) for a broken generation_config.json.
GenerationPlan PlanGeneration(const EvalConfig& config, const Suite& suite, const Json& engine,
                              const ReadFolder& checkpoint);

}  // namespace evald
