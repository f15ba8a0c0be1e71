// The fleet's side of a run: the fleet looks at the run, asks it for leases, and tells it news.
#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/fail_point.h"
#include "base/log.h"
#include "engines/engines.h"
#include "orchestrator/config/judge_section.h"
#include "orchestrator/run/evaluation_scheduling.h"
#include "orchestrator/run/wire_id.h"
#include "orchestrator/schedule/placement.h"

namespace evald {

// ---- the fleet looks

RunView Evaluation::View(int64_t now) const {
  RunView view;
  view.number = number_;
  view.profile = profile_;
  view.uses_devices = config_.engine.kind().gpus != GpuUse::kNone;
  if (!engine_info_.is_null()) view.engine = FactsOf(engine_info_);
  view.load = load().fingerprint;
  view.fingerprint = fingerprint_;
  view.checkpoint_bytes = staged_ ? static_cast<double>(staged_->report().bytes) : 0;
  if (followable()) view.followable = followable_.times;
  view.planned = planned_;
  view.wants_workers = wants_workers();
  view.wants_more_workers = wants_more_workers(now);
  view.wants_metric_processes = wants_metric_processes();
  view.needs_workers = needs_workers();
  if (planned_) view.open_s = machine_.open_s();
  view.max_attempts = config_.workers.max_attempts;
  view.ending = ending_;
  view.doubted = doubts_.hosts();
  view.doubted_owners = doubts_.owners();
  return view;
}

std::optional<double> Evaluation::shortest_s() const {
  return planned_ ? machine_.shortest_s() : std::nullopt;
}

WorkerProfile Evaluation::profile() const {
  return {config_.engine.name, config_.engine.settings, config_.workers.threads, config_.seed,
          config_.roots.folders()};
}

protocol::Load Evaluation::load() const {
  if (staged_) return {staged_->directory().string(), fingerprint_};
  const std::string checkpoint = config_.checkpoint.string();
  // A running server already has the weights; its worker may need the tokenizer beside them. Each
  // run looks anew at a server that is given: its weights may have been exchanged since the last.
  if (!GivenServer(config_.engine.kind(), config_.engine.settings).empty())
    return {checkpoint, fmt::format("{}{}#{}", kUnstagedLoad, checkpoint, id_)};
  if (config_.engine.kind().server != ServerUse::kNone && !checkpoint.empty())
    return {checkpoint, kUnstagedLoad + checkpoint};
  return {"", ""};
}

bool Evaluation::followable() const {
  const bool staging = followable_.times > 0 && !staging_done_;
  return staging && !ending_ && !draining_ && !paused_;
}

// Whether a worker that has the checkpoint would be of use.
bool Evaluation::wants_workers() const {
  if (ending_ || draining_ || paused_ || !staging_done_) return false;
  return planned_ ? machine_.has_trials() && !congested() : engine_info_.is_null();
}

// Whether a worker that must load the checkpoint first would be of use: other workers have much
// work that is not begun.
bool Evaluation::wants_more_workers(int64_t now) const {
  if (ending_ || draining_ || paused_ || !planned_ || congested()) return false;
  return machine_.waiting_s(now) > kWorthALoadSeconds;
}

// Whether work is left that only a worker can do, even if a worker is at it.
bool Evaluation::needs_workers() const {
  if (ending_ || draining_ || paused_ || !staging_done_) return false;
  return planned_ ? !machine_.trials_idle() : engine_info_.is_null();
}

bool Evaluation::wants_metric_processes() const {
  return planned_ && !ending_ && machine_.jobs().queued() > 0;
}

std::vector<std::string> Evaluation::Silent(int64_t now) const {
  std::vector<std::string> silent;
  for (const Holder worker : machine_.SilentWorkers(now))
    silent.push_back(processes_.NameOf(worker));
  for (const Holder metric_process : machine_.SilentMetricProcesses(now))
    silent.push_back(processes_.NameOf(metric_process));
  return silent;
}

// ---- the fleet asks

std::optional<protocol::Lease> Evaluation::LeaseTrial(const std::string& worker, const Json& engine,
                                                      int64_t until_us) {
  if (!planned_ || !wants_workers()) return std::nullopt;
  const auto lease = machine_.LeaseTrial(processes_.Of(worker), MonotonicMicros(), until_us);
  if (!lease) return std::nullopt;
  return Granted(*lease, worker, engine);
}

protocol::Shorten Evaluation::MessageOf(const ShortenOrder& order) const {
  return {WireId(number_, order.trial), order.attempt, machine_.tasks()[order.task].name,
          order.first, order.end};
}

Evaluation::StealOutcome Evaluation::Steal(const std::string& worker, const Json& engine,
                                           int64_t until_us) {
  StealOutcome outcome;
  if (!planned_ || ending_ || draining_ || paused_) return outcome;
  const int64_t now = MonotonicMicros();
  for (const ShortenOrder& order : machine_.Steal(processes_.Of(worker), now, until_us))
    outcome.shorten.push_back({processes_.NameOf(order.worker), MessageOf(order)});
  if (!outcome.shorten.empty() || congested()) return outcome;
  if (const auto left = machine_.LeaseLeft(processes_.Of(worker), now, until_us)) {
    outcome.lease = Granted(*left, worker, engine);
    return outcome;
  }
  const auto lease = machine_.LeaseBackup(processes_.Of(worker), now, until_us);
  if (!lease) return outcome;
  log::Info("trial {} is a backup for {} of a trial that another worker is late with", lease->trial,
            worker);
  outcome.lease = Granted(*lease, worker, engine);
  return outcome;
}

protocol::Lease Evaluation::Granted(const TrialLease& lease, const std::string& worker,
                                    const Json& engine) {
  NoteDevice(engine);
  device_of_[worker] = engine.value("device", "");
  protocol::Lease message{
      WireId(number_, lease.trial), lease.attempt, {}, load().fingerprint, id()};
  for (const LeasedSlice& slice : lease.slices) {
    const SuiteTask& task = suite_->tasks[slice.task];
    protocol::Slice sent{task.definition.name,
                         task.prepared.string(),
                         task.tokenizer_key,
                         slice.documents.first,
                         slice.documents.end,
                         Absolute(machine_.GenerationsFile(slice.task, slice.documents.first,
                                                           lease.trial, lease.attempt)),
                         {}};
    for (const std::string& file : slice.salvage) sent.salvage.push_back(Absolute(file));
    message.slices.push_back(std::move(sent));
  }
  FailPoint("run.lease_given");
  support_.database->Post([run = id(), worker, trial = lease.trial, attempt = lease.attempt](
                              RunStore& store) { store.RecordLease(run, trial, attempt, worker); });
  return message;
}

std::optional<protocol::Job> Evaluation::LeaseJob(
    const std::string& metric_process, const Json& isolation,
    const std::function<bool(const std::string& worker)>& made_by, int64_t until_us) {
  if (!wants_metric_processes()) return std::nullopt;
  std::function<bool(const std::string&)> fits;
  if (made_by) {
    fits = [&](const std::string& generations) {
      const auto maker = makers_.find(generations);
      return maker != makers_.end() && made_by(maker->second);
    };
  }
  const auto job =
      machine_.LeaseJob(processes_.Of(metric_process), MonotonicMicros(), fits, until_us);
  if (!job) return std::nullopt;
  isolation_of_[metric_process] = isolation;
  FailPoint("run.job_given");
  const SuiteTask& task = suite_->tasks[job->task];
  return protocol::Job{WireId(number_, job->job),
                       task.definition.name,
                       task.prepared.string(),
                       job->documents.first,
                       job->documents.end,
                       Absolute(job->generations),
                       HashOf(*job),
                       Absolute(machine_.ScoresFile(*job)),
                       id(),
                       job->job_attempt,
                       UsesJudge(task.definition)
                           ? JudgeJsonFor(config_.judge, config_.tasks, task.request)
                           : Json()};
}

const std::string& Evaluation::HashOf(const MetricJob& job) const {
  const auto& files = record_.generated.at(machine_.tasks()[job.task].name);
  const auto file = files.find(job.documents.first);
  if (file == files.end() || record_.generations[file->second].path != job.generations) {
    throw Error(ErrorKind::kInternal,
                fmt::format("{}: is to be scored, but was not committed", job.generations));
  }
  return record_.generations[file->second].hash;
}

std::vector<std::pair<std::string, HeldTrial>> Evaluation::TakeRevoked() {
  std::vector<std::pair<std::string, HeldTrial>> revoked = std::exchange(dropped_leases_, {});
  for (const RevokeOrder& order : machine_.TakeRevoked()) {
    const std::string& worker = processes_.NameOf(order.worker);
    log::Info("trial {} of {} is revoked: another worker has committed it", order.trial, worker);
    revoked.push_back({worker, {number_, order.trial, order.attempt}});
  }
  return revoked;
}

std::vector<protocol::Shorten> Evaluation::HandBack(const std::string& worker,
                                                    const HeldTrial& held) {
  std::vector<protocol::Shorten> messages;
  for (const ShortenOrder& order :
       machine_.HandBack(processes_.Of(worker), held.trial, held.attempt, MonotonicMicros()))
    messages.push_back(MessageOf(order));
  if (!messages.empty())
    log::Info("trial {} of {} is handed back: the worker's host ends", held.trial, worker);
  return messages;
}

void Evaluation::TakeBack(const std::string& worker, const HeldTrial& held,
                          const std::string& why) {
  if (!machine_.TrialGivenBack(processes_.Of(worker), held.trial, held.attempt)) return;
  log::Info("trial {} is taken back from {}: {}", held.trial, worker, why);
  dropped_leases_.push_back({worker, held});
  CheckEnd();
}

void Evaluation::TakeStalled(const std::string& worker) {
  const Holder holder = processes_.Of(worker);
  const std::vector<Grant> stalled = machine_.TakeStalled(holder, MonotonicMicros());
  if (stalled.empty()) return;
  const Witness of = WitnessOf(worker);
  for (const Grant& grant : stalled) {
    log::Warn(
        "run {}: trial {} is taken back from {}: nothing of it has come for too long; host '{}' "
        "gets nothing more of the run while another host is there",
        id_, grant.item, worker, of.host);
    dropped_leases_.push_back({worker, {number_, grant.item, grant.attempt}});
  }
  doubts_.Stalled(of);
  CheckEnd();
}

void Evaluation::TakeJobsBack(const std::string& metric_process, bool distrust) {
  const Holder holder = processes_.Of(metric_process);
  for (const Grant& grant : machine_.jobs().HeldBy(holder)) {
    machine_.JobGivenBack(holder, grant.item, grant.attempt);
    log::Warn("run {}: job {} is taken back from {}", id_, grant.item, metric_process);
  }
  if (distrust) doubts_.Stalled(WitnessOf(metric_process));
}

// ---- the fleet tells

void Evaluation::AddRow(const std::string& process, const std::string& title, bool is_device) {
  if (!ending_taken_) timeline_.AddRow(process, title, is_device);
}

void Evaluation::Alive(const std::string& process, int64_t now) {
  const Holder number = processes_.Of(process);
  machine_.WorkerHeard(number, now);
  machine_.MetricProcessHeard(number, now);
}

// Notes a member of run.json for people. The run does not fail if it cannot be written.
void Evaluation::Note(const char* member, Json value) {
  if (ending_taken_) return;
  json_.Update({{member, std::move(value)}}, [](const std::optional<Error>& error) {
    if (error) log::Warn("{}", error->what());
  });
}

void Evaluation::Tell(const FleetNews& news) {
  std::visit([this](const auto& of) { On(of); }, news);
}

void Evaluation::On(const order::TellRefused& refused) {
  const HostDoubts::Refusal refusal{
      "load", refused.lasting ? ErrorKind::kInfrastructure : ErrorKind::kInput,
      fmt::format("worker {}: {}", refused.worker, InUsersWords(refused.why))};
  if (!ending_ && Believed(refused.worker, refusal)) CarryOut(refusal);
}

void Evaluation::On(const order::TellVain& vain) {
  const char* what = fingerprint_.empty() ? "the engine" : "the checkpoint";
  Fail(ErrorKind::kInfrastructure,
       fmt::format("no worker survives loading {}: {}", what, InUsersWords(vain.why)));
}

void Evaluation::On(const order::TellWorkerLost& lost) {
  pulls_.erase(lost.worker);
  machine_.WorkerLost(processes_.Of(lost.worker), lost.why, lost.suspect);
  CheckEnd();
}

void Evaluation::On(const order::TellMetricProcessLost& lost) {
  machine_.MetricProcessLost(processes_.Of(lost.metric_process), lost.why, lost.suspect);
  CheckEnd();
}

void Evaluation::On(const order::TellSetAside& aside) {
  if (ending_) return;
  Json devices = json_.record().value("set_aside", Json::object());
  devices[aside.device] = aside.why;
  Note("set_aside", std::move(devices));
}

void Evaluation::On(const order::TellDevices& devices) {
  devices_ = std::max(1, devices.count);
  machine_.SetDevices(devices_);
}

void Evaluation::On(const order::TellNoWorkers& none) {
  if (ending_ || draining_) return;
  if (planned_ && machine_.trials_idle()) return;
  Fail(ErrorKind::kInfrastructure,
       fmt::format("{}: {}", planned_ ? "no worker is left" : "no worker could be started",
                   none.why));
}

void Evaluation::On(const order::TellNoMetricProcesses& none) {
  if (ending_ || !planned_ || machine_.jobs().idle()) return;
  Fail(ErrorKind::kInfrastructure, fmt::format("no metric process is left: {}", none.why));
}

// Only doubted hosts are left, so their refusals are believed.
void Evaluation::On(const order::TellNobodyElse&) {
  if (ending_ || !doubts_.any()) return;
  log::Warn("run {}: no other host is left for it: the refusals of the doubted ones are believed",
            id_);
  for (const HostDoubts::Refusal& refusal : doubts_.Settle()) CarryOut(refusal);
  CheckEnd();
}

void Evaluation::On(const order::TellWaiting& waiting) {
  if (!waiting.no_device) {
    no_device_us_ = 0;
  } else if (no_device_us_ == 0) {
    no_device_us_ = MonotonicMicros();
  }
  if (waiting.what == waiting_) return;
  waiting_ = waiting.what;
  if (waiting_.empty()) {
    log::Info("run {} waits no longer", id());
  } else {
    log::Warn("run {} waits for {}", id(), waiting_);
  }
}

}  // namespace evald
