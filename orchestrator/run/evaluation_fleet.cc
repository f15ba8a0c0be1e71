// The fleet's side of a run: the fleet looks at the run, asks it for leases, and tells it news.
#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/fail_point.h"
#include "base/log.h"
#include "orchestrator/run/evaluation.h"
#include "orchestrator/run/wire_id.h"
#include "orchestrator/schedule/placement.h"

namespace evald {
namespace {

// What an engine says of itself and decides its answers.
Json Identity(Json engine) {
  for (const char* key :
       {"concurrency", "device", "device_id", "devices", "driver", "follows", "refused"}) {
    engine.erase(key);
  }
  return engine;
}

}  // namespace

// ---- the fleet looks

RunView Evaluation::View(int64_t now) const {
  RunView view;
  view.number = number_;
  view.profile = profile_;
  view.native = config_.engine.name == "native";
  if (!engine_info_.is_null()) view.engine = FactsOf(engine_info_);
  view.load = load().fingerprint;
  view.fingerprint = fingerprint_;
  view.checkpoint_bytes = staged_ ? static_cast<double>(staged_->report().bytes) : 0;
  if (followable()) view.followable = followable_.times;
  view.planned = planned_;
  view.wants_workers = wants_workers();
  view.wants_more_workers = wants_more_workers(now);
  view.wants_scorers = wants_scorers();
  view.needs_workers = needs_workers();
  if (planned_) view.open_s = machine_.open_s();
  view.max_attempts = config_.workers.max_attempts;
  view.ending = ending_;
  view.doubted = doubts_.hosts();
  return view;
}

WorkerProfile Evaluation::profile() const {
  return {config_.engine.name, config_.engine.settings, config_.workers.threads, config_.seed,
          config_.roots.folders()};
}

protocol::Load Evaluation::load() const {
  if (staged_) return {staged_->directory().string(), fingerprint_};
  // A server that runs already has the weights; its worker may need the tokenizer beside them.
  if (config_.engine.name == "openai" && !config_.checkpoint.empty()) {
    return {config_.checkpoint.string(), kUnstagedLoad + config_.checkpoint.string()};
  }
  return {"", ""};
}

bool Evaluation::followable() const {
  const bool staging = followable_.times > 0 && !staging_done_;
  return staging && !ending_ && !draining_ && !paused_;
}

// A worker that has the checkpoint would be of use.
bool Evaluation::wants_workers() const {
  if (ending_ || draining_ || paused_ || !staging_done_) return false;
  return planned_ ? machine_.has_trials() && !congested() : engine_info_.is_null();
}

// A worker that has to load the checkpoint first would be of use too: others have much that they
// have not begun.
bool Evaluation::wants_more_workers(int64_t now) const {
  if (ending_ || draining_ || paused_ || !planned_ || congested()) return false;
  return machine_.waiting_s(now) > kWorthALoadSeconds;
}

// Something is left that only a worker can do, whether one is at it or not.
bool Evaluation::needs_workers() const {
  if (ending_ || draining_ || paused_ || !staging_done_) return false;
  return planned_ ? !machine_.trials_idle() : engine_info_.is_null();
}

bool Evaluation::wants_scorers() const {
  return planned_ && !ending_ && machine_.jobs().queued() > 0;
}

std::vector<std::string> Evaluation::Silent(int64_t now) const {
  std::vector<std::string> silent = machine_.SilentWorkers(now);
  for (std::string& scorer : machine_.SilentScorers(now)) silent.push_back(std::move(scorer));
  return silent;
}

// ---- the fleet asks

std::optional<protocol::Lease> Evaluation::LeaseTrial(const std::string& worker,
                                                      const Json& engine) {
  if (!planned_ || !wants_workers()) return std::nullopt;
  const auto lease = machine_.LeaseTrial(worker, MonotonicMicros());
  if (!lease) return std::nullopt;
  return Granted(*lease, worker, engine);
}

Evaluation::Relief Evaluation::Relieve(const std::string& worker, const Json& engine) {
  Relief relief;
  if (!planned_ || ending_ || draining_ || paused_) return relief;
  const int64_t now = MonotonicMicros();
  for (const ShortenOrder& order : machine_.Relieve(worker, now)) {
    relief.shorten.push_back({order.worker,
                              {WireId(number_, order.trial), order.attempt,
                               machine_.tasks()[order.task].name, order.first, order.end}});
  }
  if (!relief.shorten.empty() || congested()) return relief;
  const auto lease = machine_.LeaseCopy(worker, now);
  if (!lease) return relief;
  log::Info("trial {} repeats for {} what another worker is late with", lease->trial, worker);
  relief.copy = Granted(*lease, worker, engine);
  return relief;
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
                         Absolute(slice.file),
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
    const std::string& scorer, const Json& isolation,
    const std::function<bool(const std::string& worker)>& made_by) {
  if (!wants_scorers()) return std::nullopt;
  std::function<bool(const std::string&)> fits;
  if (made_by) {
    fits = [&](const std::string& generations) {
      const auto maker = makers_.find(generations);
      return maker != makers_.end() && made_by(maker->second);
    };
  }
  const auto job = machine_.LeaseJob(scorer, MonotonicMicros(), fits);
  if (!job) return std::nullopt;
  isolation_of_[scorer] = isolation;
  FailPoint("run.job_given");
  const SuiteTask& task = suite_->tasks[job->task];
  return protocol::Job{WireId(number_, job->job),
                       task.definition.name,
                       task.prepared.string(),
                       job->documents.first,
                       job->documents.end,
                       Absolute(job->generations),
                       HashOf(*job),
                       Absolute(job->file),
                       id(),
                       job->job_attempt};
}

const std::string& Evaluation::HashOf(const MetricJob& job) const {
  const auto& files = record_.generated.at(machine_.tasks()[job.task].name);
  const auto file = files.find(job.documents.first);
  if (file == files.end() || record_.generations[file->second].path != job.generations) {
    throw Error(ErrorKind::kInternal,
                fmt::format("{}: to be scored, but not committed", job.generations));
  }
  return record_.generations[file->second].hash;
}

std::vector<std::pair<std::string, HeldTrial>> Evaluation::TakeWithdrawn() {
  std::vector<std::pair<std::string, HeldTrial>> withdrawn;
  for (const WithdrawOrder& order : machine_.TakeWithdrawn()) {
    log::Info("trial {} of {} is withdrawn: another worker has committed it", order.trial,
              order.worker);
    withdrawn.push_back({order.worker, {number_, order.trial, order.attempt}});
  }
  return withdrawn;
}

// ---- the fleet tells

void Evaluation::AddRow(const std::string& process, const std::string& title, bool is_device) {
  if (!ending_taken_) timeline_.AddRow(process, title, is_device);
}

void Evaluation::Alive(const std::string& process, int64_t now) {
  machine_.WorkerHeard(process, now);
  machine_.ScorerHeard(process, now);
}

void Evaluation::Loaded(const std::string& worker, const protocol::Loaded& loaded) {
  if (ending_) return;
  if (loaded.report.is_object() &&
      loaded.report.contains("gb_per_s")) {  // it pulled, perhaps between two heartbeats
    const auto bytes = loaded.report.value("bytes", int64_t{0});
    Pulled(worker, bytes, bytes);
  }
  Json engine = loaded.engine;
  const Json scoring = loaded.report.value("scoring", Json());  // of an engine that tests itself
  if (scoring.is_object() && !scoring.value("offered", true))
    engine["refused"] = scoring.value("reason", "");
  if (!engine_info_.is_null()) return;
  const Json before = json_.record().value("engine", Json());
  if (!before.is_null() && Identity(before) != Identity(engine)) {
    const HostDoubts::Refusal refusal{
        "engine", ErrorKind::kUsage,
        fmt::format("{}: this run was begun with another engine: {} then, {} on worker {} now; "
                    "start a new run",
                    path_.string(), Identity(before).dump(), Identity(engine).dump(), worker)};
    if (Believed(worker, refusal)) CarryOut(refusal);
    return;
  }
  engine_info_ = std::move(engine);
  engine_by_ = worker;
  Record({{"engine", engine_info_}}, [] {});
  MaybePlan();
}

// Results name every GPU that computed for the run, also those of a life before.
void Evaluation::NoteDevice(const Json& engine) {
  const std::string device = engine.value("device_id", "");
  if (device.empty()) return;
  Json devices = json_.record().value("devices", Json::object());
  const Json about = {{"kind", engine.value("device", "")}, {"driver", engine.value("driver", "")}};
  if (devices.contains(device) && devices[device] == about) return;
  devices[device] = about;
  Note("devices", std::move(devices));
}

// For people: a run does not fail over it.
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
  const HostDoubts::Refusal refusal{"load", ErrorKind::kInput,
                                    fmt::format("worker {}: {}", refused.worker, refused.why)};
  if (!ending_ && Believed(refused.worker, refusal)) CarryOut(refusal);
}

void Evaluation::On(const order::TellVain& vain) {
  const char* what = fingerprint_.empty() ? "the engine" : "the checkpoint";
  Fail(ErrorKind::kInfrastructure,
       fmt::format("no worker survives loading {}: {}", what, vain.why));
}

void Evaluation::On(const order::TellWorkerLost& lost) {
  pulls_.erase(lost.worker);
  machine_.WorkerLost(lost.worker, lost.why, lost.at_fault);
  CheckEnd();
}

void Evaluation::On(const order::TellScorerLost& lost) {
  machine_.ScorerLost(lost.scorer, lost.why);
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

void Evaluation::On(const order::TellNoScorers& none) {
  if (ending_ || !planned_ || machine_.jobs().idle()) return;
  Fail(ErrorKind::kInfrastructure, fmt::format("no metric process is left: {}", none.why));
}

// What the doubted hosts said is believed.
void Evaluation::On(const order::TellNobodyElse&) {
  if (ending_ || doubts_.hosts().empty()) return;
  log::Warn("run {}: no other host is left for it: what the others refused is believed", id_);
  for (const HostDoubts::Refusal& refusal : doubts_.Settle()) CarryOut(refusal);
  CheckEnd();
}

void Evaluation::On(const order::TellWaiting& waiting) {
  if (waiting.what == waiting_) return;
  waiting_ = waiting.what;
  if (waiting_.empty()) {
    log::Info("run {} waits no longer", id());
  } else {
    log::Warn("run {} waits for {}", id(), waiting_);
  }
}

}  // namespace evald
