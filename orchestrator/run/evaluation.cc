#include "orchestrator/run/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "base/clock.h"
#include "base/fail_point.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "orchestrator/prepare/preparer.h"
#include "orchestrator/run/causes.h"
#include "orchestrator/run/evaluation_scheduling.h"
#include "orchestrator/run/run_results.h"
#include "orchestrator/run/wire_id.h"
#include "orchestrator/staging/free_space.h"

namespace evald {
namespace fs = std::filesystem;
namespace {
// For tasks being aggregated in a run that drains
constexpr std::chrono::milliseconds kFinishPatience{1000};
}  // namespace

Evaluation::Evaluation(EvalConfig config, RunDirectory directory, int64_t number, int devices,
                       Support support, Hooks hooks)
    : config_(std::move(config)),
      id_(directory.id()),
      path_(directory.path()),
      json_(std::move(directory), support.files),
      number_(number),
      devices_(devices),
      support_(support),
      hooks_(std::move(hooks)),
      begin_us_(MonotonicMicros()),
      scheduling_(new Scheduling{MakeMachine(config_), {}, {}, {}}),
      machine_(scheduling_->machine),
      processes_(scheduling_->processes),
      costs_(scheduling_->costs),
      place_(scheduling_->place),
      profile_(profile().Tag()),
      timeline_(begin_us_) {
  timeline_.AddRow("stage", "staging", false);
  timeline_.AddRow("prepare", "preparation", false);
}

Evaluation::~Evaluation() {
  *cancel_ = true;
  if (staging_thread_.joinable()) staging_thread_.join();
  if (preparation_thread_.joinable()) preparation_thread_.join();
}

bool Evaluation::at_rest() const {
  return machine_.trials().leased() == 0 && machine_.jobs().idle() && pending_commits_ == 0;
}

bool Evaluation::complete() const {
  return planned_ && !failure_ && machine_.complete() &&
         finished_tasks_.size() == machine_.tasks().size();
}

// Does `work` on the files thread, after all earlier requests, then `then` on the loop. `work` may
// outlive the evaluation and uses nothing of it.
void Evaluation::OffLoop(std::function<void()> work, std::function<void()> then) {
  support_.files->Post(std::move(work),
                       Guarded([this, then = std::move(then)](const std::optional<Error>& error) {
                         if (error) return Fail(error->kind(), error->what());
                         then();
                       }));
}

// Calls `then` once these members of run.json are on disk. If they cannot be written, the run
// fails.
void Evaluation::Record(const Json& members, std::function<void()> then) {
  json_.Update(members, Guarded([this, then = std::move(then)](const std::optional<Error>& error) {
                 if (error) return Fail(error->kind(), error->what());
                 then();
               }));
}

// Starts a thread. If its work fails, the run ends. The run is over only after the thread has
// ended.
void Evaluation::RunThread(std::thread* thread, std::function<void()> work) {
  ++threads_running_;
  const auto body = [this, work = std::move(work)] {
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
  };
  try {
    *thread = std::thread(body);
  } catch (const std::system_error& e) {
    --threads_running_;
    Fail(ErrorKind::kInfrastructure,
         fmt::format("run {}: no thread can be started: {}", id_, e.what()));
  }
}

void Evaluation::Start() {
  StartStaging();
  if (!ending_) StartPreparation();
}

void Evaluation::StartStaging() {
  if (!NeedsStaging(config_)) {
    staging_done_ = true;
    hooks_.changed();  // workers that are there already can load now
    return;
  }
  RunThread(&staging_thread_, [this] {
    const int64_t begin = MonotonicMicros();
    StagerOptions options;
    options.root = config_.staging.root;
    options.state = config_.state_dir;
    options.keep_bytes = config_.staging.keep_bytes;
    options.verify = config_.staging.verify;
    options.roots = config_.roots;
    CopyHooks hooks;
    hooks.cancel = cancel_.get();
    hooks.progress = [this](uint64_t done, uint64_t total) {
      OnLoop([this, done, total] {
        stage_done_ = static_cast<int64_t>(done);
        stage_total_ = static_cast<int64_t>(total);
      });
    };
    hooks.followable = [this](const fs::path& folder) {
      OnLoop([this, folder] {
        followable_ = {folder.string(), followable_.times + 1};
        hooks_.changed();
      });
    };
    std::shared_ptr<StagedCheckpoint> staged;
    try {
      staged = std::make_shared<StagedCheckpoint>(Stager(options).Stage(config_.checkpoint, hooks));
    } catch (const NoSpace&) {
      OnLoop([this] { found_no_space_ = true; });
      throw;
    }
    OnLoop([this, begin, staged] {
      staged_.emplace(std::move(*staged));
      timeline_.Add("stage", {"stage",
                              begin,
                              MonotonicMicros(),
                              {{"bytes_read", staged_->report().bytes_read},
                               {"fingerprint", staged_->fingerprint()}}});
      OnStaged();
    });
  });
}

void Evaluation::StartPreparation() {
  RunThread(&preparation_thread_, [this] {
    const int64_t begin = MonotonicMicros();
    auto suite = std::make_shared<Suite>(Preparer(support_.binaries)
                                             .Prepare(
                                                 InputOf(config_, PreparationInput::Work::kPrepare),
                                                 [this](size_t done, size_t total) {
                                                   OnLoop([this, done, total] {
                                                     prepare_done_ = done;
                                                     prepare_total_ = total;
                                                   });
                                                 },
                                                 [this] { return cancel_->load(); }));
    OnLoop([this, begin, suite] {
      timeline_.Add("prepare",
                    {"prepare", begin, MonotonicMicros(), {{"tasks", suite->tasks.size()}}});
      if (!ending_) OnPrepared(suite);
    });
  });
}

void Evaluation::OnStaged() {
  staging_done_ = true;
  fingerprint_ = staged_->fingerprint();
  stage_note_ = staged_->report().bytes_read == 0 ? "kept from an earlier run" : "";
  stage_done_ = stage_total_ = static_cast<int64_t>(staged_->report().bytes);
  if (ending_) return;
  const std::string before = json_.record().value("fingerprint", "");
  if (!before.empty() && before != fingerprint_) {
    return Fail(ErrorKind::kUsage,
                fmt::format("{}: this run was begun with another checkpoint: {} then, {} in {} "
                            "now; start a new run",
                            path_.string(), before, fingerprint_, config_.checkpoint.string()));
  }
  Record({{"fingerprint", fingerprint_}}, [] { FailPoint("run.staged"); });
  hooks_.changed();
}

std::string Evaluation::Absolute(const std::string& relative) const {
  return (path_ / relative).string();
}

// Whether so many generations wait for scoring that no more should be made. Generations of given-up
// jobs do not count.
bool Evaluation::congested() const {
  return backlog_bytes_ > static_cast<double>(config_.metrics.backlog_bytes) &&
         !machine_.jobs().idle();
}

void Evaluation::Pause(bool paused) {
  paused_ = paused;
  hooks_.changed();
}

void Evaluation::Drain() {
  draining_ = true;
  hooks_.changed();
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

bool Evaluation::documents_done() const {
  const bool nothing_open = pending_commits_ == 0 && machine_.jobs().idle();
  return nothing_open && (draining_ ? machine_.trials().leased() == 0 : machine_.trials_idle());
}

bool Evaluation::tasks_done() const {
  size_t finished = 0;
  for (size_t t = 0; t < machine_.tasks().size(); ++t)
    finished += machine_.task_finished(t) ? 1 : 0;
  return finished_tasks_.size() + not_aggregated_.size() == finished;
}

bool Evaluation::only_aggregates() const {
  return planned_ && !ending_ && documents_done() && !tasks_done();
}

void Evaluation::CheckEnd() {
  if (ending_ || (!planned_ && !draining_)) return;
  if (!documents_done()) return;
  if (tasks_done()) return End();
  if (!draining_ || gives_up_finishing_) return;
  gives_up_finishing_ = true;  // --resume finishes the task
  support_.loop->After(kFinishPatience, Guarded([this] { End(); }));
}

void Evaluation::End() {
  if (!std::exchange(ending_, true)) hooks_.changed();
  *cancel_ = true;
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
    TaskProgress progress{task.name, task.documents, machine_.generated(t) + under_way[t],
                          machine_.scored(t), ""};
    const auto entry = finished_tasks_.find(t);
    if (entry != finished_tasks_.end())
      progress.headline = Headline(suite_->tasks[t].definition, entry->second.entry);
    documents += task.documents;
    generated += progress.generated;
    scored += progress.scored;
    snapshot.tasks.push_back(std::move(progress));
  }
  if (NeedsStaging(config_))
    snapshot.phases.push_back({"stage", stage_done_, stage_total_, true, stage_note_});
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
  // Documents that an earlier attempt answered say nothing about the speed of this life.
  const int64_t made = generated - generated_at_plan_ - machine_.salvaged_under_way();
  if (since_plan > 1 && made > 0) {
    snapshot.documents_per_s = static_cast<double>(made) / since_plan;
    generate.note = fmt::format("{:.1f} documents/s", snapshot.documents_per_s);
    snapshot.remaining_s = static_cast<double>(documents - generated) / snapshot.documents_per_s;
  }
  if (draining_) {
    int64_t begun = 0;
    for (const int64_t of_task : under_way) begun += of_task;
    snapshot.leased_documents = std::max<int64_t>(0, machine_.leased_documents() - begun);
    if (snapshot.documents_per_s > 0) {
      snapshot.notice_s = static_cast<double>(snapshot.leased_documents) / snapshot.documents_per_s;
    }
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

Json Evaluation::Groups() const {
  Json groups = Json::object();
  if (!suite_) return groups;
  for (const GroupDefinition& group : suite_->groups) groups[group.name] = group.children;
  return groups;
}

Json Evaluation::LiveTimeline() const {
  constexpr size_t kSpansMax = 4000;  // the loop makes them
  return timeline_.Live(MonotonicMicros(), kSpansMax);
}

// Commits and spans that come later are not part of the ending.
RunEnding Evaluation::TakeEnding() {
  *cancel_ = true;
  if (staging_thread_.joinable()) staging_thread_.join();
  if (preparation_thread_.joinable()) preparation_thread_.join();
  std::vector<std::string> problems;
  if (failure_) problems.push_back(failure_->text);
  for (std::string& line : ByCause(machine_.missing())) problems.push_back(std::move(line));
  for (const auto& [task, why] : not_aggregated_)
    problems.push_back("task " + machine_.tasks()[task].name + ": " + why);
  ending_ = ending_taken_ = true;
  RunEnding ending{.directory = json_.Take(),
                   .config = config_,
                   .suite = suite_,
                   .timeline = std::move(timeline_)};
  ending.planned = planned_;
  ending.complete = complete();
  ending.cancelled = cancelled_;
  ending.refused = machine_.refused() || (!not_aggregated_.empty() && machine_.complete());
  if (failure_) ending.failure = failure_->kind;
  ending.problems = std::move(problems);
  ending.record = std::move(record_);
  ending.finished = finished_tasks_;
  ending.engine = engine_info_;
  ending.isolation = isolation_;
  ending.fingerprint = fingerprint_;
  ending.earlier = earlier_;
  ending.begin_us = begin_us_;
  ending.end_us = MonotonicMicros();
  ending.costs = std::make_shared<const RunCosts>(std::move(costs_));
  ending.place = std::make_shared<const CostPlace>(place_);
  ending.generation = std::move(generation_);
  ending.database = support_.database;
  return ending;
}

}  // namespace evald
