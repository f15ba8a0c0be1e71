#include "orchestrator/service/node_pool_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "orchestrator/service/node_pool.h"
#include "orchestrator/service/service.h"

namespace evald {
namespace {

// The state of a job, for people: the launcher's word, and what the fleet knows.
std::string StateOfJob(const LaunchMachine::Job& job) {
  if (job.record.state == NodeJob::State::kStopping) return "ending";
  if (job.host.connected) return job.host.busy ? "working" : "idle";
  if (job.missing_since > 0) return "unknown";
  if (job.listed.job.empty()) return job.submitting ? "submitting" : "submitted";
  if (job.listed.state == ListedJob::State::kPending) return "waiting";
  return job.agent_came ? "away" : "starting";
}

Json TextOrNull(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json ShowJob(const NodePoolOptions& options, const LaunchMachine::Job& job) {
  const NodeJob& record = job.record;
  const bool waits = job.listed.state == ListedJob::State::kPending;
  return {{"name", record.name},
          {"job", TextOrNull(record.job)},
          {"host", fmt::format("{}-{}", options.name, record.number)},
          {"state", StateOfJob(job)},
          {"word", TextOrNull(job.listed.word)},
          {"reason", waits && !job.host.connected ? TextOrNull(job.listed.reason) : Json()},
          {"node", TextOrNull(record.node)},
          {"devices", job.host.devices},
          {"submitted_at", Rfc3339(record.intended_at)},
          {"starts_at", waits ? Rfc3339(job.listed.starts_at) : Json()},
          {"started_at", Rfc3339(record.started_at)},
          {"ends_at", Rfc3339(job.listed.ends_at)},
          {"why", TextOrNull(record.why)}};
}

}  // namespace

Json ShowNodes(const NodePoolOptions& options, const LaunchMachine& machine, double now) {
  Json jobs = Json::array(), excluded = Json::array();
  for (const auto& [number, job] : machine.jobs()) {
    if (job.record.state != NodeJob::State::kOver) jobs.push_back(ShowJob(options, job));
  }
  for (const auto& [node, why] : machine.excluded())
    excluded.push_back({{"node", node}, {"why", why}});
  const LaunchLimits& limits = options.limits;
  return {{"name", options.name},
          {"kind", options.kind},
          {"nodes",
           {{"min", limits.nodes_min}, {"max", limits.nodes_max}, {"wanted", machine.target()}}},
          {"start_s", machine.costs().start_s},
          {"node_hours", machine.NodeHours(now)},
          {"node_hours_per_day",
           limits.node_hours_per_day > 0 ? Json(limits.node_hours_per_day) : Json()},
          {"jobs", std::move(jobs)},
          {"excluded", std::move(excluded)},
          {"problems", machine.Problems(now)},
          {"next_try_at", machine.next_try_at() > now ? Rfc3339(machine.next_try_at()) : Json()}};
}

std::string ShowWaiting(const NodePoolOptions& options, const LaunchMachine& machine) {
  int waiting = 0, starting = 0;
  std::set<std::string> reasons;
  for (const auto& [number, job] : machine.jobs()) {
    const NodeJob::State state = job.record.state;
    if (state == NodeJob::State::kOver || state == NodeJob::State::kStopping || job.host.connected)
      continue;
    if (job.record.started_at > 0) {
      ++starting;
      continue;
    }
    ++waiting;
    if (!job.listed.reason.empty()) reasons.insert(job.listed.reason);
  }
  const auto nodes = [](int count) {
    return fmt::format("{} node{}", count, count == 1 ? "" : "s");
  };
  if (waiting > 0) {
    return fmt::format(
        "{} of launcher '{}', in its queue{}", nodes(waiting), options.name,
        reasons.empty() ? "" : " (" + Join({reasons.begin(), reasons.end()}, ", ") + ")");
  }
  if (starting > 0)
    return fmt::format("the agent{} on {} of launcher '{}'", starting == 1 ? "" : "s",
                       nodes(starting), options.name);
  return "";
}

}  // namespace evald
