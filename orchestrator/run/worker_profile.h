#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "evald/json.h"
#include "orchestrator/fleet_machine/run_view.h"

namespace evald {

/// What a run wants its workers to be started with. Runs whose profiles have the same tag share
/// workers.
struct WorkerProfile {
  std::string engine;
  Json settings = Json::object();
  int threads = 1;
  uint64_t seed = 0;
  std::vector<std::filesystem::path>
      read_roots;  ///< below which it may read; the same for all runs of an orchestrator

  /// Names the profile: RunView::profile, and ProcessSpec::tag of a worker that is started with it.
  std::string Tag() const;
};

/// What `engine` (EngineInfo as JSON) says of the engine that a worker has.
EngineFacts FactsOf(const Json& engine);

}  // namespace evald
