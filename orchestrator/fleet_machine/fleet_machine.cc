// Runs, their answers, time, and staged checkpoints.
#include "orchestrator/fleet_machine/fleet_machine.h"

#include <cmath>
#include <tuple>

#include "evald/error.h"

namespace evald {
namespace {

constexpr double kUseHalfLifeSeconds = 600;  // a user's past use counts half after this

bool Wants(const RunView& view) { return view.wants_workers || view.wants_more_workers; }

// The parts of a view that decide which workers a run can use, except for how much work is left.
auto Facts(const RunView& view) {
  return std::tie(view.priority, view.user, view.profile, view.uses_devices, view.engine, view.load,
                  view.fingerprint, view.checkpoint_bytes, view.followable, view.planned,
                  view.wants_workers, view.wants_more_workers, view.max_attempts, view.ending,
                  view.doubted, view.doubted_owners);
}

// Whether the change may give work to a worker that had none.
bool MayServeMore(const RunView& before, const RunView& now) {
  if (Facts(before) == Facts(now)) return false;
  return Wants(now) || before.followable != now.followable || before.fingerprint != now.fingerprint;
}

}  // namespace

FleetMachine::FleetMachine(Options options) : options_(options), devices_(options_.device_limits) {}

FleetMachine::Run* FleetMachine::Find(int64_t run) {
  const auto found = runs_.find(run);
  return found == runs_.end() ? nullptr : &found->second;
}

FleetMachine::Place FleetMachine::PlaceOf(const std::string& id) const {
  const auto found = places_.find(id);
  if (found == places_.end()) throw Error(ErrorKind::kInternal, "the fleet has no process " + id);
  return found->second;
}

const WorkerSlot* FleetMachine::FindWorker(const std::string& id) const {
  const auto found = places_.find(id);
  return found == places_.end() || found->second.metric_process ? nullptr
                                                                : &workers_[found->second.index];
}

void FleetMachine::Ignore(const std::string& id, const char* event, const char* state) {
  Push(order::Ignored{id, event, state});
}

// ---- runs

bool FleetMachine::Doubts(const RunView& run, const std::string& host) const {
  if (run.doubted.count(host) > 0) return true;
  return !run.doubted_owners.empty() && !hosts_.at(host).spec.trusted &&
         run.doubted_owners.count(hosts_.at(host).spec.owner) > 0;
}

void FleetMachine::RunChanged(const RunView& view, int64_t now) {
  const auto [found, fresh] = runs_.try_emplace(view.number);
  Run& run = found->second;
  const bool same = !fresh && run.view == view;
  if (same && run.nothing_for.empty() && run.no_job_for.empty()) return;
  if (run.ended && !view.ending) return;  // the run has not yet heard that it ends
  const bool serves_more = fresh || MayServeMore(run.view, view);
  const bool more_open = view.open_s > run.view.open_s;
  const bool scores_more =
      view.wants_metric_processes &&
      (!run.view.wants_metric_processes || !run.no_job_for.empty() ||
       run.view.doubted != view.doubted || run.view.doubted_owners != view.doubted_owners);
  const auto needs = [](const RunView& of) { return std::tie(of.load, of.profile, of.ending); };
  const bool other_load = fresh || needs(run.view) != needs(view);
  if (!same) TakeOver(&run, view, fresh);
  if (other_load) WatchLoads();
  for (const size_t index : std::exchange(run.nothing_for, {})) {
    if (free_.has(index)) ready_.Insert(index);
  }
  run.no_job_for.clear();
  if (scores_more) WakeMetricProcesses();
  if (fresh) {
    // Earlier failures may not recur with this run
    for (WorkerSlot& slot : workers_) slot.spent.clear();
    for (const auto& [name, host] : hosts_) StartMissing(name, now);
  }
  if (serves_more) {
    WakeWorkers();
  } else if (more_open) {
    ready_.InsertAll(declined_);
  }
  Serve(now);
}

void FleetMachine::TakeOver(Run* run, const RunView& view, bool fresh) {
  ++revision_;
  if (fresh || run->view.fingerprint != view.fingerprint) {
    if (!fresh) CountFingerprint(run->view.fingerprint, -1);
    CountFingerprint(view.fingerprint, 1);
  }
  run->view = view;
  if (Wants(view)) {
    wanting_.insert(view.number);
  } else {
    wanting_.erase(view.number);
  }
}

// The run is told that it ends. Until it says so itself, it gets nothing more.
void FleetMachine::EndRun(Run* run) {
  ++revision_;
  run->ended = run->view.ending = true;
  run->view.wants_workers = run->view.wants_more_workers = run->view.wants_metric_processes =
      run->view.needs_workers = false;
  run->view.followable.reset();
  wanting_.erase(run->view.number);
  WatchLoads();
}

void FleetMachine::CountFingerprint(const std::string& fingerprint, int by) {
  int& count = fingerprints_[fingerprint];
  count += by;
  if (count == 0) fingerprints_.erase(fingerprint);
}

void FleetMachine::RunRemoved(int64_t number, bool leaves_staged, int64_t now) {
  Run* run = Find(number);
  if (run == nullptr) return;
  if (leaves_staged) kept_.insert(run->view.fingerprint);
  ForgetRun(number, now);
  ReleaseStaged();
  WakeWorkers();
  WakeMetricProcesses();
  Serve(now);
}

void FleetMachine::ForgetRun(int64_t number, int64_t now) {
  ++revision_;
  for (size_t i = 0; i < workers_.size(); ++i) {
    WorkerSlot& slot = workers_[i];
    for (const HeldTrial& held : slot.held.TakeOf(number)) Push(order::Revoke{slot.id, held});
    if (slot.asked == number) slot.asked = 0;
    Update(i);
  }
  for (size_t i = 0; i < metric_processes_.size(); ++i) {
    MetricProcessSlot& slot = metric_processes_[i];
    if (slot.asked == number) slot.asked = 0;
    if (slot.job_of == number) {
      slot.job_of = MetricProcessSlot::kJobOfNobody;
      slot.job_us = now;
    }
    UpdateMetricProcess(i);
  }
  CountFingerprint(runs_.at(number).view.fingerprint, -1);
  for (auto& [name, host] : hosts_) host.unfit.erase(number);
  wanting_.erase(number);
  scoring_.Forget(number);
  runs_.erase(number);
  WatchLoads();
}

// ---- answers

void FleetMachine::Answered(const RunAnswer& answer, int64_t now) {
  if (const auto* leased = std::get_if<answer::Leased>(&answer)) {
    OnLeased(*leased, now);
  } else if (const auto* nothing = std::get_if<answer::NothingToLease>(&answer)) {
    OnNothing(*nothing, now);
  } else if (const auto* stolen = std::get_if<answer::Stolen>(&answer)) {
    const size_t index = PlaceOf(stolen->worker).index;
    if (workers_[index].asked == stolen->run) workers_[index].asked = 0;
    Update(index);
  } else if (const auto* job = std::get_if<answer::JobLeased>(&answer)) {
    OnJobLeased(*job, now);
  } else if (const auto* revoked = std::get_if<answer::Revoked>(&answer)) {
    OnRevoked(*revoked);
  }
  Serve(now);
}

void FleetMachine::OnLeased(const answer::Leased& leased, int64_t now) {
  const size_t index = PlaceOf(leased.worker).index;
  WorkerSlot& slot = workers_[index];
  if (slot.asked != leased.held.run || slot.state() != WorkerState::kReady || slot.wants <= 0) {
    throw Error(ErrorKind::kInternal, slot.id + " was given a trial that was not asked for");
  }
  ++revision_;
  slot.asked = 0;
  slot.no_time_us = 0;
  slot.run = leased.held.run;
  if (slot.held.empty()) slot.moved_us = now;
  slot.held.insert(leased.held);
  --slot.wants;
  Update(index);
}

void FleetMachine::OnJobLeased(const answer::JobLeased& leased, int64_t now) {
  const size_t index = PlaceOf(leased.metric_process).index;
  MetricProcessSlot& slot = metric_processes_[index];
  if (slot.asked != leased.run)
    throw Error(ErrorKind::kInternal, slot.id + " was given a job that was not asked for");
  slot.asked = 0;
  slot.asked_own = false;
  --slot.wants;
  const RunView& view = runs_.at(leased.run).view;
  slot.job_of = leased.run;
  slot.job_us = now;
  scoring_.Begin(slot.id, {leased.run, view.priority, view.user}, now);
  UpdateMetricProcess(index);
}

void FleetMachine::OnRevoked(const answer::Revoked& revoked) {
  const size_t index = PlaceOf(revoked.worker).index;
  WorkerSlot& slot = workers_[index];
  if (!slot.held.erase(revoked.held)) return Ignore(slot.id, "revoked", Name(slot.state()));
  ++revision_;
  Push(order::Revoke{slot.id, revoked.held});
  Update(index);
}

// The run had nothing. It is not asked again for this process until it changes; the next best run
// is asked.
void FleetMachine::OnNothing(const answer::NothingToLease& nothing, int64_t now) {
  const Place place = PlaceOf(nothing.id);
  Run* run = Find(nothing.run);
  if (place.metric_process) {
    MetricProcessSlot& slot = metric_processes_[place.index];
    if (slot.asked != nothing.run) return;  // the run was removed meanwhile
    slot.asked = 0;
    if (!slot.asked_own && run != nullptr) run->no_job_for.insert(place.index);
    return UpdateMetricProcess(place.index);
  }
  WorkerSlot& slot = workers_[place.index];
  if (slot.asked != nothing.run) return;
  slot.asked = 0;
  if (slot.asked_to_steal) return AskToSteal(place.index, nothing.run);
  if (run != nullptr) run->nothing_for.insert(place.index);
  if (run != nullptr && run->view.wants_workers && UntilOf(slot.host) != 0) slot.no_time_us = now;
  Update(place.index);
}

// ---- time

std::optional<int64_t> FleetMachine::next_at() const {
  std::optional<int64_t> next = next_end_us_;
  if (!due_.empty() && (!next || std::get<0>(*due_.begin()) < *next))
    next = std::get<0>(*due_.begin());
  return next;
}

void FleetMachine::Tick(int64_t now) {
  if (closed_) return;
  if (use_decayed_us_ == 0) use_decayed_us_ = now;
  const double decay =
      std::exp2(-static_cast<double>(now - use_decayed_us_) / 1e6 / kUseHalfLifeSeconds);
  for (auto& [user, seconds] : use_) seconds *= decay;
  use_decayed_us_ = now;
  while (!due_.empty() && std::get<0>(*due_.begin()) <= now) {
    const auto [at, metric_process, index] = *due_.begin();
    OnDue({metric_process, index}, now);
  }
  WatchEnds(now);
  DoubtClaims(now);
  TakeDevicesBack(now);
  TakeStalledBack(now);
  TakeJobsBack(now);
  // The devices of other hosts may have other work now
  ready_.InsertAll(declined_);
  Serve(now);
  TellExhausted();
  TellVain();
  TellNobodyElse(now);
  TellWaiting(now);
}

void FleetMachine::StopAll() {
  closed_ = true;
  ready_.Clear();
  ready_metric_processes_.Clear();
  Push(order::StopHosts{});
}

}  // namespace evald
