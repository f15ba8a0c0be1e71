#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/clock.h"
#include "base/fail_point.h"
#include "base/log.h"
#include "base/names.h"
#include "orchestrator/report/run_results.h"
#include "orchestrator/run/evaluation.h"
#include "orchestrator/run/wire_id.h"

namespace evald {
namespace {

std::vector<int64_t> DocumentsOf(int64_t first, int64_t end) {
  std::vector<int64_t> documents(static_cast<size_t>(end - first));
  std::iota(documents.begin(), documents.end(), first);
  return documents;
}

// Of a task's documents, in their order, each one's file, as an index into those of the run's files that any of them
// lies in, which go to *picked.
std::vector<size_t> PickFiles(const std::vector<CommittedFile>& files, const std::map<int64_t, size_t>& file_of,
                              int64_t documents, const std::filesystem::path& run, std::vector<FileAndHash>* picked) {
  std::map<size_t, size_t> place;  // in *picked, by the place in `files`
  std::vector<size_t> of;
  for (int64_t document = 0; document < documents; ++document) {
    const size_t file = file_of.at(document);
    const auto [found, fresh] = place.try_emplace(file, picked->size());
    if (fresh) picked->push_back({run / files[file].path, files[file].hash});
    of.push_back(found->second);
  }
  return of;
}

}  // namespace

bool Evaluation::Heard(const std::string& process, const protocol::Message& message) {
  if (const auto* slice = std::get_if<protocol::SliceDone>(&message)) {
    OnSliceDone(process, *slice);
  } else if (const auto* progress = std::get_if<protocol::Progress>(&message)) {
    OnProgress(process, *progress);
  } else if (const auto* shortened = std::get_if<protocol::Shortened>(&message)) {
    OnShortened(*shortened);
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
  return true;
}

void Evaluation::OnSliceDone(const std::string& worker, const protocol::SliceDone& done) {
  if (ending_) return;
  const auto task = task_index_.find(done.task);
  const int64_t trial = IdOfWireId(done.trial);
  const bool copy = machine_.is_copy(trial);
  const std::string file =
      task == task_index_.end() ? "" : machine_.GenerationsFile(task->second, done.first, trial, done.attempt);
  if (task != task_index_.end() && done.file != Absolute(file)) {  // it would be read, and renamed if it were damaged
    const std::string why = fmt::format("it wrote {}, but the lease says {}", done.file, Absolute(file));
    return OnTrialFailed(worker, {done.trial, done.attempt, true, why});
  }
  if (task == task_index_.end() ||
      !machine_.SliceReported(trial, done.attempt, task->second, {done.first, done.end})) {
    log::Warn("{}: a late or unknown slice of trial {} is ignored", worker, trial);
    return;
  }
  // Later attempts salvage what this life did, too.
  if (done.attempt == 1) earlier_.requests += done.salvaged;
  // What was salvaged took no time now.
  const bool whole = done.attempt == 1 && !copy && machine_.fresh(task->second);
  if (whole) {
    const int64_t documents = done.end - done.first;
    costs_.SawSlice(task->second, device_of_[worker], documents, done.tokens_in, done.tokens_out, done.device_seconds,
                    done.longest_seconds);
    machine_.Measured(worker, task->second, documents, done.device_seconds, done.longest_seconds);
  }
  makers_[file] = worker;
  CommitGenerations({done.task, trial, done.attempt, done.first, done.end, file, done.hash, done.bytes, done.requests,
                     done.truncated, done.tokens_in, done.tokens_out});
}

// Whose device made them stands in run.json by then.
void Evaluation::CommitGenerations(const CommittedFile& file) {
  FailPoint("run.generations_reported");
  ++pending_commits_;
  auto won = std::make_shared<std::vector<int64_t>>();
  const auto commit = [run = id(), file, won](RunStore& store) {
    *won = store.Commit(run, FileKind::kGenerations, file, DocumentsOf(file.first, file.end));
  };
  const auto committed = Guarded([this, file, won] {
    --pending_commits_;
    if (!ending_taken_) GenerationsCommitted(file, *won);
  });
  json_.WhenWritten([database = support_.database, commit, committed] { database->Post(commit, committed); });
}

void Evaluation::GenerationsCommitted(const CommittedFile& file, const std::vector<int64_t>& won) {
  FailPoint("run.generations_committed");
  const size_t index = record_.generations.size();
  record_.generations.push_back(file);
  for (const int64_t document : won) record_.generated[file.task][document] = index;
  backlog_bytes_ += GeneratedBytes(record_, file.task, won);
  machine_.GenerationsCommitted(task_index_.at(file.task), won, file.path, file.trial, file.attempt);
  hooks_.changed();
  CheckEnd();
}

void Evaluation::OnProgress(const std::string& worker, const protocol::Progress& progress) {
  if (!planned_ || ending_) return;
  machine_.Progressed(worker, IdOfWireId(progress.trial), progress.attempt, progress.requests_done,
                      progress.oldest_seconds, MonotonicMicros());
  const auto task = task_index_.find(progress.oldest_task);
  if (task != task_index_.end()) machine_.Overdue(task->second, progress.oldest_seconds);
}

void Evaluation::OnShortened(const protocol::Shortened& shortened) {
  const auto task = task_index_.find(shortened.task);
  if (ending_ || task == task_index_.end()) return;
  const int64_t trial = IdOfWireId(shortened.trial);
  if (machine_.Shortened(trial, shortened.attempt, task->second, shortened.first, shortened.end)) hooks_.changed();
}

bool Evaluation::OnTrialDone(const std::string& worker, const protocol::TrialDone& done) {
  if (ending_) return false;
  const bool counts = machine_.TrialDone(IdOfWireId(done.trial), done.attempt);
  if (!counts) log::Warn("{}: late end of trial {} is ignored", worker, IdOfWireId(done.trial));
  CheckEnd();
  return counts;
}

void Evaluation::OnTrialFailed(const std::string& worker, const protocol::TrialFailed& failed) {
  if (ending_) return;
  const int64_t trial = IdOfWireId(failed.trial);
  log::Warn("worker {}: trial {} failed: {}", worker, trial, failed.message);
  const auto task = task_index_.find(failed.task);
  if (!failed.retry && task != task_index_.end()) {
    machine_.RequestRefused(trial, failed.attempt, task->second, failed.message);
  } else {
    machine_.TrialFailed(trial, failed.attempt, failed.message, failed.retry);
  }
  CheckEnd();
}

void Evaluation::OnJobDone(const std::string& scorer, const protocol::JobDone& done) {
  if (ending_) return;
  const auto isolation = isolation_of_.find(scorer);
  if (isolation != isolation_of_.end()) isolation_ = isolation->second;
  const auto job = machine_.JobDone(IdOfWireId(done.job), done.attempt);
  if (!job) return log::Warn("{}: late end of job {} is ignored", scorer, IdOfWireId(done.job));
  const int64_t documents = job->documents.size();
  costs_.SawJob(job->task, documents, done.slot_seconds);
  machine_.MeasuredScoring(job->task, documents, done.slot_seconds);
  CommitScores(*job, done);
}

void Evaluation::CommitScores(const MetricJob& job, const protocol::JobDone& done) {
  FailPoint("run.scores_reported");
  ++pending_commits_;
  CommittedFile file;
  file.task = machine_.tasks()[job.task].name;
  file.trial = job.trial;
  file.attempt = job.attempt;
  file.first = job.documents.first;
  file.end = job.documents.end;
  file.path = job.file;
  file.hash = done.hash;
  file.bytes = done.bytes;
  auto won = std::make_shared<std::vector<int64_t>>();
  support_.database->Post(
      [run = id(), file, won](RunStore& store) {
        *won = store.Commit(run, FileKind::kScores, file, DocumentsOf(file.first, file.end));
      },
      Guarded([this, file, won, task = job.task] {
        --pending_commits_;
        if (!ending_taken_) ScoresCommitted(task, file, *won);
      }));
}

void Evaluation::ScoresCommitted(size_t task, const CommittedFile& file, const std::vector<int64_t>& won) {
  FailPoint("run.scores_committed");
  const size_t index = record_.scores.size();
  record_.scores.push_back(file);
  for (const int64_t document : won) record_.scored[file.task][document] = index;
  machine_.ScoresCommitted(task, won);
  const bool was_congested = congested();
  backlog_bytes_ -= GeneratedBytes(record_, file.task, won);
  if (was_congested && !congested()) hooks_.changed();
  if (machine_.task_finished(task)) FinishTask(task);
  CheckEnd();
}

void Evaluation::FinishTask(size_t task) {
  const SuiteTask& suite_task = suite_->tasks[task];
  const std::string& name = suite_task.definition.name;
  FinishedTask finished;
  finished.definition = suite_task.definition;
  finished.prepared = suite_task.prepared;
  finished.samples = path_ / fmt::format("samples_{}.jsonl", FolderNameOf(name));
  finished.bootstrap_iters = config_.bootstrap_iters;
  finished.user = support_.user;
  finished.cancel = cancel_;
  finished.generation_of = PickFiles(record_.generations, record_.generated[name], suite_task.documents, path_,
                                     &finished.generation_files);
  finished.score_of =
      PickFiles(record_.scores, record_.scored[name], suite_task.documents, path_, &finished.score_files);
  support_.finisher->Submit(std::move(finished), Guarded([this, task, name](TaskResult result) {
                              hooks_.event("task.done", {{"task", name}, {"score", HeadlineScore(result.entry)}});
                              FailPoint("run.task_finished");
                              if (ending_taken_) return;
                              finished_tasks_[task] = std::move(result);
                              CheckEnd();
                            }),
                            Guarded([this, name](const Error& error) {
                              if (ending_) return;  // it was stopped
                              Fail(error.kind() == ErrorKind::kInput ? ErrorKind::kInput : ErrorKind::kInfrastructure,
                                   fmt::format("task {}: {}", name, error.what()));
                            }));
}

void Evaluation::OnJobFailed(const std::string& scorer, const protocol::JobFailed& failed) {
  if (ending_) return;
  const int64_t job = IdOfWireId(failed.job);
  if (!machine_.JobFailed(job, failed.attempt, failed.message, failed.retry)) {
    return log::Warn("{}: late failure of job {} is ignored", scorer, job);
  }
  log::Warn("metric process {}: job {} failed: {}", scorer, job, failed.message);
  CheckEnd();
}

void Evaluation::OnSpan(const std::string& process, const protocol::Span& span) {
  if (ending_taken_) return;
  TimelineSpan own{span.name, span.begin, span.end, span.args};
  if (own.args.is_object() && own.args.contains("trials")) {  // of this run, by its own numbers
    Json trials = Json::array();
    for (const Json& trial : own.args["trials"]) {
      if (trial.is_number_integer() && RunOfWireId(trial) == number_) trials.push_back(IdOfWireId(trial));
    }
    own.args["trials"] = std::move(trials);
  }
  if (own.args.is_object() && own.args.contains("job")) own.args["job"] = IdOfWireId(own.args["job"]);
  timeline_.Add(process, std::move(own));
}

}  // namespace evald
