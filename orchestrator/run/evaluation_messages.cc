#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/log.h"
#include "orchestrator/run/causes.h"
#include "orchestrator/run/evaluation_scheduling.h"
#include "orchestrator/run/reported_file.h"
#include "orchestrator/run/wire_id.h"

namespace evald {
namespace {

// The prefix of HostDoubts::Refusal::what for a task: "task gsm8k".
const std::string kTaskRefusal = "task ";
// Slack for the rounding of a worker's clock: a report and its lease are stamped by the same clock.
constexpr double kClockSlackSeconds = 1;

// An upper bound for the time that a process computed on one device since its lease.
double SecondsSince(std::optional<int64_t> leased_us) {
  return leased_us ? static_cast<double>(MonotonicMicros() - *leased_us) / 1e6 + kClockSlackSeconds
                   : 0;
}

}  // namespace

std::optional<double> Evaluation::Heard(const std::string& process,
                                        const protocol::Message& message) {
  if (const auto* slice = std::get_if<protocol::SliceDone>(&message)) {
    OnSliceDone(process, *slice);
  } else if (const auto* progress = std::get_if<protocol::Progress>(&message)) {
    OnProgress(process, *progress);
  } else if (const auto* shortened = std::get_if<protocol::Shortened>(&message)) {
    OnShortened(process, *shortened);
  } else if (const auto* done = std::get_if<protocol::TrialDone>(&message)) {
    return OnTrialDone(process, *done);
  } else if (const auto* failed = std::get_if<protocol::TrialFailed>(&message)) {
    OnTrialFailed(process, *failed);
  } else if (const auto* scored = std::get_if<protocol::JobDone>(&message)) {
    OnJobDone(process, *scored);
  } else if (const auto* unscored = std::get_if<protocol::JobFailed>(&message)) {
    OnJobFailed(process, *unscored);
  } else if (const auto* span = std::get_if<protocol::Span>(&message)) {
    OnSpan(process, *span);
  }
  return std::nullopt;
}

void Evaluation::OnSliceDone(const std::string& worker, const protocol::SliceDone& done) {
  if (ending_) return;
  const auto task = task_index_.find(done.task);
  const int64_t trial = IdOfWireId(done.trial);
  const double most_s = SecondsSince(machine_.trials().LeasedAt(processes_.Of(worker), trial));
  const bool backup = machine_.is_backup(trial);
  const std::string file =
      task == task_index_.end()
          ? ""
          : machine_.GenerationsFile(task->second, done.first, trial, done.attempt);
  // Otherwise another file would be read, and renamed if it were damaged
  if (task != task_index_.end() && done.file != Absolute(file)) {
    const std::string why =
        fmt::format("it wrote {}, but the lease says {}", done.file, Absolute(file));
    return OnTrialFailed(worker, {done.trial, done.attempt, true, why});
  }
  if (task == task_index_.end() ||
      !machine_.SliceReported(processes_.Of(worker), trial, done.attempt, task->second,
                              {done.first, done.end})) {
    return Ignore(worker, fmt::format("a late or unknown slice of trial {}", trial));
  }
  if (done.requests > 0)
    generated_at_plan_ += done.salvaged * (done.end - done.first) / done.requests;
  // Later attempts, and tasks of which no earlier life left a part, salvage work of this life.
  if (done.attempt == 1 && left_parts_.contains(done.task)) earlier_.requests += done.salvaged;
  // Salvaged requests took no time now, so the slice's time measures nothing.
  const bool whole = done.attempt == 1 && !backup && done.salvaged == 0;
  if (whole) {
    const int64_t documents = done.end - done.first;
    const double device_s = std::min(done.device_seconds, most_s),
                 longest_s = std::min(done.longest_seconds, most_s);
    costs_.SawSlice(task->second, device_of_[worker], documents, done.tokens_in, done.tokens_out,
                    device_s, longest_s);
    machine_.Measured(processes_.Of(worker), task->second, documents, device_s, longest_s);
  }
  const CommittedFile made{done.task,     trial,          done.attempt,   done.first,
                           done.end,      file,           done.hash,      done.bytes,
                           done.requests, done.truncated, done.tokens_in, done.tokens_out};
  WhenSound(
      worker, FileKind::kGenerations, made,
      [this, made, worker] {
        makers_[made.path] = worker;
        CommitGenerations(made);
      },
      [this, made, worker, task = task->second](const std::string& why) {
        machine_.SliceLost(task, {made.first, made.end});
        Lost(worker, made, why);
      });
}

// ---- belief in hosts

Witness Evaluation::WitnessOf(const std::string& process) const {
  return hooks_.witness ? hooks_.witness(process) : Witness{};
}

// Whether the refusal is believed. If not, other hosts go on with the run, and this host does not.
bool Evaluation::Believed(const std::string& process, const HostDoubts::Refusal& refusal) {
  const Witness from = WitnessOf(process);
  if (doubts_.Refused(from, refusal)) return true;
  log::Warn("run {}: host '{}' gets nothing more of it while another host is there: {}", id_,
            from.host, refusal.cause);
  return false;
}

bool Evaluation::FailureCounts(const std::string& process) {
  const Witness from = WitnessOf(process);
  const bool doubted = doubts_.doubted(from);
  if (doubts_.Failed(from)) return true;
  if (!doubted && doubts_.doubted(from)) {
    log::Warn(
        "run {}: host '{}' has failed {} times and gets nothing more of it while another host is "
        "there",
        id_, from.host, HostDoubts::kFailuresMax);
  }
  return false;
}

void Evaluation::CarryOut(const HostDoubts::Refusal& refusal) {
  if (!refusal.what.starts_with(kTaskRefusal)) return Fail(refusal.kind, refusal.cause);
  const auto task = task_index_.find(refusal.what.substr(kTaskRefusal.size()));
  if (task != task_index_.end()) machine_.RefuseTask(task->second, refusal.cause);
}

// Warns once for each process: anyone with a worker token can send such messages without end.
void Evaluation::Ignore(const std::string& process, const std::string& what) {
  if (ignored_.insert(process).second)
    log::Warn("{}: {} is ignored, as is all else that it does not hold", process, what);
}

// Commits the file. If it comes from another host, first checks that the run can go on with it.
void Evaluation::WhenSound(const std::string& process, FileKind kind, const CommittedFile& file,
                           std::function<void()> commit,
                           std::function<void(const std::string& why)> lost,
                           std::vector<int64_t> documents) {
  if (WitnessOf(process).trusted) return commit();
  const SuiteTask& task = suite_->tasks[task_index_.at(file.task)];
  ReportedFile reported{Absolute(file.path), file.bytes,    file.hash,
                        file.first,          file.end,      kind == FileKind::kScores,
                        task.definition,     task.prepared, std::move(documents)};
  ++pending_commits_;
  support_.finisher->Check(
      std::move(reported), support_.user,
      Guarded([this, commit = std::move(commit), lost = std::move(lost)](const std::string& why) {
        --pending_commits_;
        if (ending_taken_) return;
        if (why.empty()) {
          commit();
        } else if (!ending_) {
          lost(why);
          hooks_.changed();
          CheckEnd();
        }
      }));
}

// A file that was reported is not there, or is none that the run can go on with. A few of these end
// the run, if they count: it would never end otherwise.
void Evaluation::Lost(const std::string& process, const CommittedFile& file,
                      const std::string& why) {
  const std::string text =
      fmt::format("{}: its file {} does not count: {}", process, file.path, why);
  log::Warn("{}", text);
  if (FailureCounts(process) && ++files_lost_ >= config_.workers.max_attempts)
    Fail(ErrorKind::kInfrastructure, text);
}

void Evaluation::OnProgress(const std::string& worker, const protocol::Progress& progress) {
  if (!planned_ || ending_) return;
  machine_.Progressed(processes_.Of(worker),
                      {.trial = IdOfWireId(progress.trial),
                       .attempt = progress.attempt,
                       .requests_done = progress.requests_done,
                       .oldest_s = progress.oldest_seconds,
                       .salvaged = progress.salvaged},
                      MonotonicMicros());
  const auto task = task_index_.find(progress.oldest_task);
  if (task != task_index_.end())
    machine_.Overdue(processes_.Of(worker), task->second, progress.oldest_seconds);
}

void Evaluation::OnShortened(const std::string& worker, const protocol::Shortened& shortened) {
  const auto task = task_index_.find(shortened.task);
  if (ending_ || task == task_index_.end()) return;
  const int64_t trial = IdOfWireId(shortened.trial);
  if (machine_.Shortened(processes_.Of(worker), trial, shortened.attempt, task->second,
                         shortened.first, shortened.end))
    hooks_.changed();
}

std::optional<double> Evaluation::OnTrialDone(const std::string& worker,
                                              const protocol::TrialDone& done) {
  if (ending_) return std::nullopt;
  const int64_t trial = IdOfWireId(done.trial);
  if (!machine_.trials().Holds(processes_.Of(worker), trial, done.attempt)) {
    Ignore(worker, fmt::format("the end of trial {}", trial));
    return std::nullopt;
  }
  const double most_s = SecondsSince(machine_.trials().LeasedAt(processes_.Of(worker), trial));
  if (machine_.whole(trial) || FailureCounts(worker)) {
    machine_.TrialDone(processes_.Of(worker), trial, done.attempt);
  } else {
    machine_.TrialGivenBack(processes_.Of(worker), trial, done.attempt);
  }
  CheckEnd();
  return std::min(done.device_seconds, most_s);
}

// What a worker says of a file of the staged checkpoint, with the path that the user knows.
std::string Evaluation::InUsersWords(std::string message) const {
  if (!staged_ || config_.checkpoint.empty()) return message;
  const std::string staged = staged_->directory().string(), own = config_.checkpoint.string();
  for (size_t at = message.find(staged); at != std::string::npos;
       at = message.find(staged, at + own.size()))
    message.replace(at, staged.size(), own);
  return message;
}

// One cause is one line, however many trials or jobs it stops; the run's end says how many.
void Evaluation::WarnOnce(const std::string& what, const std::string& cause) {
  failing_ = fmt::format("{}: {}", what, cause);
  if (warned_.size() < kCausesMax && warned_.insert(CauseKey(cause)).second) {
    log::Warn("{}: {}", what, cause);
  } else {
    log::Debug("{}: {}", what, cause);
  }
}

void Evaluation::OnTrialFailed(const std::string& worker, const protocol::TrialFailed& told) {
  if (ending_) return;
  protocol::TrialFailed failed = told;
  failed.message = InUsersWords(std::move(failed.message));
  const int64_t trial = IdOfWireId(failed.trial);
  if (!machine_.trials().Holds(processes_.Of(worker), trial, failed.attempt)) {
    return Ignore(worker, fmt::format("the failure of trial {}", trial));
  }
  WarnOnce(fmt::format("worker {}: trial {} failed", worker, trial), failed.message);
  const auto task = task_index_.find(failed.task);
  const bool of_task = !failed.retry && task != task_index_.end();
  if (of_task &&
      Believed(worker, {kTaskRefusal + failed.task, ErrorKind::kInput, failed.message})) {
    machine_.RequestRefused(processes_.Of(worker), trial, failed.attempt, task->second,
                            failed.message);
  } else if (!of_task && (machine_.whole(trial) || FailureCounts(worker))) {
    machine_.TrialFailed(processes_.Of(worker), trial, failed.attempt, failed.message,
                         failed.retry);
  } else {
    machine_.TrialGivenBack(processes_.Of(worker), trial, failed.attempt);
  }
  CheckEnd();
}

void Evaluation::OnJobDone(const std::string& metric_process, const protocol::JobDone& done) {
  if (ending_) return;
  const double most_s =
      SecondsSince(machine_.jobs().LeasedAt(processes_.Of(metric_process), IdOfWireId(done.job)));
  const auto job =
      machine_.JobDone(processes_.Of(metric_process), IdOfWireId(done.job), done.attempt, done.end);
  if (!job) return Ignore(metric_process, fmt::format("the end of job {}", IdOfWireId(done.job)));
  const auto isolation = isolation_of_.find(metric_process);
  if (isolation != isolation_of_.end()) isolation_ = isolation->second;
  const int64_t documents = job->documents.size();
  const double slot_s = std::min(done.slot_seconds, most_s);
  costs_.SawJob(job->task, documents, slot_s);
  machine_.MeasuredScoring(job->task, documents, slot_s);
  const CommittedFile made = ScoresOf(*job, done);
  const std::vector<int64_t> scored = NoteUnscored(metric_process, *job, done);
  if (scored.empty()) return CheckEnd();
  WhenSound(
      metric_process, FileKind::kScores, made,
      [this, job = *job, made, scored] { CommitScores(job, made, scored); },
      [this, job = *job, made, metric_process](const std::string& why) {
        machine_.ScoresLost(job);
        Lost(metric_process, made, why);
      },
      scored);
}

// Notes the documents of the job on which the judge gave no verdict. Returns the others.
std::vector<int64_t> Evaluation::NoteUnscored(const std::string& metric_process,
                                              const MetricJob& job, const protocol::JobDone& done) {
  std::set<int64_t> unscored;
  const bool any = !done.unscored.empty() || !done.stopped.empty();
  // Another host may reach the judge.
  const bool counts = any && machine_.tasks()[job.task].judged && FailureCounts(metric_process);
  for (const protocol::Unscored& range : done.unscored) {
    DocumentRange documents{std::max(range.first, job.documents.first),
                            std::min(range.end, job.documents.end)};
    if (documents.size() <= 0) continue;
    for (int64_t i = documents.first; i < documents.end; ++i) unscored.insert(i);
    if (!counts) {
      MetricJob again = job;
      again.documents = documents;
      machine_.ScoresLost(again);
      continue;
    }
    log::Warn("run {}: task {}, documents {} to {} have no verdict: {}", id_,
              machine_.tasks()[job.task].name, documents.first, documents.end - 1, range.cause);
    machine_.Unscored(job.task, documents, range.cause);
    WaitsNoMore(job.task, documents);
  }
  if (counts && !done.stopped.empty() && !machine_.judging_stopped(job.task)) {
    log::Warn("run {}: task {}: the judge is asked no more: {}", id_,
              machine_.tasks()[job.task].name, done.stopped);
    for (const DocumentRange documents : machine_.StopJudging(job.task, done.stopped))
      WaitsNoMore(job.task, documents);
  }
  std::vector<int64_t> scored;
  for (int64_t i = job.documents.first; i < job.documents.end; ++i) {
    if (!unscored.contains(i)) scored.push_back(i);
  }
  return scored;
}

// The documents' generations wait for no scoring in this life of the run.
void Evaluation::WaitsNoMore(size_t task, DocumentRange documents) {
  std::vector<int64_t> list;
  for (int64_t i = documents.first; i < documents.end; ++i) list.push_back(i);
  const bool was_congested = congested();
  backlog_bytes_ -= GeneratedBytes(record_, machine_.tasks()[task].name, list);
  if (was_congested && !congested()) hooks_.changed();
}

void Evaluation::OnJobFailed(const std::string& metric_process, const protocol::JobFailed& failed) {
  if (ending_) return;
  const int64_t job = IdOfWireId(failed.job);
  if (!machine_.jobs().Holds(processes_.Of(metric_process), job, failed.attempt)) {
    return Ignore(metric_process, fmt::format("the failure of job {}", job));
  }
  if (FailureCounts(metric_process)) {
    machine_.JobFailed(processes_.Of(metric_process), job, failed.attempt, failed.message,
                       failed.retry);
  } else {
    machine_.JobGivenBack(processes_.Of(metric_process), job, failed.attempt);
  }
  WarnOnce(fmt::format("metric process {}: job {} failed", metric_process, job), failed.message);
  CheckEnd();
}

void Evaluation::OnSpan(const std::string& process, const protocol::Span& span) {
  if (ending_taken_) return;
  TimelineSpan own{span.name, span.begin, span.end, span.args};
  // Trials of this run, by its own numbers
  if (own.args.is_object() && own.args.contains("trials")) {
    Json trials = Json::array();
    for (const Json& trial : own.args["trials"]) {
      if (trial.is_number_integer() && RunOfWireId(trial) == number_)
        trials.push_back(IdOfWireId(trial));
    }
    own.args["trials"] = std::move(trials);
  }
  if (own.args.is_object() && own.args.contains("job"))
    own.args["job"] = IdOfWireId(own.args["job"]);
  timeline_.Add(process, std::move(own));
}

}  // namespace evald
