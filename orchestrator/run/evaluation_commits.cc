// Files that workers and metric processes hand over are committed to the database. The task whose
// last document is scored is then finished.
#include <fmt/format.h>

#include <numeric>

#include "base/fail_point.h"
#include "base/log.h"
#include "base/names.h"
#include "orchestrator/run/evaluation_scheduling.h"
#include "orchestrator/run/run_results.h"

namespace evald {
namespace {

std::vector<int64_t> DocumentsOf(int64_t first, int64_t end) {
  std::vector<int64_t> documents(static_cast<size_t>(end - first));
  std::iota(documents.begin(), documents.end(), first);
  return documents;
}

// The file of each of a task's documents that is wanted, in their order, as an index into *picked;
// kNoFile for other documents. Puts those of the run's files that hold any of the documents into
// *picked.
std::vector<size_t> PickFiles(const std::vector<CommittedFile>& files,
                              const std::map<int64_t, size_t>& file_of,
                              const std::map<int64_t, size_t>& wanted, int64_t documents,
                              const std::filesystem::path& run, std::vector<FileAndHash>* picked) {
  std::map<size_t, size_t> place;  // index into *picked, by index into `files`
  std::vector<size_t> of(static_cast<size_t>(documents), FinishedTask::kNoFile);
  for (const auto& [document, scores] : wanted) {
    const size_t file = file_of.at(document);
    const auto [found, fresh] = place.try_emplace(file, picked->size());
    if (fresh) picked->push_back({run / files[file].path, files[file].hash});
    of.at(static_cast<size_t>(document)) = found->second;
  }
  return of;
}

}  // namespace

// By then run.json names the device that made the generations.
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
  json_.WhenWritten(
      [database = support_.database, commit, committed] { database->Post(commit, committed); });
}

void Evaluation::GenerationsCommitted(const CommittedFile& file, const std::vector<int64_t>& won) {
  FailPoint("run.generations_committed");
  const size_t index = record_.generations.size();
  record_.generations.push_back(file);
  for (const int64_t document : won) record_.generated[file.task][document] = index;
  if (!machine_.judging_stopped(task_index_.at(file.task)))
    backlog_bytes_ += GeneratedBytes(record_, file.task, won);
  failing_.clear();
  machine_.GenerationsCommitted(task_index_.at(file.task), won, file.path, file.trial,
                                file.attempt);
  hooks_.changed();
  CheckEnd();
}

CommittedFile Evaluation::ScoresOf(const MetricJob& job, const protocol::JobDone& done) const {
  CommittedFile file;
  file.task = machine_.tasks()[job.task].name;
  file.trial = job.trial;
  file.attempt = job.attempt;
  file.first = job.documents.first;
  file.end = job.documents.end;
  file.path = machine_.ScoresFile(job);
  file.hash = done.hash;
  file.bytes = done.bytes;
  return file;
}

void Evaluation::CommitScores(const MetricJob& job, const CommittedFile& file,
                              const std::vector<int64_t>& documents) {
  FailPoint("run.scores_reported");
  ++pending_commits_;
  auto won = std::make_shared<std::vector<int64_t>>();
  support_.database->Post(
      [run = id(), file, won, documents](RunStore& store) {
        *won = store.Commit(run, FileKind::kScores, file, documents);
      },
      Guarded([this, file, won, task = job.task] {
        --pending_commits_;
        if (!ending_taken_) ScoresCommitted(task, file, *won);
      }));
}

void Evaluation::ScoresCommitted(size_t task, const CommittedFile& file,
                                 const std::vector<int64_t>& won) {
  FailPoint("run.scores_committed");
  const size_t index = record_.scores.size();
  record_.scores.push_back(file);
  for (const int64_t document : won) record_.scored[file.task][document] = index;
  failing_.clear();
  machine_.ScoresCommitted(task, won);
  const bool was_congested = congested();
  backlog_bytes_ -= GeneratedBytes(record_, file.task, won);
  if (was_congested && !congested()) hooks_.changed();
  if (machine_.task_finished(task)) FinishTask(task);
  CheckEnd();
}

// The task with the files of those documents that are scored.
FinishedTask Evaluation::TaskWithFiles(size_t task) const {
  const SuiteTask& suite_task = suite_->tasks[task];
  const std::string& name = suite_task.definition.name;
  FinishedTask finished;
  finished.definition = suite_task.definition;
  finished.prepared = suite_task.prepared;
  finished.samples = path_ / fmt::format("samples_{}.jsonl", FolderNameOf(name));
  finished.bootstrap_iters = config_.bootstrap_iters;
  finished.code = config_.task_code;
  finished.code.memory_bytes = config_.limits.memory_bytes;
  finished.user = support_.user;
  finished.cancel = cancel_;
  const auto& scored = record_.scored.at(name);
  finished.generation_of = PickFiles(record_.generations, record_.generated.at(name), scored,
                                     suite_task.documents, path_, &finished.generation_files);
  finished.score_of =
      PickFiles(record_.scores, scored, scored, suite_task.documents, path_, &finished.score_files);
  return finished;
}

void Evaluation::FinishTask(size_t task) {
  const std::string& name = suite_->tasks[task].definition.name;
  support_.finisher->Submit(
      TaskWithFiles(task), Guarded([this, task, name](TaskResult result) {
        hooks_.event("task.done", {{"task", name}, {"score", HeadlineScore(result.entry)}});
        FailPoint("run.task_finished");
        if (ending_taken_) return;
        finished_tasks_[task] = std::move(result);
        CheckEnd();
      }),
      Guarded([this, task, name](const Error& error) {
        if (ending_) return;  // the aggregation was stopped
        if (error.kind() != ErrorKind::kInput) {
          return Fail(ErrorKind::kInfrastructure, fmt::format("task {}: {}", name, error.what()));
        }
        log::Warn("task {} cannot be aggregated: {}", name, error.what());
        not_aggregated_[task] = error.what();
        CheckEnd();
      }));
}

}  // namespace evald
