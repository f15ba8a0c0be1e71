#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "evald/json.h"
#include "orchestrator/fleet_machine/run_view.h"

namespace evald {

/// The settings with which a run's workers are started. Runs whose profiles have the same tag share
/// workers.
struct WorkerProfile {
  std::string engine;
  Json settings = Json::object();
  int threads = 1;
  uint64_t seed = 0;
  /// Folders below which it may read; the same for all runs of an orchestrator
  std::vector<std::filesystem::path> read_roots;

  /// The profile's name: RunView::profile, and ProcessSpec::tag of a worker started with it.
  std::string Tag() const;
};

/// The facts in `engine` (EngineInfo as JSON).
EngineFacts FactsOf(const Json& engine);

}  // namespace evald
