// Hosts that end at a known time: the end of their job's time limit. Work that is expected to
// outlast its host is not given out. What is under way is handed back before the end, so that no
// trial and no job is killed by it.
#include <algorithm>
#include <cstdlib>

#include "orchestrator/fleet_machine/fleet_machine.h"
#include "orchestrator/schedule/placement.h"

namespace evald {
namespace {

// An agent that connects again tells the seconds that are left. They are a little off each time.
constexpr int64_t kSameEndMicros = 1'000'000;
// The least margin, for hosts that are there for a short time: at most a quarter of that time
constexpr double kLeastMarginSeconds = 2, kLeastMarginShare = 0.25;
// A run's answer that it has no trial that fits counts for so long
constexpr int64_t kNoTimeMicros = 1'000'000;
// The rate of a load from the host's own memory, until a load was measured
constexpr double kPullBytesPerSecond = 1e9;

int64_t Micros(double seconds) { return static_cast<int64_t>(seconds * 1e6); }

}  // namespace

bool FleetMachine::Ending(const std::string& host) const {
  const auto found = hosts_.find(host);
  return found != hosts_.end() && found->second.ending;
}

void FleetMachine::HostEnds(const std::string& name, int64_t at_us, int64_t now) {
  const auto found = hosts_.find(name);
  if (found == hosts_.end()) return;
  Host& host = found->second;
  if (at_us <= 0 && host.ends_us == 0) return;
  if (at_us > 0 && host.ends_us != 0 && std::abs(at_us - host.ends_us) < kSameEndMicros) return;
  const bool was_ending = host.ending;
  host.ends_us = host.hands_back_us = host.takes_back_us = 0;
  host.ending = host.taken_back = false;
  if (at_us > 0) {
    const double life_s = std::max(0.0, static_cast<double>(at_us - host.added_us) / 1e6);
    const double least_s = std::min(kLeastMarginSeconds, life_s * kLeastMarginShare);
    const double margin_s =
        std::min(options_.end_margin_s, std::max(life_s * options_.end_margin_share, least_s));
    host.ends_us = at_us;
    host.hands_back_us = std::max<int64_t>(1, at_us - Micros(margin_s));
    host.takes_back_us = at_us - Micros(margin_s * options_.end_rest_share);
  }
  ++revision_;
  WatchEnds(now);
  if (was_ending && !host.ending) return Resume(name, now);  // it lasts longer than it was said to
  Serve(now);
}

// To be called again and again.
void FleetMachine::WatchEnds(int64_t now) {
  next_end_us_.reset();
  for (auto& [name, host] : hosts_) {
    if (host.ends_us == 0 || host.taken_back) continue;
    if (!host.ending && now >= host.hands_back_us) HandBack(&host);
    if (now >= host.takes_back_us) {
      host.taken_back = true;
      TakeAllBack(host);
      continue;
    }
    const int64_t next = host.ending ? host.takes_back_us : host.hands_back_us;
    next_end_us_ = std::min(next_end_us_.value_or(next), next);
  }
}

// The host gets no more work. Documents that its workers have begun come to their end; the others
// go to other hosts.
void FleetMachine::HandBack(Host* host) {
  host->ending = true;
  for (const size_t i : host->workers) {
    const WorkerSlot& slot = workers_[i];
    for (const HeldTrial& held : slot.held) Push(order::HandBack{slot.id, held});
    if (slot.state() != WorkerState::kAbsent) Push(order::ShowChange{slot.id});
  }
  Recount(host);
}

// What is left goes to others too: documents under way are lost, unless a worker that can read the
// half-written files takes them up.
void FleetMachine::TakeAllBack(const Host& host) {
  for (const size_t i : host.workers) TakeTrialsBack(workers_[i]);
  for (const size_t i : host.metric_processes) {
    MetricProcessSlot& slot = metric_processes_[i];
    if (slot.job_of == 0 || !slot.has_process()) continue;
    TakeAllJobsBack(slot);
    slot.job_of = 0;
    slot.excused = true;
    slot.cause = "its host ends";
    Push(order::Kill{slot.id, slot.cause});
  }
}

// If the worker's host ends, its trials go back to their runs without a failure.
void FleetMachine::TakeTrialsBack(const WorkerSlot& slot) {
  if (!Ending(slot.host)) return;
  for (const HeldTrial& held : slot.held)
    Push(order::TakeBack{slot.id, held, "the worker's host ends"});
}

// The same for a metric process's jobs.
void FleetMachine::TakeAllJobsBack(const MetricProcessSlot& slot) {
  if (!Ending(slot.host)) return;
  for (const auto& [number, run] : runs_) Push(order::TakeJobsBack{slot.id, number, false});
}

// ---- what there is time for

// Expected seconds until the worker could begin a trial of the run: its process is started with the
// run's profile, and loads the run's checkpoint.
double FleetMachine::LoadSeconds(const WorkerSlot& slot, const Run& run) const {
  const bool other = !slot.has_process() || slot.profile != run.view.profile;
  if (!other && slot.loading == run.view.load) return 0;
  const double bytes = run.view.checkpoint_bytes;
  const double pull_s = run.load_s.value_or(bytes / kPullBytesPerSecond);
  const double load_s = HostHas(slot.host, run)
                            ? pull_s
                            : std::max(pull_s, StageSeconds(hosts_.at(slot.host), bytes));
  return load_s + (other ? run.start_s.value_or(0) : 0);
}

// A load must leave time for something useful.
bool FleetMachine::TooLate(const WorkerSlot& slot, const Run& run, int64_t now) const {
  const Host* host = homes_[static_cast<size_t>(&slot - workers_.data())];
  if (host->ends_us == 0) return false;
  const double left_s = static_cast<double>(host->hands_back_us - now) / 1e6;
  const double shortest_s = run.view.shortest_s.value_or(0), load_s = LoadSeconds(slot, run);
  return left_s < (load_s > 0 ? load_s + std::max(shortest_s, kWorthALoadSeconds) : shortest_s);
}

// Whether the worker idles because its host ends too soon, as far as is known.
bool FleetMachine::OutOfTime(const WorkerSlot& slot, const Run& run, int64_t now) const {
  const bool told = slot.no_time_us != 0 && now - slot.no_time_us < kNoTimeMicros;
  return told || TooLate(slot, run, now);
}

}  // namespace evald
