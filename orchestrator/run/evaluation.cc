#include "orchestrator/run/evaluation.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "base/clock.h"
#include "checkpoint/layout.h"
#include "metrics/sandbox_options.h"
#include "orchestrator/report/results.h"
#include "orchestrator/report/run_results.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr std::chrono::milliseconds kTick{200};
constexpr std::chrono::milliseconds kStopGrace{5000};
constexpr int kMetricSilenceSeconds = 120;

int64_t Micros(double seconds) { return static_cast<int64_t>(seconds * 1e6); }

// A private folder with a short path: a Unix socket's path has at most 107 bytes.
fs::path MakeSocketDirectory() {
  std::string name = (fs::temp_directory_path() / "evald-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) ThrowErrno(name, "mkdtemp", errno);
  return name;
}

// Engines that answer without weights of ours.
bool NeedsStaging(const EvalConfig& config) {
  if (config.checkpoint.empty() || config.engine.name == "replay") return false;
  return !(config.engine.name == "openai" && config.engine.settings.contains("base_url"));
}

// Engines that take token ids instead of text.
bool WantsTokens(const EvalConfig& config) {
  if (config.checkpoint.empty()) return false;
  return config.engine.name == "native" ||
         (config.engine.name == "openai" && config.engine.settings.value("prompt", "") == "tokens");
}

}  // namespace

RunOutcome RunEvaluation(const RunOptions& options) {
  // A checkpoint that is not whole is refused before anything is made or started.
  if (NeedsStaging(options.config)) CheckShards(ReadCheckpointLayout(options.config.checkpoint));
  RunDirectory directory = options.resume ? RunDirectory::Resume(options.config, options.resume_run)
                                          : RunDirectory::Create(options.config);
  Evaluation evaluation(options, std::move(directory));
  return evaluation.Run();
}

Evaluation::Evaluation(const RunOptions& options, RunDirectory directory)
    : options_(options),
      config_(options_.config),
      directory_(std::move(directory)),
      begin_us_(MonotonicMicros()),
      store_(config_.state_dir),
      machine_({config_.workers.max_attempts, Micros(config_.workers.heartbeat_timeout_s)},
               {config_.metrics.max_attempts, Micros(kMetricSilenceSeconds)}),
      timeline_(begin_us_),
      display_(options.quiet),
      socket_directory_(MakeSocketDirectory()) {
  store_.OpenRun(directory_.id(), directory_.path());
  timeline_.AddRow("stage", "staging", false);
  timeline_.AddRow("prepare", "preparation", false);
}

Evaluation::~Evaluation() {
  cancel_ = true;
  if (staging_thread_.joinable()) staging_thread_.join();
  if (preparation_thread_.joinable()) preparation_thread_.join();
  agent_.reset();
  std::error_code ignored;
  fs::remove_all(socket_directory_, ignored);
}

RunOutcome Evaluation::Run() {
  database_ = std::make_unique<DatabaseThread>(&store_, &loop_, [this](std::exception_ptr error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& e) {
      Fail(ErrorKind::kInfrastructure, e.what());
    }
  });
  finisher_ = std::make_unique<TaskFinisher>(&loop_);
  agent_ = std::make_unique<Agent>(
      &loop_, socket_directory_,
      Agent::Events{[this](const std::string& id, const protocol::Message& m) { OnMessage(id, m); },
                    [this](const std::string& id, const ProcessExit& exit) { OnExit(id, exit); }});
  loop_.OnSignals([this](int signal) { OnSignal(signal); });
  StartProcesses();
  StartStaging();
  StartPreparation();
  Tick();
  loop_.Run();
  return Finish();
}

void Evaluation::StartProcesses() {
  std::vector<ProcessSpec> workers;
  for (int i = 0; i < config_.workers.count; ++i) {
    const std::string id = fmt::format("w{}", i);
    const std::string device = fmt::format("cpu:{}", i);
    workers.push_back({id,
                       options_.binaries / "evald-worker",
                       {"--engine", config_.engine.name, "--settings", config_.engine.settings.dump(),
                        "--device", device, "--threads", std::to_string(config_.workers.threads),
                        "--seed", std::to_string(config_.seed), "--log-level", options_.log_level},
                       directory_.path() / "logs" / (id + ".log")});
    timeline_.AddRow(id, fmt::format("worker {} ({})", id, device), true);
  }
  std::vector<ProcessSpec> scorers;
  for (int i = 0; i < config_.metrics.processes; ++i) {
    const std::string id = fmt::format("m{}", i);
    scorers.push_back({id,
                       options_.binaries / "evald-metric",
                       {"--sandbox", ToJson(config_.metrics.sandbox).dump(), "--log-level", options_.log_level},
                       directory_.path() / "logs" / (id + ".log")});
    timeline_.AddRow(id, fmt::format("metrics {}", id), false);
  }
  const int restarts_max = 2 * config_.workers.max_attempts;
  workers_ = std::make_unique<ProcessPool>(&loop_, agent_.get(), std::move(workers), restarts_max);
  scorers_ = std::make_unique<ProcessPool>(&loop_, agent_.get(), std::move(scorers),
                                           2 * config_.metrics.max_attempts);
  workers_->StartAll();
  scorers_->StartAll();
}

void Evaluation::StartStaging() {
  if (!NeedsStaging(config_)) {
    staging_done_ = true;
    return;
  }
  staging_thread_ = std::thread([this] {
    const int64_t begin = MonotonicMicros();
    try {
      StagerOptions options;
      options.root = config_.staging.root;
      options.state = config_.state_dir;
      options.keep_bytes = config_.staging.keep_bytes;
      options.verify = config_.staging.verify;
      CopyHooks hooks;
      hooks.cancel = &cancel_;
      hooks.progress = [this](uint64_t done, uint64_t total) {
        loop_.Post([this, done, total] {
          stage_done_ = static_cast<int64_t>(done);
          stage_total_ = static_cast<int64_t>(total);
        });
      };
      auto staged = std::make_shared<StagedCheckpoint>(
          Stager(options).Stage(config_.checkpoint, hooks));
      loop_.Post([this, begin, staged] {
        staged_.emplace(std::move(*staged));
        timeline_.Add("stage", {"stage", begin, MonotonicMicros(),
                                {{"bytes_read", staged_->report().bytes_read},
                                 {"fingerprint", staged_->fingerprint()}}});
        OnStaged();
      });
    } catch (const Error& e) {
      loop_.Post([this, e] { Fail(e.kind(), e.what()); });
    } catch (const std::exception& e) {
      loop_.Post([this, text = std::string(e.what())] { Fail(ErrorKind::kInternal, text); });
    }
  });
}

void Evaluation::StartPreparation() {
  preparation_thread_ = std::thread([this] {
    const int64_t begin = MonotonicMicros();
    try {
      std::unique_ptr<Tokenizer> tokenizer;
      if (WantsTokens(config_)) tokenizer = Tokenizer::Load(config_.checkpoint);
      auto suite = std::make_shared<Suite>(PrepareSuite(
          config_, tokenizer.get(), static_cast<int>(std::thread::hardware_concurrency()),
          [this](size_t done, size_t total) {
            loop_.Post([this, done, total] {
              prepare_done_ = done;
              prepare_total_ = total;
            });
          },
          cancel_));
      loop_.Post([this, begin, suite] {
        timeline_.Add("prepare", {"prepare", begin, MonotonicMicros(),
                                  {{"tasks", suite->tasks.size()}}});
        OnPrepared(std::move(*suite));
      });
    } catch (const Error& e) {
      loop_.Post([this, e] { Fail(e.kind(), e.what()); });
    } catch (const std::exception& e) {
      loop_.Post([this, text = std::string(e.what())] { Fail(ErrorKind::kInternal, text); });
    }
  });
}

void Evaluation::OnStaged() {
  staging_done_ = true;
  stage_note_ = staged_->report().bytes_read == 0 ? "kept from an earlier run" : "";
  stage_done_ = stage_total_ = static_cast<int64_t>(staged_->report().bytes);
  directory_.Update({{"fingerprint", staged_->fingerprint()}});
  for (const std::string& id : workers_->ids()) {
    if (workers_->connected(id)) SendLoad(id);
  }
}

void Evaluation::OnPrepared(Suite suite) {
  suite_ = std::move(suite);
  Json prepared = Json::object();
  std::vector<MachineTask> tasks;
  for (const SuiteTask& task : suite_->tasks) {
    task_index_[task.definition.name] = tasks.size();
    tasks.push_back({task.definition.name, task.documents, task.cost_per_document,
                     task.definition.unsafe_code});
    prepared[task.definition.name] = task.prepared.filename().string();
    for (const char* kind : {"generations", "scores"}) {
      MakeDirectories(directory_.path() / kind / task.definition.name);
    }
  }
  const Json before = directory_.record().value("prepared", Json());
  if (!before.is_null() && before != prepared) {
    Fail(ErrorKind::kUsage, fmt::format("{}: tasks or data have changed since this run was begun; "
                                        "start a new run", directory_.path().string()));
    return;
  }
  directory_.Update({{"prepared", prepared}});
  machine_.SetTasks(std::move(tasks));
  MaybePlan();
}

// Recovery reads the run's files; it stays on the loop, where nothing else goes on before planning.
void Evaluation::Recover() {
  Recovery recovery = RecoverRun(&store_, directory_.id(), directory_.path(), *suite_);
  record_ = std::move(recovery.record);
  for (const auto& [task, documents] : record_.generated) {
    for (const auto& [document, file] : documents) machine_.AdoptGenerations(task_index_.at(task), document);
  }
  for (const auto& [task, documents] : record_.scored) {
    for (const auto& [document, file] : documents) machine_.AdoptScores(task_index_.at(task), document);
  }
  for (size_t t = 0; t < recovery.tasks.size(); ++t) {
    for (const std::string& file : recovery.tasks[t].salvage) machine_.AddSalvage(t, file);
  }
  PlanOptions plan;
  plan.workers = config_.workers.count;
  machine_.Plan(plan, recovery.first_trial);
  // What is generated but not scored yet becomes jobs, file by file.
  for (const auto& [task, documents] : record_.generated) {
    std::map<size_t, std::vector<int64_t>> unscored;
    for (const auto& [document, file] : documents) {
      if (record_.scored[task].count(document) == 0) unscored[file].push_back(document);
    }
    for (const auto& [file, list] : unscored) {
      const CommittedFile& source = record_.generations[file];
      machine_.GenerationsCommitted(task_index_.at(task), list, source.path, source.trial, source.attempt);
    }
  }
}

void Evaluation::MaybePlan() {
  if (planned_ || ending_ || !suite_ || engine_info_.is_null()) return;
  for (const RequestKind kind : {RequestKind::kGenerateUntil, RequestKind::kLoglikelihood,
                                 RequestKind::kLoglikelihoodRolling}) {
    if (!NeedsKind(kind)) continue;
    const Json kinds = engine_info_.value("kinds", Json::array());
    if (std::find(kinds.begin(), kinds.end(), Json(ToString(kind))) != kinds.end()) continue;
    std::string why = engine_info_.value("refused", "");
    Fail(ErrorKind::kUsage,
         fmt::format("the tasks need {} requests, which engine '{}' does not serve{}", ToString(kind),
                     config_.engine.name, why.empty() ? "" : ": " + why));
    return;
  }
  try {
    Recover();
  } catch (const Error& e) {
    Fail(e.kind(), e.what());
    return;
  }
  planned_ = true;
  planned_at_us_ = MonotonicMicros();
  for (size_t t = 0; t < machine_.tasks().size(); ++t) {
    generated_at_plan_ += machine_.generated(t);
    if (machine_.task_finished(t)) FinishTask(t);
  }
  ServeWorkers();
  ServeScorers();
  CheckEnd();
}

bool Evaluation::NeedsKind(RequestKind kind) const {
  for (const SuiteTask& task : suite_->tasks) {
    const std::string& type = task.definition.output_type;
    const RequestKind needed = type == "generate_until"          ? RequestKind::kGenerateUntil
                               : type == "loglikelihood_rolling" ? RequestKind::kLoglikelihoodRolling
                                                                 : RequestKind::kLoglikelihood;
    if (needed == kind) return true;
  }
  return false;
}

std::string Evaluation::Absolute(const std::string& relative) const {
  return (directory_.path() / relative).string();
}

void Evaluation::Tick() {
  if (ending_) return;
  CheckSilence();
  display_.Show(Snapshot());
  loop_.After(kTick, [this] { Tick(); });
}

void Evaluation::CheckSilence() {
  const int64_t now = MonotonicMicros();
  for (const std::string& id : machine_.SilentWorkers(now)) {
    spdlog::warn("worker {} has been silent for {} s; it is killed", id, config_.workers.heartbeat_timeout_s);
    agent_->Kill(id);
  }
  for (const std::string& id : machine_.SilentScorers(now)) {
    spdlog::warn("metric process {} has been silent for {} s; it is killed", id, kMetricSilenceSeconds);
    agent_->Kill(id);
  }
}

void Evaluation::OnSignal(int signal) {
  ++signals_;
  if (signals_ > 1 || !planned_) {
    Fail(ErrorKind::kInfrastructure,
         fmt::format("stopped by {}", signal == SIGINT ? "Ctrl-C" : "a signal"));
    return;
  }
  draining_ = true;
  fmt::print(stderr, "\nevald: finishing what is under way; Ctrl-C again stops at once\n");
  workers_->Close();
  for (const std::string& id : workers_->ids()) agent_->Send(id, protocol::Drain{});
  CheckEnd();
}

void Evaluation::Fail(ErrorKind kind, const std::string& text) {
  if (!failure_) failure_ = Failure{kind, text};
  BeginShutdown();
}

void Evaluation::CheckEnd() {
  if (ending_ || !planned_) return;
  const bool nothing_open = pending_commits_ == 0 && machine_.jobs().idle();
  size_t finished = 0;
  for (size_t t = 0; t < machine_.tasks().size(); ++t) finished += machine_.task_finished(t) ? 1 : 0;
  if (nothing_open && machine_.idle() && finished_tasks_.size() == finished) return BeginShutdown();
  if (draining_ && nothing_open && workers_->running() == 0) return BeginShutdown();
  if (!draining_ && workers_->exhausted() && !machine_.trials().idle()) {
    return Fail(ErrorKind::kInfrastructure,
                fmt::format("no worker is left: {}; see {}", workers_->last_exit(),
                            (directory_.path() / "logs").string()));
  }
  if (scorers_->exhausted() && !machine_.jobs().idle()) {
    Fail(ErrorKind::kInfrastructure, fmt::format("no metric process is left: {}; see {}",
                                                 scorers_->last_exit(),
                                                 (directory_.path() / "logs").string()));
  }
}

void Evaluation::BeginShutdown() {
  if (ending_) return;
  ending_ = true;
  cancel_ = true;
  workers_->Close();
  scorers_->Close();
  agent_->StopAll(kStopGrace, [this] { loop_.Stop(); });
}

ProgressSnapshot Evaluation::Snapshot() const {
  ProgressSnapshot snapshot;
  const int64_t now = MonotonicMicros();
  snapshot.elapsed_s = static_cast<double>(now - begin_us_) / 1e6;
  int64_t documents = 0, generated = 0, scored = 0;
  for (size_t t = 0; t < machine_.tasks().size(); ++t) {
    const MachineTask& task = machine_.tasks()[t];
    TaskProgress progress{task.name, task.documents, machine_.generated(t), machine_.scored(t), ""};
    const auto entry = finished_tasks_.find(t);
    if (entry != finished_tasks_.end()) progress.headline = Headline(suite_->tasks[t].definition, entry->second.entry);
    documents += task.documents;
    generated += progress.generated;
    scored += progress.scored;
    snapshot.tasks.push_back(std::move(progress));
  }
  if (NeedsStaging(config_)) snapshot.phases.push_back({"stage", stage_done_, stage_total_, true, stage_note_});
  snapshot.phases.push_back({"prepare", static_cast<int64_t>(prepare_done_),
                             static_cast<int64_t>(prepare_total_), false, ""});
  PhaseProgress generate{"generate", generated, documents, false, ""};
  const double since_plan = planned_ ? static_cast<double>(now - planned_at_us_) / 1e6 : 0;
  if (since_plan > 1 && generated > generated_at_plan_) {
    const double rate = static_cast<double>(generated - generated_at_plan_) / since_plan;
    generate.note = fmt::format("{:.1f} documents/s", rate);
    snapshot.remaining_s = static_cast<double>(documents - generated) / rate;
  }
  snapshot.phases.push_back(std::move(generate));
  snapshot.phases.push_back({"score", scored, documents, false, ""});
  return snapshot;
}

RunOutcome Evaluation::Finish() {
  if (staging_thread_.joinable()) staging_thread_.join();
  if (preparation_thread_.joinable()) preparation_thread_.join();
  display_.Finish(Snapshot());
  finisher_.reset();
  const int64_t end_us = MonotonicMicros();
  timeline_.Write(directory_.path() / "timeline.json", end_us);

  RunOutcome outcome;
  outcome.directory = directory_.path();
  outcome.seconds = static_cast<double>(end_us - begin_us_) / 1e6;
  for (const Missing& missing : machine_.missing()) {
    outcome.problems.push_back(missing.what + ": " + missing.cause);
  }
  if (failure_) outcome.problems.insert(outcome.problems.begin(), failure_->text);
  const bool complete = planned_ && !failure_ && machine_.complete();
  if (!complete && outcome.problems.empty()) outcome.problems.push_back("interrupted before the end");
  const auto shares = timeline_.Share("generate", end_us);
  for (const auto& [row, share] : shares) {
    outcome.device_share += share / static_cast<double>(shares.size());
  }
  if (planned_) {
    RunResultsInput input{config_, directory_, *suite_, record_, finished_tasks_, engine_info_,
                          isolation_, staged_ ? staged_->fingerprint() : "", shares,
                          outcome.seconds, outcome.problems};
    outcome.results = BuildRunResults(input);
    if (complete) {
      WriteFileAtomic(directory_.path() / "results.json", ResultsText(outcome.results) + "\n");
    }
  }
  directory_.Update({{"state", complete ? "done" : "incomplete"},
                     {"ended", WallSeconds()},
                     {"problems", outcome.problems}});
  database_->Post([id = directory_.id(), complete](RunStore& store) {
    store.SetState(id, complete ? "done" : "incomplete");
  });
  database_.reset();
  if (staged_) staged_->Release();
  outcome.status = complete ? ExitStatus::kDone
                   : failure_ ? ExitStatusFor(failure_->kind)
                              : ExitStatus::kIncomplete;
  return outcome;
}

}  // namespace evald
