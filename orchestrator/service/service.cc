#include "orchestrator/service/service.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>

#include "base/clock.h"
#include "base/fail_point.h"
#include "base/log.h"
#include "base/own_folder.h"
#include "base/text.h"
#include "metrics/sandbox_options.h"
#include "orchestrator/config/judge_section.h"
#include "orchestrator/run/run_ending.h"
#include "orchestrator/service/process_id.h"
#include "orchestrator/service/submission.h"
#include "orchestrator/staging/stager.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr std::chrono::milliseconds kServiceTick{200};
// A run for which no device has been there for so long takes no place from others.
constexpr int64_t kStrandedMicros = 60'000'000;
// A service that drains says so often which runs it waits for.
constexpr int64_t kDrainingMicros = 5'000'000;
// Time in which workers' last messages about an ended run still reach its timeline.
constexpr std::chrono::milliseconds kLastWords{200};

UniqueFd LockState(const fs::path& state_dir) {
  MakePrivateFolder(state_dir, "set state_dir to a folder of your own");
  const fs::path file = state_dir / "service.lock";
  UniqueFd lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock) ThrowErrno(file, "open", errno);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: another evald serves from this folder", state_dir.string()),
                "stop it, or choose another state_dir");
  }
  return lock;
}

FleetOptions FleetOptionsOf(const ServiceOptions& options) {
  FleetOptions fleet;
  fleet.log_dir = options.state_dir / "logs";
  fleet.log_level = options.log_level;
  fleet.hosts_may_come = options.launches;
  MakeDirectories(fleet.log_dir);
  return fleet;
}

LocalAgent LocalAgentOf(const ServiceOptions& options) {
  return {options.binaries / "evald",
          {"agent",
           "--socket",
           (options.state_dir / kAgentSocket).string(),
           "--root",
           options.state_dir.string(),
           "--staging-root",
           options.staging_root.string(),
           "--devices",
           options.devices.empty() ? "none" : Join(options.devices, ","),
           "--metric-processes",
           std::to_string(options.metric_processes),
           "--sandbox",
           ToJson(options.sandbox).dump(),
           "--task-code",
           ToJson(options.task_code).dump(),
           "--judge-cache",
           (options.cache_dir / kJudgeCache).string(),
           "--linger",
           fmt::format("{}", options.linger_s),
           "--log-level",
           options.log_level},
          options.state_dir};
}

}  // namespace

Service::Service(ServiceOptions options)
    : options_(std::move(options)), lock_(LockState(options_.state_dir)) {
  // Runs may be for others to read. Someone who may write there could exchange a run's folder.
  MakeOwnFolder(options_.output_dir, "set output_dir to a folder of your own");
  store_ = std::make_unique<RunStore>(options_.state_dir);
  reader_ = std::make_unique<Database>(options_.state_dir / "state.db");
  if (!store_->damaged().empty()) {
    service_store::SkipEvents(store_->database(), static_cast<int64_t>(WallSeconds() * 1e3));
  }
  AdoptRuns();
  next_event_ = service_store::LastEvent(*reader_) + 1;
  const std::vector<RunRow> unfinished = service_store::Unfinished(*reader_);
  database_ = std::make_unique<DatabaseThread>(store_.get(), &loop_,
                                               [this](std::exception_ptr error) { Fail(error); });
  finisher_ = std::make_unique<TaskFinisher>(&loop_);
  files_ = std::make_unique<WorkThread>("files", &loop_, WorkThread::AtEnd::kFinish);
  looks_ = std::make_unique<WorkThread>("looks", &loop_, WorkThread::AtEnd::kDrop);
  judges_ = std::make_unique<Judging>(&loop_);
  reports_ = std::make_unique<FairThreads>("reports", &loop_, FairThreads::Limits{});
  fleet_ = std::make_unique<Fleet>(&loop_, FleetOptionsOf(options_));
  fleet_->on_change = [this](const std::string& worker) { Emit("", "worker", {{"id", worker}}); };
  fleet_->release = [this](StagedCheckpoint staged) {  // dropping gigabytes takes time
    auto held = std::make_shared<StagedCheckpoint>(std::move(staged));
    ++releases_;
    looks_->Post([held = std::move(held)] { held->Release(); });
  };
  hub_ = std::make_unique<AgentHub>(&loop_, fleet_.get(), LocalAgentOf(options_));
  finisher_->SetSettled(
      [files = hub_->shared_files()](const fs::path& file) { files->AwaitNamed(file); });
  hub_->Guard(&job_tokens_);
  for (const RunRow& row : unfinished) TakeUp(row);
  PublishNow();
}

Service::~Service() {
  stopping_ = true;
  judging_.clear();
  reports_.reset();
  judges_.reset();  // before the members that their callbacks use
  looks_.reset();
  files_.reset();
  pools_.clear();
  database_.reset();
  hub_.reset();
  fleet_.reset();
}

void Service::Run() {
  loop_.OnSignals([this](int signal) { OnSignal(signal); });
  hub_->Start([this](const Error& why) { Fail(std::make_exception_ptr(why)); });
  Tick();
  loop_.Run();
  stopping_ = true;
  judging_.clear();
  reports_.reset();
  judges_.reset();
  looks_.reset();
  files_.reset();  // writes what was begun, and the endings that were taken
  for (auto& [number, run] : queue_.runs()) {
    if (!run.evaluation || run.evaluation->ending_taken()) continue;
    try {
      EndRun(run.evaluation->TakeEnding());  // stopped at once: the run stays to be resumed
    } catch (const std::exception& e) {
      log::Error("run {}: {}", run.id, e.what());
    }
  }
  finisher_.reset();
  database_.reset();
  if (failure_) std::rethrow_exception(failure_);
}

void Service::Fail(std::exception_ptr error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    log::Critical("{}; the service stops", e.what());
  }
  if (!failure_) failure_ = error;
  StopNow();
}

void Service::StopNow() {
  stopping_ = true;
  fleet_->StopAll([this] { loop_.Stop(); });
}

void Service::Tick() {
  fleet_->Tick();
  const int64_t now = MonotonicMicros();
  for (auto& [number, run] : queue_.runs()) {
    if (!run.evaluation || run.concluding) continue;
    if (run.state == "preparing" && run.evaluation->planned()) SetState(&run, "running");
    const int64_t no_device_us = run.evaluation->no_device_us();
    run.stranded = no_device_us != 0 && now - no_device_us > kStrandedMicros;
    if (!run.evaluation->only_aggregates())
      run.aggregates_us = 0;
    else if (run.aggregates_us == 0)
      run.aggregates_us = now;
    run.aggregating = run.aggregates_us != 0 && now - run.aggregates_us > kStrandedMicros;
    const std::shared_ptr<const Json> resource = Shown(run);
    ShownRun& shown = shown_[number];
    if (now - shown.sent_us < 1'000'000 || shown.sent == resource) continue;
    shown.sent_us = now;
    shown.sent = resource;
    Emit(run.id, "run.progress", resource->at("progress"));
  }
  LookForSpaceAgain();
  StartRuns();
  TickPools();
  PublishNow();
  if (draining_) TellDraining(now);
  loop_.After(kServiceTick, [this] { Tick(); });
}

// ---- starting

// Runs start only after the local agent is there: then the workers of an earlier life write nothing
// more, and the folders of their runs may be read.
void Service::StartRuns() {
  local_seen_ = local_seen_ || fleet_->HostState(kLocalHost) == "connected";
  if (!local_seen_) return;
  while (!draining_ && !stopping_) {
    QueuedRun* next = queue_.Next(options_.active_max);
    if (next == nullptr) return;
    if (SpaceFor(next)) {
      Start(next);
    } else if (MonotonicMicros() - looking_since_us_ < kSpaceEveryMicros) {
      return;
    } else {
      next->no_space = true;  // the file system is slow: others need not wait for it
    }
  }
}

void Service::Start(QueuedRun* run) {
  const int64_t number = run->number;
  queue_.CountPass(*run);
  run->waits_for.clear();
  run->started = WallSeconds();
  Evaluation::Hooks hooks;
  hooks.changed = [this, number] { fleet_->RunChanged(number); };
  hooks.over = [this, number] { OnOver(number); };
  hooks.witness = [this](const std::string& process) { return fleet_->WitnessOf(process); };
  hooks.event = [this, id = run->id](const std::string& type, const Json& data) {
    Emit(id, type, data);
  };
  run->evaluation = std::make_shared<Evaluation>(
      run->config, std::move(*run->directory), number, std::max(1, fleet_->device_count()),
      Evaluation::Support{&loop_, database_.get(), finisher_.get(), files_.get(), options_.binaries,
                          run->user},
      std::move(hooks));
  run->directory.reset();
  SetState(run, "preparing");
  fleet_->Add(run->evaluation, run->priority, run->user);
  FailPoint("service.run_started");
  run->evaluation->Start();
}

void Service::OnOver(int64_t number) {
  if (QueuedRun* run = queue_.Find(number)) run->yields = run->yields || LostSpace(*run);
  loop_.After(kLastWords, [this, number] { Conclude(number); });
}

void Service::Conclude(int64_t number) {
  QueuedRun* run = queue_.Find(number);
  if (run == nullptr || run->concluding || stopping_) return;
  run->concluding = true;
  auto ending = std::make_shared<RunEnding>(run->evaluation->TakeEnding());
  auto outcome = std::make_shared<RunOutcome>();
  files_->Post(
      [ending, outcome] { *outcome = EndRun(std::move(*ending)); },
      [this, number, outcome, id = run->id, path = run->path](const std::optional<Error>& error) {
        if (error) {  // for example, its folder cannot be written; other runs go on
          log::Error("run {}: {}", id, error->what());
          *outcome = {};
          outcome->directory = path;
          outcome->status = ExitStatus::kIncomplete;
          outcome->problems.emplace_back(error->what());
        }
        OnConcluded(number, std::move(*outcome));
      });
}

void Service::OnConcluded(int64_t number, RunOutcome outcome) {
  QueuedRun* run = queue_.Find(number);
  if (run == nullptr || stopping_) return;
  FailPoint("service.run_ended");
  run->ended = WallSeconds();
  // A run that did not come to its end is not judged and leaves no verdict.json.
  if (outcome.status != ExitStatus::kDone) return Close(number, std::move(outcome), std::nullopt);
  const bool yielded = std::exchange(run->yields, false);  // its work is done: it is over
  const std::string id = run->id;
  JudgeSoon(number, std::make_shared<RunOutcome>(std::move(outcome)));
  if (yielded) DoDeferred(id);
}

// Ends the run once its gates are judged.
void Service::Close(int64_t number, RunOutcome outcome, const std::optional<Judgement>& judgement) {
  QueuedRun* run = queue_.Find(number);
  if (run == nullptr || stopping_) return;
  run->outcome = std::move(outcome);
  FailPoint("service.judged");
  const bool complete = run->outcome->status == ExitStatus::kDone;
  if (judgement && judgement->has_gates() && complete) {
    run->outcome->status = judgement->status;
    run->verdict = judgement->verdict.at("status");
    if (!judgement->failure.empty())
      run->outcome->problems.push_back("gates: " + judgement->failure);
    Emit(run->id, "run.verdict",
         {{"verdict", run->verdict}, {"summary", judgement->verdict.at("summary")}});
  }
  const bool cancelled =
      !complete && (run->unjudged || (run->evaluation && run->evaluation->cancelled()));
  const bool yields = run->yields && run->outcome->status != ExitStatus::kUsage;
  const bool goes_on = !cancelled && !complete && (draining_ || yields);
  const std::string state = cancelled                                    ? "cancelled"
                            : complete                                   ? "done"
                            : goes_on                                    ? LaterState(*run)
                            : run->outcome->status == ExitStatus::kUsage ? "failed"
                                                                         : "incomplete";
  run->state = state;
  if (run->evaluation && (!goes_on || yields)) CountFinished(*run);
  if (goes_on && yields) run->outcome.reset();  // the run's resource says nothing of an end
  SetState(run, state);
  FailPoint("service.run_closed");
  fleet_->Remove(number);
  const std::string id = run->id, user = run->user;
  auto resumes = std::move(run->resumes);
  auto rest = std::make_shared<QueuedRun>(std::move(*run));
  queue_.Remove(number);
  shown_.erase(number);
  files_->Post([rest = std::move(rest)] {});  // freeing the memory of many tasks takes time, too
  if (!resumes.empty()) BeginResume(id, std::move(resumes));
  if (goes_on && !draining_) {
    QueueAgain(id);
  } else {
    DoDeferred(id);
  }
  if (state != "done" && !goes_on) ForgetUnused(user);
  StartRuns();
  Publish();
  CheckDrained();
}

// ---- ending

void Service::OnSignal(int) {
  if (++signals_ > 1) return StopNow();
  log::Warn(
      "draining: trials under way are finished, runs stay queued; a second signal stops at once");
  draining_ = true;
  for (auto& [number, run] : queue_.runs()) {
    if (run.evaluation) run.evaluation->Drain();
  }
  TellDraining(MonotonicMicros());
  CheckDrained();
}

void Service::TellDraining(int64_t now) {
  if (now - draining_told_us_ < kDrainingMicros) return;
  draining_told_us_ = now;
  for (const auto& [number, run] : queue_.runs()) {
    if (!run.evaluation || run.concluding) continue;
    const ProgressSnapshot progress = run.evaluation->Progress();
    log::Warn(
        "draining: run {} waits for {} leased documents and scores of {}{}; a second signal stops "
        "without them",
        run.id, progress.leased_documents, evald::Join(run.evaluation->Holders(), ", "),
        progress.notice_s < 0 ? ""
                              : fmt::format("; about {} more", HumanSeconds(progress.notice_s)));
  }
}

void Service::CheckDrained() {
  if (!draining_ || stopping_) return;
  // Before the service stops, everyone who submits or resumes is told so, and the folder of a
  // resumed run says again how the run ended.
  if (judgements_ > 0 || !registering_.empty() || !resuming_.empty()) return;
  for (const auto& [number, run] : queue_.runs()) {
    if (run.evaluation || run.concluding) return;
  }
  StopNow();
}

}  // namespace evald
