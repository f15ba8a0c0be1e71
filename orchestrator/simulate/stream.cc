#include "orchestrator/simulate/stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <string_view>

#include "base/text.h"
#include "orchestrator/report/text_table.h"
#include "orchestrator/simulate/spans.h"

namespace evald {
namespace {

/// How long a trial holds its device, and where it stood in the order of leases.
struct Held {
  double begin = 0;
  double seconds = 0;
};

struct Evaluation {
  std::vector<Held> trials;
  double scoring_tail_s = 0;  ///< after the last device was free
};

// A trial ends with its generation, or with the scoring that follows it on the device.
void AddTrials(const std::vector<SimSpan>& spans, bool staged, Evaluation* evaluation) {
  Held held;
  bool open = false;
  for (size_t i = 0; i < spans.size(); ++i) {
    const std::string_view name = spans[i].name;
    // Staging, which goes on while the devices compute the checkpoint before.
    if (staged && name == "load" && spans[i].begin == 0) continue;
    if (!open) held = {spans[i].begin, 0};
    open = true;
    held.seconds += spans[i].end - spans[i].begin;
    const bool scores_next = i + 1 < spans.size() &&
                             std::string_view(spans[i + 1].name) == "score" &&
                             spans[i + 1].begin - spans[i].end < 1e-6;
    if ((name != "generate" || scores_next) && name != "score") continue;
    evaluation->trials.push_back(held);
    open = false;
  }
}

Evaluation Alone(const SimCluster& cluster, const PolicyOutcome& policy, const SimResult& draw) {
  Evaluation evaluation;
  double last = 0;
  for (const std::vector<SimSpan>& spans : SpansByDevice(draw.spans, cluster.devices())) {
    AddTrials(spans, policy.decouplings.load_once, &evaluation);
    if (!spans.empty()) last = std::max(last, spans.back().end);
  }
  std::stable_sort(evaluation.trials.begin(), evaluation.trials.end(),
                   [](const Held& a, const Held& b) { return a.begin < b.begin; });
  evaluation.scoring_tail_s = std::max(0.0, draw.makespan_s - last);
  return evaluation;
}

struct Free {
  double at = 0;
  int checkpoint = -1;  ///< whose weights the device has
  bool operator>(const Free& other) const { return at > other.at; }
};

StreamReport::OfPolicy OfPolicy(const Scenario& scenario, const PolicyOutcome& policy,
                                double every_s) {
  const SimCluster& cluster = scenario.cluster;
  const double weights = scenario.workload.model.bytes;
  const double stage_s = policy.decouplings.load_once ? weights / cluster.storage_bytes_per_s : 0;
  const double pull_s = policy.decouplings.stay_warm ? weights / cluster.pcie_bytes_per_s : 0;
  std::priority_queue<Free, std::vector<Free>, std::greater<>> devices;
  for (int d = 0; d < cluster.devices(); ++d) devices.push({});
  StreamReport::OfPolicy report;
  report.name = policy.name;
  double held_s = 0;
  for (size_t k = 0; k < policy.draws.size(); ++k) {
    const Evaluation evaluation = Alone(cluster, policy, policy.draws[k]);
    const double arrival = static_cast<double>(k) * every_s;
    double over = arrival;
    for (const Held& trial : evaluation.trials) {
      Free device = devices.top();
      devices.pop();
      const double pull = device.checkpoint == static_cast<int>(k) ? 0 : pull_s;
      device.at = std::max(device.at, arrival + stage_s) + pull + trial.seconds;
      device.checkpoint = static_cast<int>(k);
      held_s += pull + trial.seconds;
      over = std::max(over, device.at);
      devices.push(device);
    }
    report.latency_s.push_back(over + evaluation.scoring_tail_s - arrival);
  }
  report.load = held_s / static_cast<double>(policy.draws.size()) / cluster.devices() / every_s;
  return report;
}

}  // namespace

StreamReport MakeStream(const Scenario& scenario, const ScenarioResult& result, double every_s) {
  StreamReport report;
  report.every_s = every_s;
  for (const PolicyOutcome& policy : result.policies) {
    if (!policy.reference) report.policies.push_back(OfPolicy(scenario, policy, every_s));
  }
  return report;
}

Json ToJson(const StreamReport& report) {
  Json policies = Json::array();
  for (const StreamReport::OfPolicy& policy : report.policies) {
    const SimSpreadOver latency = Summarise(policy.latency_s);
    policies.push_back({{"name", policy.name},
                        {"latency_s", {{"p50", latency.p50}, {"max", latency.most}}},
                        {"latencies_s", policy.latency_s},
                        {"load", policy.load},
                        {"keeps_up", policy.keeps_up()}});
  }
  return {{"every_s", report.every_s}, {"policies", std::move(policies)}};
}

std::string StreamText(const StreamReport& report) {
  std::vector<TextRow> rows = {
      {"from arrival to scores, s", "p50", "worst", "last", "devices' load %", "keeps up"}};
  for (const StreamReport::OfPolicy& policy : report.policies) {
    const SimSpreadOver latency = Summarise(policy.latency_s);
    rows.push_back({policy.name, fmt::format("{:.0f}", latency.p50),
                    fmt::format("{:.0f}", latency.most),
                    fmt::format("{:.0f}", policy.latency_s.back()),
                    fmt::format("{:.1f}", 100 * policy.load), policy.keeps_up() ? "yes" : "no"});
  }
  return fmt::format("  {} checkpoints, one every {}, on the same devices\n\n",
                     report.policies.at(0).latency_s.size(), HumanSeconds(report.every_s)) +
         TextTable(rows, {.indent = 2});
}

}  // namespace evald
