#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "orchestrator/report/text_table.h"
#include "orchestrator/simulate/report.h"

namespace evald {
namespace {

std::string Percent(double share) { return fmt::format("{:.1f}", 100 * share); }
std::string Counted(int64_t count, const std::string& what) {
  return fmt::format("{} {}{}", GroupedDigits(count), what, count == 1 ? "" : "s");
}

std::string Seconds(double seconds) {
  return seconds < 1000 ? fmt::format("{:.1f}", seconds) : fmt::format("{:.0f}", seconds);
}

const SimSpreadOver& Ratio(const SimReport& report, const PolicyReport& policy) {
  return report.scenario.has_faults() ? policy.ratio_to_left_bound : policy.ratio_to_bound;
}

std::vector<TextRow> Makespans(const SimReport& report) {
  const bool published =
      std::any_of(report.policies.begin(), report.policies.end(),
                  [](const PolicyReport& policy) { return policy.published_speedup.has_value(); });
  std::vector<TextRow> rows = {{"policy", "makespan s", "of bound", "speedup", "GPU idle %"}};
  if (published) rows[0].push_back("published");
  for (const PolicyReport& policy : report.policies) {
    rows.push_back({policy.name, Seconds(policy.makespan_s.p50),
                    fmt::format("{:.3f}", Ratio(report, policy).p50),
                    fmt::format("{:.2f}", policy.speedup_vs_coupled.p50),
                    Percent(policy.gpu_idle_share.p50)});
    if (published)
      rows.back().push_back(
          policy.published_speedup ? fmt::format("{:.1f}", *policy.published_speedup) : "");
  }
  for (size_t column = 5; column < rows[0].size(); ++column) {
    // beside the speedup
    for (TextRow& row : rows) std::rotate(row.begin() + 4, row.begin() + 5, row.end());
  }
  return rows;
}

std::vector<TextRow> DeviceTimes(const SimReport& report) {
  std::vector<TextRow> rows = {{"devices' time, %"}};
  for (const std::string& cause : DeviceTimeCauses()) rows[0].push_back(cause);
  rows[0].push_back("idle");
  for (const PolicyReport& policy : report.policies) {
    rows.push_back({policy.name});
    for (size_t i = 1; i < rows[0].size(); ++i)
      rows.back().push_back(Percent(policy.device_time.at(rows[0][i])));
  }
  return rows;
}

std::vector<TextRow> Spreads(const SimReport& report) {
  std::vector<TextRow> rows = {{"over draws", "makespan p5", "p50", "p95", "of bound p5", "p50",
                                "p95", "worst", "speedup p5", "p50", "p95"}};
  for (const PolicyReport& policy : report.policies) {
    const SimSpreadOver& makespan = policy.makespan_s;
    const SimSpreadOver& ratio = Ratio(report, policy);
    const SimSpreadOver& speedup = policy.speedup_vs_coupled;
    TextRow row = {policy.name, Seconds(makespan.p5), Seconds(makespan.p50), Seconds(makespan.p95)};
    for (const double value : {ratio.p5, ratio.p50, ratio.p95, ratio.most})
      row.push_back(fmt::format("{:.3f}", value));
    for (const double value : {speedup.p5, speedup.p50, speedup.p95})
      row.push_back(fmt::format("{:.2f}", value));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string Head(const SimReport& report) {
  const Scenario& scenario = report.scenario;
  const SimCluster& cluster = scenario.cluster;
  std::string text = fmt::format(
      "{} on {}: {}, {} of {}; {} with {}\n", scenario.workload.name, cluster.name,
      Counted(scenario.workload.dataset_count(), "dataset"), Counted(cluster.nodes, "node"),
      Counted(cluster.devices_per_node, "device"), Counted(report.documents, "document"),
      Counted(cluster.score_slots(), "scoring slot"));
  text += fmt::format(
      "  bound    {} s = staging {} s + the largest of device work ÷ {} {} s, longest request {} "
      "s (all long ones {} s), scoring {} s\n",
      Seconds(report.bound.total_s()), Seconds(report.bound.stage_s), cluster.devices(),
      Seconds(report.bound.work_s), Seconds(report.bound.longest_request_s),
      Seconds(report.bound.long_requests_s), Seconds(report.bound.scoring_s));
  if (report.bound.unknowing_s() > 1.001 * report.bound.total_s()) {
    text += fmt::format(
        "           {} s for schedules that do not know beforehand which documents are long "
        "(medians: {:.3f} of \"bound\")\n",
        Seconds(report.bound.unknowing_s()), report.unknowing_bound_s.p50 / report.bound_s.p50);
  }
  text += fmt::format(
      "  apart    start of an engine {} s, preparing a dataset {} s: before the run where engines "
      "stay warm and\n"
      "           prompts are kept, within it at each trial elsewhere\n",
      Seconds(cluster.start_s), Seconds(cluster.prepare_s));
  std::vector<std::string> changed;
  if (scenario.no_priors) changed.push_back("no priors");
  if (!scenario.no_priors && scenario.prior_error > 1)
    changed.push_back(fmt::format("priors wrong by up to {:.3g}", scenario.prior_error));
  if (scenario.trial_failure_rate > 0)
    changed.push_back(fmt::format("{:.3g} % of trials fail", 100 * scenario.trial_failure_rate));
  if (scenario.lose_node_at > 0)
    changed.push_back(
        fmt::format("a node lost at {:.3g} % of the bound", 100 * scenario.lose_node_at));
  if (scenario.slow_device > 1)
    changed.push_back(
        fmt::format("a device {:.3g} times slower than it says", scenario.slow_device));
  if (scenario.slow_node > 1)
    changed.push_back(fmt::format("a node {:.3g} times slower than it says", scenario.slow_node));
  if (scenario.has_faults()) changed.push_back("\"of bound\" is of what the faults left to do");
  if (!changed.empty()) text += "  with     " + Join(changed, "; ") + "\n";
  text += fmt::format("  draws    {}, from seed {}{}\n\n", scenario.draws, scenario.seed,
                      scenario.draws > 1 ? "; medians" : "");
  return text;
}

}  // namespace

std::string ReportText(const SimReport& report) {
  std::string text = Head(report) + TextTable(Makespans(report), {.indent = 2}) + "\n" +
                     TextTable(DeviceTimes(report), {.indent = 2});
  if (report.scenario.draws > 1) text += "\n" + TextTable(Spreads(report), {.indent = 2});
  return text;
}

}  // namespace evald
