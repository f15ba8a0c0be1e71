#include "orchestrator/simulate/trace.h"

#include <fmt/format.h>

#include <cmath>

#include "orchestrator/report/timeline.h"
#include "orchestrator/simulate/spans.h"

namespace evald {
namespace {

constexpr int kRowsMax = 64;

int64_t Micros(double seconds) { return std::llround(seconds * 1e6); }

// Idle stretches are added here: rows of the timeline would be idle up to the slowest policy's end.
void AddDevice(const std::string& row, const std::vector<SimSpan>& spans, double end,
               Timeline* timeline) {
  double until = 0;
  for (const SimSpan& span : spans) {
    if (Micros(span.begin) > Micros(until))
      timeline->Add(row, {"idle", Micros(until), Micros(span.begin)});
    TimelineSpan shown{span.name, Micros(span.begin), Micros(span.end)};
    if (!span.label.empty()) shown.args = {{"tasks", span.label}};
    timeline->Add(row, std::move(shown));
    until = span.end;
  }
  if (Micros(end) > Micros(until)) timeline->Add(row, {"idle", Micros(until), Micros(end)});
}

}  // namespace

void WriteTrace(const std::filesystem::path& path, const SimReport& report,
                const ScenarioResult& result) {
  const SimCluster& cluster = report.scenario.cluster;
  Timeline timeline(0);
  double longest = 0;
  for (const PolicyOutcome& policy : result.policies) {
    if (policy.reference) continue;
    const SimResult& draw = policy.draws[0];
    const auto by_device = SpansByDevice(draw.spans, cluster.devices());
    for (const int device : ShownDevices(cluster.devices(), kRowsMax)) {
      const std::string row = fmt::format("{}/{}", policy.name, device);
      timeline.AddRow(
          row,
          fmt::format("{}: node {} device {}", policy.name, device / cluster.devices_per_node,
                      device % cluster.devices_per_node),
          false);
      AddDevice(row, by_device[static_cast<size_t>(device)], draw.makespan_s, &timeline);
    }
    longest = std::max(longest, draw.makespan_s);
  }
  timeline.Write(path, Micros(longest));
}

}  // namespace evald
