#pragma once

#include <filesystem>

#include "orchestrator/simulate/report.h"

namespace evald {

/// Writes the first draw in the form of a run's timeline.json (docs/formats.md): a row per device,
/// at most 64 of them evenly taken, policy after policy, from each policy's time 0 to its end.
/// Throws Error(kInfrastructure).
void WriteTrace(const std::filesystem::path& path, const SimReport& report,
                const ScenarioResult& result);

}  // namespace evald
