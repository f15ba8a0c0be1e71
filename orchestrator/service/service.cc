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
#include "orchestrator/service/process_id.h"
#include "orchestrator/service/submission.h"
#include "orchestrator/staging/stager.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr std::chrono::milliseconds kTick{200};
constexpr int64_t kRoomEveryMicros = 1'000'000;  // looking for room reads the file system
// What the workers still say of a run that has ended, for its timeline.
constexpr std::chrono::milliseconds kLastWords{200};

UniqueFd LockState(const fs::path& state_dir) {
  MakePrivateFolder(state_dir, "set state_dir to a folder of your own");
  const fs::path file = state_dir / "service.lock";
  UniqueFd lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock) ThrowErrno(file, "open", errno);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    throw Error(ErrorKind::kUsage, fmt::format("{}: another evald serves from this folder", state_dir.string()),
                "stop it, or choose another state_dir");
  }
  return lock;
}

FleetOptions FleetOptionsOf(const ServiceOptions& options) {
  FleetOptions fleet;
  fleet.log_dir = options.state_dir / "logs";
  fleet.log_level = options.log_level;
  MakeDirectories(fleet.log_dir);
  return fleet;
}

LocalAgent LocalAgentOf(const ServiceOptions& options) {
  return {options.binaries / "evald",
          {"agent", "--socket", (options.state_dir / kAgentSocket).string(), "--root", options.state_dir.string(),
           "--staging-root", options.staging_root.string(), "--devices", Join(options.devices, ","), "--metric-processes",
           std::to_string(options.metric_processes), "--sandbox", ToJson(options.sandbox).dump(), "--linger",
           fmt::format("{}", options.linger_s), "--log-level", options.log_level},
          options.state_dir};
}

}  // namespace

Service::Service(ServiceOptions options)
    : options_(std::move(options)), lock_(LockState(options_.state_dir)) {
  // One that is there keeps the mode that its owner gave it: outputs may be for a group.
  if (!fs::exists(options_.output_dir)) MakePrivateFolder(options_.output_dir, "set output_dir to another folder");
  MakeDirectories(options_.output_dir);
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
  fleet_ = std::make_unique<Fleet>(&loop_, FleetOptionsOf(options_));
  fleet_->on_change = [this](const std::string& worker) { Emit("", "worker", {{"id", worker}}); };
  hub_ = std::make_unique<AgentHub>(&loop_, fleet_.get(), LocalAgentOf(options_));
  for (const RunRow& row : unfinished) TakeUp(row);
  Publish();
}

Service::~Service() {
  database_.reset();  // before what its callbacks touch
  hub_.reset();
  fleet_.reset();
}

void Service::Run() {
  loop_.OnSignals([this](int signal) { OnSignal(signal); });
  hub_->Start([this](const Error& why) { Fail(std::make_exception_ptr(why)); });
  Tick();
  loop_.Run();
  for (auto& [number, run] : queue_.runs()) {
    if (!run.evaluation || run.outcome) continue;
    try {
      run.evaluation->Finish();  // stopped at once: it stays to be resumed
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
    if (!run.evaluation || run.outcome) continue;
    if (run.state == "preparing" && run.evaluation->planned()) SetState(&run, "running");
    int64_t& sent = progress_sent_us_[number];
    if (now - sent < 1'000'000) continue;
    sent = now;
    Emit(run.id, "run.progress", Resource(run)["progress"]);
  }
  StartRuns();
  Publish();
  loop_.After(kTick, [this] { Tick(); });
}

// ---- starting

// A checkpoint that finds no room waits for that of runs at work, and for idle workers to let go of the
// last one. If that is not it, staging says what is missing; so it does where a checkpoint or the root
// cannot be read.
bool Service::RoomFor(const QueuedRun& run) {
  bool others = false;
  for (const auto& [number, other] : queue_.runs()) others = others || other.evaluation != nullptr;
  if (!NeedsStaging(run.config)) return true;
  const int64_t now = MonotonicMicros();
  if (no_room_us_ != 0 && now - no_room_us_ < kRoomEveryMicros) return false;
  bool room = true;
  try {
    room = Stager({.root = run.config.staging.root, .state = options_.state_dir}).HasRoom(run.config.checkpoint) ||
           (!fleet_->FreeStaged() && !others);
  } catch (const Error& e) {
    log::Warn("run {}: {}", run.id, e.what());
  }
  no_room_us_ = room ? 0 : now;
  return room;
}

// What workers of an earlier life still write is at rest once the local agent is there: only then may
// their runs' folders be looked at.
void Service::StartRuns() {
  local_seen_ = local_seen_ || fleet_->HostHere(kLocalHost);
  if (!local_seen_) return;
  while (!draining_ && !stopping_) {
    QueuedRun* next = queue_.Next(options_.active_max);
    if (next == nullptr || !RoomFor(*next)) return;
    Start(next);
  }
}

void Service::Start(QueuedRun* run) {
  const int64_t number = run->number;
  run->started = WallSeconds();
  Evaluation::Hooks hooks;
  hooks.work = [this] { fleet_->Serve(); };
  hooks.over = [this, number] { OnOver(number); };
  hooks.event = [this, id = run->id](const std::string& type, const Json& data) { Emit(id, type, data); };
  run->evaluation = std::make_shared<Evaluation>(
      run->config, std::move(*run->directory), number, std::max(1, fleet_->device_count()),
      Evaluation::Support{&loop_, database_.get(), finisher_.get()}, std::move(hooks));
  run->directory.reset();
  SetState(run, "preparing");
  fleet_->Add(run->evaluation, run->priority, run->user);
  FailPoint("service.run_started");
  run->evaluation->Start();
}

void Service::OnOver(int64_t number) {
  loop_.After(kLastWords, [this, number] { Conclude(number); });
}

void Service::Conclude(int64_t number) {
  QueuedRun* run = queue_.Find(number);
  if (run == nullptr || run->outcome || stopping_) return;
  try {
    run->outcome = run->evaluation->Finish();
  } catch (const std::exception& e) {  // its folder cannot be written, say: other runs go on
    log::Error("run {}: {}", run->id, e.what());
    run->outcome.emplace();
    run->outcome->directory = run->path;
    run->outcome->status = ExitStatus::kIncomplete;
    run->outcome->problems.push_back(e.what());
  }
  FailPoint("service.run_ended");
  run->ended = WallSeconds();
  auto verdict = std::make_shared<std::optional<Verdict>>();
  finisher_->Run(
      [verdict, gates = run->config.gates, outcome = *run->outcome] { *verdict = JudgeRun(gates, outcome); },
      [this, number, verdict] { Close(number, *verdict); });
}

// The run's end, once its gates are judged.
void Service::Close(int64_t number, const std::optional<Verdict>& verdict) {
  QueuedRun* run = queue_.Find(number);
  if (run == nullptr || stopping_) return;
  FailPoint("service.judged");
  // One that did not come to its end is not judged, and leaves no verdict.json.
  const bool complete = run->outcome->status == ExitStatus::kDone;
  if (verdict && !verdict->gates.empty() && complete) {
    run->outcome->status = verdict->status;
    run->verdict = StatusWord(verdict->status);
    Emit(run->id, "run.verdict", {{"verdict", run->verdict}, {"summary", Summary(*verdict)}});
  }
  const bool cancelled = run->evaluation->cancelled();
  const std::string state = cancelled    ? "cancelled"
                            : complete   ? "done"
                            : draining_  ? "queued"
                            : run->outcome->status == ExitStatus::kUsage ? "failed"
                                                                         : "incomplete";
  run->state = state;
  if (state != "queued") CountFinished(*run);
  SetState(run, state);
  FailPoint("service.run_closed");
  fleet_->Remove(number);
  queue_.Remove(number);
  progress_sent_us_.erase(number);
  StartRuns();
  Publish();
  CheckDrained();
}

// ---- ending

void Service::OnSignal(int) {
  if (++signals_ > 1) return StopNow();
  log::Info("draining: trials under way are finished, runs stay queued");
  draining_ = true;
  for (auto& [number, run] : queue_.runs()) {
    if (run.evaluation) run.evaluation->Drain();
  }
  CheckDrained();
}

void Service::CheckDrained() {
  if (!draining_ || stopping_) return;
  for (const auto& [number, run] : queue_.runs()) {
    if (run.evaluation) return;
  }
  StopNow();
}

// ---- what people ask

void Service::Act(const std::string& id, RunAction action, Done<Json> done) {
  if (action == RunAction::kResume && View()->active_runs.count(id) == 0) return ResumeEnded(id, std::move(done));
  loop_.Post([this, id, action, done = std::move(done)] {
    QueuedRun* run = queue_.Find(id);
    if (run == nullptr || run->outcome) {
      const auto past = this->Run(id);
      done(Error(ErrorKind::kUsage, past ? fmt::format("run {} is over ({})", id, (*past)["state"].get<std::string>())
                                         : fmt::format("there is no run {}", id)));
      return;
    }
    if (action == RunAction::kCancel) {
      run->paused = false;
      if (run->evaluation) {
        SetState(run, "cancelling");
        run->evaluation->Cancel("cancelled");
      } else {
        run->ended = WallSeconds();
        run->directory->Update({{"state", "cancelled"}, {"ended", run->ended}});
        SetState(run, "cancelled");
      }
    } else {
      run->paused = action == RunAction::kPause;
      if (run->evaluation) run->evaluation->Pause(run->paused);
      SetState(run, run->paused        ? "paused"
                    : !run->evaluation ? "queued"
                    : run->evaluation->planned() ? "running"
                                                 : "preparing");
    }
    const Json resource = Resource(*run);
    if (run->state == "cancelled") queue_.Remove(run->number);
    StartRuns();
    Publish();
    AnswerOnceOnDisk(std::move(done), resource);
  });
}

void Service::SetPriority(const std::string& id, int priority, Done<Json> done) {
  loop_.Post([this, id, priority, done = std::move(done)] {
    QueuedRun* run = queue_.Find(id);
    if (run == nullptr) return done(Error(ErrorKind::kUsage, fmt::format("there is no run {} that is not over", id)));
    if (priority < -100 || priority > 100) {
      return done(Error(ErrorKind::kUsage, fmt::format("priority: found {}, expected -100 to 100", priority)));
    }
    run->priority = priority;
    fleet_->SetPriority(run->number, priority);
    Save(*run);
    Emit(run->id, "run.state", {{"state", run->state}, {"priority", priority}});
    StartRuns();
    Publish();
    AnswerOnceOnDisk(std::move(done), Resource(*run));
  });
}

// What was answered holds in the next life, too: all that was posted before is on disk by then.
void Service::AnswerOnceOnDisk(Done<Json> done, Json answer) {
  database_->Post([](RunStore&) {}, [done = std::move(done), answer = std::move(answer)] { done(answer); });
}

void Service::Announce(const fs::path& checkpoint, Done<Json> done) {
  if (!on_announce || !on_announce(checkpoint)) {
    return done(Error(ErrorKind::kUsage, fmt::format("{}: no watch covers this folder", checkpoint.string()),
                      "add a watch of it ('evald watch --checkpoints'), or submit a run"));
  }
  Json runs = Json::array();  // of this checkpoint already
  RunFilter filter;
  filter.checkpoint = checkpoint.string();
  for (const Json& run : Runs(filter).runs) runs.push_back(run["id"]);
  done(Json{{"checkpoint", checkpoint.string()}, {"known", !runs.empty()}, {"runs", std::move(runs)}});
}

}  // namespace evald
