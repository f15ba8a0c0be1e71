#pragma once

#include <filesystem>
#include <string>

#include "orchestrator/simulate/report.h"

namespace evald {

/// The first draw as an SVG picture: the policies under each other on one time axis, a row per
/// device (64 of them evenly taken where there are more), coloured by what the device did.
std::string GanttSvg(const SimReport& report, const ScenarioResult& result);

/// Throws Error(kInfrastructure).
void WriteGantt(const std::filesystem::path& path, const SimReport& report,
                const ScenarioResult& result);

}  // namespace evald
