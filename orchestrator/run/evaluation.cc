#include "orchestrator/run/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "base/clock.h"
#include "base/fail_point.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "orchestrator/report/results.h"
#include "orchestrator/report/run_results.h"
#include "orchestrator/run/wire_id.h"
#include "orchestrator/schedule/placement.h"
#include "orchestrator/state/prior_store.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr double kMetricSilenceMin = 10, kMetricSilenceMax = 120;  // seconds

int64_t Micros(double seconds) { return static_cast<int64_t>(seconds * 1e6); }

// Engines that take token ids instead of text.
bool WantsTokens(const EvalConfig& config) {
  if (config.checkpoint.empty()) return false;
  return config.engine.name == "native" ||
         (config.engine.name == "openai" && config.engine.settings.value("prompt", "") == "tokens");
}

}  // namespace

bool NeedsStaging(const EvalConfig& config) {
  if (config.checkpoint.empty() || config.engine.name == "replay") return false;
  return !(config.engine.name == "openai" && config.engine.settings.contains("base_url"));
}

Evaluation::Evaluation(EvalConfig config, RunDirectory directory, int64_t number, int devices,
                       Support support, Hooks hooks)
    : config_(std::move(config)),
      directory_(std::move(directory)),
      number_(number),
      devices_(devices),
      support_(support),
      hooks_(std::move(hooks)),
      begin_us_(MonotonicMicros()),
      machine_({config_.workers.max_attempts, Micros(config_.workers.heartbeat_timeout_s)},
               {config_.metrics.max_attempts, Micros(std::clamp(config_.workers.heartbeat_timeout_s, kMetricSilenceMin, kMetricSilenceMax))}),
      timeline_(begin_us_) {
  timeline_.AddRow("stage", "staging", false);
  timeline_.AddRow("prepare", "preparation", false);
}

Evaluation::~Evaluation() {
  cancel_ = true;
  if (staging_thread_.joinable()) staging_thread_.join();
  if (preparation_thread_.joinable()) preparation_thread_.join();
}

// Work that another thread hands to the loop: nothing happens when the evaluation is gone by then.
// A failure is the run's, not the loop's.
template <typename Work>
void Evaluation::OnLoop(Work work) {
  support_.loop->Post([weak = weak_from_this(), work = std::move(work)]() mutable {
    const auto self = weak.lock();
    if (!self) return;
    try {
      work();
    } catch (const Error& e) {
      self->Fail(e.kind(), e.what());
    }
  });
}

// A thread whose failure ends the run, and whose end is waited for before the run is over.
void Evaluation::RunThread(std::thread* thread, std::function<void()> work) {
  ++threads_running_;
  *thread = std::thread([this, work = std::move(work)] {
    std::optional<Failure> failure;
    try {
      work();
    } catch (const Error& e) {
      failure = Failure{e.kind(), e.what()};
    } catch (const std::exception& e) {
      failure = Failure{ErrorKind::kInternal, e.what()};
    }
    OnLoop([this, failure] {
      --threads_running_;
      if (failure) Fail(failure->kind, failure->text);
      if (ending_) End();
    });
  });
}

void Evaluation::Start() {
  StartStaging();
  StartPreparation();
}

void Evaluation::StartStaging() {
  if (!NeedsStaging(config_)) {
    staging_done_ = true;
    hooks_.work();  // workers that are there already wait for nobody else
    return;
  }
  RunThread(&staging_thread_, [this] {
    const int64_t begin = MonotonicMicros();
    StagerOptions options;
    options.root = config_.staging.root;
    options.state = config_.state_dir;
    options.keep_bytes = config_.staging.keep_bytes;
    options.verify = config_.staging.verify;
    CopyHooks hooks;
    hooks.cancel = &cancel_;
    hooks.progress = [this](uint64_t done, uint64_t total) {
      OnLoop([this, done, total] {
        stage_done_ = static_cast<int64_t>(done);
        stage_total_ = static_cast<int64_t>(total);
      });
    };
    hooks.followable = [this](const fs::path& folder) {
      OnLoop([this, folder] {
        followable_ = {folder.string(), followable_.times + 1};
        hooks_.work();
      });
    };
    auto staged = std::make_shared<StagedCheckpoint>(Stager(options).Stage(config_.checkpoint, hooks));
    OnLoop([this, begin, staged] {
      staged_.emplace(std::move(*staged));
      timeline_.Add("stage", {"stage", begin, MonotonicMicros(),
                              {{"bytes_read", staged_->report().bytes_read},
                               {"fingerprint", staged_->fingerprint()}}});
      OnStaged();
    });
  });
}

void Evaluation::StartPreparation() {
  RunThread(&preparation_thread_, [this] {
    const int64_t begin = MonotonicMicros();
    std::unique_ptr<Tokenizer> tokenizer;
    if (WantsTokens(config_)) tokenizer = Tokenizer::Load(config_.checkpoint);
    auto suite = std::make_shared<Suite>(PrepareSuite(
        config_, tokenizer.get(), static_cast<int>(std::thread::hardware_concurrency()),
        [this](size_t done, size_t total) {
          OnLoop([this, done, total] {
            prepare_done_ = done;
            prepare_total_ = total;
          });
        },
        cancel_));
    if (tokenizer) suite->tokenizer_hash = HashHex(ReadFile(config_.checkpoint / "tokenizer.json"));
    OnLoop([this, begin, suite] {
      timeline_.Add("prepare", {"prepare", begin, MonotonicMicros(), {{"tasks", suite->tasks.size()}}});
      if (!ending_) OnPrepared(std::move(*suite));
    });
  });
}

void Evaluation::OnStaged() {
  staging_done_ = true;
  fingerprint_ = staged_->fingerprint();
  stage_note_ = staged_->report().bytes_read == 0 ? "kept from an earlier run" : "";
  stage_done_ = stage_total_ = static_cast<int64_t>(staged_->report().bytes);
  if (ending_) return;
  const std::string before = directory_.record().value("fingerprint", "");
  if (!before.empty() && before != fingerprint_) {
    return Fail(ErrorKind::kUsage,
                fmt::format("{}: this run was begun with another checkpoint: {} then, {} in {} now; start a new run",
                            directory_.path().string(), before, fingerprint_, config_.checkpoint.string()));
  }
  directory_.Update({{"fingerprint", fingerprint_}});
  FailPoint("run.staged");
  hooks_.work();
}

void Evaluation::SetDevices(int devices) {
  devices_ = std::max(1, devices);
  machine_.SetDevices(devices_);
}

std::string Evaluation::Absolute(const std::string& relative) const {
  return (directory_.path() / relative).string();
}

WorkerProfile Evaluation::profile() const {
  return {config_.engine.name, config_.engine.settings, config_.workers.threads, config_.seed};
}

protocol::Load Evaluation::load() const {
  if (staged_) return {staged_->directory().string(), fingerprint_};
  // A server that runs already has the weights; its worker may need the tokenizer beside them.
  if (config_.engine.name == "openai" && !config_.checkpoint.empty()) {
    return {config_.checkpoint.string(), kUnstaged + config_.checkpoint.string()};
  }
  return {"", ""};
}

std::optional<Evaluation::Followable> Evaluation::followable() const {
  const bool staging = followable_.times > 0 && !staging_done_;
  if (!staging || ending_ || draining_ || paused_) return std::nullopt;
  return followable_;
}

bool Evaluation::wants_workers() const {
  if (ending_ || draining_ || paused_ || !staging_done_) return false;
  return planned_ ? machine_.has_trials() && !congested() : engine_info_.is_null();
}

bool Evaluation::wants_more_workers() const {
  if (ending_ || draining_ || paused_ || !planned_ || congested()) return false;
  return machine_.waiting_s(MonotonicMicros()) > kWorthALoadSeconds;
}

bool Evaluation::needs_workers() const {
  if (ending_ || draining_ || paused_ || !staging_done_) return false;
  return planned_ ? !machine_.trials_idle() : engine_info_.is_null();
}

std::optional<double> Evaluation::open_s() const {
  if (!planned_) return std::nullopt;
  return machine_.open_s();
}

// Generations are made faster than they are scored. What waits in vain does not count: it was given up.
bool Evaluation::congested() const {
  return backlog_bytes_ > static_cast<double>(config_.metrics.backlog_bytes) && !machine_.jobs().idle();
}

bool Evaluation::wants_scorers() const { return planned_ && !ending_ && machine_.jobs().queued() > 0; }

void Evaluation::Pause(bool paused) {
  paused_ = paused;
  if (!paused) hooks_.work();
}

void Evaluation::Drain() {
  draining_ = true;
  CheckEnd();
}

void Evaluation::Cancel(const std::string& why) {
  cancelled_ = true;
  Fail(ErrorKind::kInfrastructure, why);
}

void Evaluation::Fail(ErrorKind kind, const std::string& text) {
  if (!failure_) failure_ = Failure{kind, text};
  End();
}

void Evaluation::NoWorkers(const std::string& cause) {
  if (ending_ || draining_) return;
  if (planned_ && machine_.trials_idle()) return;
  Fail(ErrorKind::kInfrastructure, fmt::format("{}: {}", planned_ ? "no worker is left" : "no worker could be started",
                                               cause));
}

void Evaluation::NoScorers(const std::string& cause) {
  if (ending_ || !planned_ || machine_.jobs().idle()) return;
  Fail(ErrorKind::kInfrastructure, fmt::format("no metric process is left: {}", cause));
}

void Evaluation::SetWaiting(const std::string& what) {
  if (what == waiting_) return;
  waiting_ = what;
  if (what.empty()) {
    log::Info("run {} waits no longer", id());
  } else {
    log::Warn("run {} waits for {}", id(), what);
  }
}

void Evaluation::CheckEnd() {
  if (ending_ || (!planned_ && !draining_)) return;
  const bool nothing_open = pending_commits_ == 0 && machine_.jobs().idle();
  size_t finished = 0;
  for (size_t t = 0; t < machine_.tasks().size(); ++t) finished += machine_.task_finished(t) ? 1 : 0;
  const bool tasks_done = finished_tasks_.size() == finished;
  const bool trials_done = draining_ ? machine_.trials().leased() == 0 : machine_.trials_idle();
  if (nothing_open && trials_done && tasks_done) End();
}

void Evaluation::End() {
  ending_ = true;
  cancel_ = true;
  if (over_ || threads_running_ > 0) return;
  over_ = true;
  support_.loop->Post([self = shared_from_this()] { self->hooks_.over(); });
}

ProgressSnapshot Evaluation::Progress() const {
  ProgressSnapshot snapshot;
  const int64_t now = MonotonicMicros();
  snapshot.elapsed_s = static_cast<double>(now - begin_us_) / 1e6;
  int64_t documents = 0, generated = 0, scored = 0;
  const std::vector<int64_t> under_way = machine_.under_way();
  for (size_t t = 0; t < machine_.tasks().size(); ++t) {
    const MachineTask& task = machine_.tasks()[t];
    TaskProgress progress{task.name, task.documents, machine_.generated(t) + under_way[t], machine_.scored(t), ""};
    const auto entry = finished_tasks_.find(t);
    if (entry != finished_tasks_.end()) progress.headline = Headline(suite_->tasks[t].definition, entry->second.entry);
    documents += task.documents;
    generated += progress.generated;
    scored += progress.scored;
    snapshot.tasks.push_back(std::move(progress));
  }
  if (NeedsStaging(config_)) snapshot.phases.push_back({"stage", stage_done_, stage_total_, true, stage_note_});
  if (!pulls_.empty()) {
    PhaseProgress pull{"pull", 0, 0, true, ""};
    for (const auto& [worker, bytes] : pulls_) {
      pull.done += bytes.first;
      pull.total += bytes.second;
    }
    if (pulls_.size() > 1) pull.note = fmt::format("to {} devices", pulls_.size());
    snapshot.phases.push_back(std::move(pull));
  }
  snapshot.phases.push_back({"prepare", static_cast<int64_t>(prepare_done_),
                             static_cast<int64_t>(prepare_total_), false, ""});
  PhaseProgress generate{"generate", generated, documents, false, ""};
  const double since_plan = planned_ ? static_cast<double>(now - planned_at_us_) / 1e6 : 0;
  if (since_plan > 1 && generated > generated_at_plan_) {
    snapshot.documents_per_s = static_cast<double>(generated - generated_at_plan_) / since_plan;
    generate.note = fmt::format("{:.1f} documents/s", snapshot.documents_per_s);
    snapshot.remaining_s = static_cast<double>(documents - generated) / snapshot.documents_per_s;
  }
  if (!waiting_.empty()) generate.note = "waits for " + waiting_;
  snapshot.phases.push_back(std::move(generate));
  snapshot.phases.push_back({"score", scored, documents, false, ""});
  return snapshot;
}

Json Evaluation::Scores() const {
  Json scores = Json::object();
  for (const auto& [task, result] : finished_tasks_) {
    scores[suite_->tasks[task].definition.name] = HeadlineScore(result.entry);
  }
  return scores;
}

// What later runs are planned from. A run that was cut short has measured something too.
void Evaluation::RecordCosts() {
  directory_.Update({{"costs", costs_.Report(*suite_)}});
  support_.database->Post([costs = costs_.Measured(*suite_, place_, WallSeconds())](RunStore& store) {
    for (const TaskCost& cost : costs) prior_store::Add(store.database(), cost);
  });
}

RunOutcome Evaluation::Finish() {
  if (staging_thread_.joinable()) staging_thread_.join();
  if (preparation_thread_.joinable()) preparation_thread_.join();
  const int64_t end_us = MonotonicMicros();
  try {
    timeline_.Write(directory_.path() / "timeline.json", end_us);
  } catch (const Error& e) {  // a picture for people: the results stand without it
    log::Warn("no timeline: {}", e.what());
  }
  const auto shares = timeline_.Share("generate", end_us);
  RunOutcome outcome;
  outcome.directory = directory_.path();
  outcome.seconds = static_cast<double>(end_us - begin_us_) / 1e6;
  for (const auto& [row, share] : shares) outcome.device_share += share / static_cast<double>(shares.size());
  for (const Missing& missing : machine_.missing()) {
    outcome.problems.push_back(missing.what + ": " + missing.cause);
  }
  if (failure_) outcome.problems.insert(outcome.problems.begin(), failure_->text);
  const bool complete = this->complete();
  if (!complete && outcome.problems.empty()) outcome.problems.push_back("interrupted before the end");
  if (planned_) {
    RunResultsInput input{config_, directory_, *suite_, record_, finished_tasks_, engine_info_,
                          isolation_, fingerprint_, shares, outcome.seconds, outcome.problems, earlier_};
    outcome.results = BuildRunResults(input);
    FailPoint("run.before_results");
    if (complete) WriteFileAtomic(directory_.path() / "results.json", ResultsText(outcome.results) + "\n");
  }
  FailPoint("run.after_results");
  if (planned_) RecordCosts();
  const std::string state = complete ? "done" : cancelled_ ? "cancelled" : "incomplete";
  directory_.Update({{"state", state}, {"ended", WallSeconds()}, {"problems", outcome.problems}});
  FailPoint("run.ended");
  outcome.status = complete ? ExitStatus::kDone
                   : failure_ ? ExitStatusFor(failure_->kind)
                              : ExitStatus::kIncomplete;
  return outcome;
}

}  // namespace evald
