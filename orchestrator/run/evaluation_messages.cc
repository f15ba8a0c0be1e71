#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <numeric>

#include "base/clock.h"
#include "orchestrator/run/evaluation.h"

namespace evald {
namespace {

std::vector<int64_t> DocumentsOf(int64_t first, int64_t end) {
  std::vector<int64_t> documents(static_cast<size_t>(end - first));
  std::iota(documents.begin(), documents.end(), first);
  return documents;
}

}  // namespace

void Evaluation::OnMessage(const std::string& id, const protocol::Message& message) {
  if (ending_) return;
  try {
    if (workers_->Owns(id)) {
      OnWorkerMessage(id, message);
    } else {
      OnScorerMessage(id, message);
    }
  } catch (const Error& e) {
    Fail(e.kind(), e.what());
  }
}

void Evaluation::OnWorkerMessage(const std::string& id, const protocol::Message& message) {
  machine_.WorkerHeard(id, MonotonicMicros());
  if (std::get_if<protocol::Hello>(&message) != nullptr) {
    workers_->Connected(id);
    if (staging_done_) SendLoad(id);
  } else if (const auto* loaded = std::get_if<protocol::Loaded>(&message)) {
    OnLoaded(id, *loaded);
  } else if (const auto* want = std::get_if<protocol::Want>(&message)) {
    workers_->AddWants(id, want->count);
    ServeWorkers();
  } else if (const auto* slice = std::get_if<protocol::SliceDone>(&message)) {
    OnSliceDone(id, *slice);
  } else if (const auto* done = std::get_if<protocol::TrialDone>(&message)) {
    OnTrialDone(id, *done);
  } else if (const auto* failed = std::get_if<protocol::TrialFailed>(&message)) {
    OnTrialFailed(id, *failed);
  } else if (const auto* span = std::get_if<protocol::Span>(&message)) {
    OnSpan(id, *span);
  }
}

void Evaluation::OnScorerMessage(const std::string& id, const protocol::Message& message) {
  machine_.ScorerHeard(id, MonotonicMicros());
  if (const auto* hello = std::get_if<protocol::Hello>(&message)) {
    isolation_ = hello->engine;
    scorers_->Connected(id);
    scorers_->SetReady(id);
  } else if (const auto* want = std::get_if<protocol::Want>(&message)) {
    scorers_->AddWants(id, want->count);
    ServeScorers();
  } else if (const auto* done = std::get_if<protocol::JobDone>(&message)) {
    OnJobDone(id, *done);
  } else if (const auto* failed = std::get_if<protocol::JobFailed>(&message)) {
    spdlog::warn("metric process {}: job {} failed: {}", id, failed->job, failed->message);
    machine_.JobFailed(id, failed->job, failed->message, failed->retry);
    ServeScorers();
    CheckEnd();
  } else if (const auto* span = std::get_if<protocol::Span>(&message)) {
    OnSpan(id, *span);
  }
}

void Evaluation::SendLoad(const std::string& worker) {
  agent_->Send(worker, protocol::Load{staged_ ? staged_->directory().string() : "",
                                      staged_ ? staged_->fingerprint() : ""});
}

void Evaluation::OnLoaded(const std::string& id, const protocol::Loaded& loaded) {
  workers_->SetReady(id);
  engine_info_ = loaded.engine;
  const Json scoring = loaded.report.value("scoring", Json());  // of an engine that tests itself
  if (scoring.is_object() && !scoring.value("offered", true)) engine_info_["refused"] = scoring.value("reason", "");
  MaybePlan();
  ServeWorkers();
}

void Evaluation::ServeWorkers() {
  if (!planned_ || draining_ || ending_) return;
  // One each in turn, so that the first to ask does not take what another could do at once.
  for (bool any = true; any;) {
    any = false;
    for (const std::string& id : workers_->ids()) {
      if (!workers_->TakeWant(id)) continue;
      const auto lease = machine_.LeaseTrial(id, MonotonicMicros());
      if (!lease) {
        workers_->ReturnWant(id);
        return;
      }
      any = true;
      protocol::Lease message{lease->trial, lease->attempt, {}};
      for (const LeasedSlice& slice : lease->slices) {
        const SuiteTask& task = suite_->tasks[slice.task];
        protocol::Slice sent{task.definition.name, task.prepared.string(), task.tokenizer_key,
                             slice.documents.first, slice.documents.end, Absolute(slice.file), {}};
        for (const std::string& file : slice.salvage) sent.salvage.push_back(Absolute(file));
        message.slices.push_back(std::move(sent));
      }
      database_->Post([run = directory_.id(), id, trial = lease->trial, attempt = lease->attempt](
                          RunStore& store) { store.RecordLease(run, trial, attempt, id); });
      agent_->Send(id, message);
    }
  }
}

void Evaluation::ServeScorers() {
  if (!planned_ || ending_) return;
  for (bool any = true; any;) {
    any = false;
    for (const std::string& id : scorers_->ids()) {
      if (!scorers_->TakeWant(id)) continue;
      const auto job = machine_.LeaseJob(id, MonotonicMicros());
      if (!job) {
        scorers_->ReturnWant(id);
        return;
      }
      any = true;
      const SuiteTask& task = suite_->tasks[job->task];
      agent_->Send(id, protocol::Job{job->job, task.definition.name, task.prepared.string(),
                                     job->documents.first, job->documents.end,
                                     Absolute(job->generations), Absolute(job->file)});
    }
  }
}

void Evaluation::OnSliceDone(const std::string& id, const protocol::SliceDone& done) {
  const auto task = task_index_.find(done.task);
  if (task == task_index_.end() ||
      !machine_.SliceReported(done.trial, done.attempt, task->second, {done.first, done.end})) {
    spdlog::warn("{}: a late or unknown slice of trial {} is ignored", id, done.trial);
    return;
  }
  CommitGenerations({done.task, done.trial, done.attempt, done.first, done.end,
                     std::filesystem::path(done.file).lexically_relative(directory_.path()).string(),
                     done.hash, done.bytes, done.requests, done.truncated, done.tokens_in,
                     done.tokens_out});
}

void Evaluation::CommitGenerations(const CommittedFile& file) {
  ++pending_commits_;
  auto won = std::make_shared<std::vector<int64_t>>();
  database_->Post(
      [run = directory_.id(), file, won](RunStore& store) {
        *won = store.Commit(run, FileKind::kGenerations, file, DocumentsOf(file.first, file.end));
      },
      [this, file, won] {
        --pending_commits_;
        const size_t index = record_.generations.size();
        record_.generations.push_back(file);
        for (const int64_t document : *won) record_.generated[file.task][document] = index;
        machine_.GenerationsCommitted(task_index_.at(file.task), *won, file.path, file.trial, file.attempt);
        ServeScorers();
        CheckEnd();
      });
}

void Evaluation::OnTrialDone(const std::string& id, const protocol::TrialDone& done) {
  if (!machine_.TrialDone(done.trial, done.attempt)) {
    spdlog::warn("{}: late end of trial {} is ignored", id, done.trial);
  }
  ServeWorkers();
  CheckEnd();
}

void Evaluation::OnTrialFailed(const std::string& id, const protocol::TrialFailed& failed) {
  if (failed.trial < 0) {
    if (!failed.retry) return Fail(ErrorKind::kInput, fmt::format("worker {}: {}", id, failed.message));
    spdlog::warn("worker {}: {}", id, failed.message);
    workers_->NoteCause(id, failed.message);
    agent_->Kill(id);
    return;
  }
  spdlog::warn("worker {}: trial {} failed: {}", id, failed.trial, failed.message);
  machine_.TrialFailed(failed.trial, failed.attempt, failed.message, failed.retry);
  ServeWorkers();
  CheckEnd();
}

void Evaluation::OnJobDone(const std::string& id, const protocol::JobDone& done) {
  const auto job = machine_.JobDone(id, done.job);
  if (!job) return spdlog::warn("{}: late end of job {} is ignored", id, done.job);
  CommitScores(*job, done);
}

void Evaluation::CommitScores(const MetricJob& job, const protocol::JobDone& done) {
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
  database_->Post(
      [run = directory_.id(), file, won](RunStore& store) {
        *won = store.Commit(run, FileKind::kScores, file, DocumentsOf(file.first, file.end));
      },
      [this, file, won, task = job.task] {
        --pending_commits_;
        const size_t index = record_.scores.size();
        record_.scores.push_back(file);
        for (const int64_t document : *won) record_.scored[file.task][document] = index;
        machine_.ScoresCommitted(task, *won);
        if (machine_.task_finished(task)) FinishTask(task);
        CheckEnd();
      });
}

void Evaluation::FinishTask(size_t task) {
  const SuiteTask& suite_task = suite_->tasks[task];
  const std::string& name = suite_task.definition.name;
  FinishedTask finished;
  finished.definition = suite_task.definition;
  finished.prepared = suite_task.prepared;
  finished.samples = directory_.path() / fmt::format("samples_{}.jsonl", name);
  finished.bootstrap_iters = config_.bootstrap_iters;
  for (const CommittedFile& file : record_.generations) finished.generation_files.push_back(Absolute(file.path));
  for (const CommittedFile& file : record_.scores) finished.score_files.push_back(Absolute(file.path));
  for (int64_t document = 0; document < suite_task.documents; ++document) {
    finished.generation_of.push_back(record_.generated[name].at(document));
    finished.score_of.push_back(record_.scored[name].at(document));
  }
  finisher_->Submit(
      std::move(finished),
      [this, task](TaskResult result) {
        finished_tasks_[task] = std::move(result);
        CheckEnd();
      },
      [this, name](const std::string& text) {
        Fail(ErrorKind::kInfrastructure, fmt::format("task {}: {}", name, text));
      });
}

void Evaluation::OnExit(const std::string& id, const ProcessExit& exit) {
  const std::string how = ToString(exit);
  if (workers_->Owns(id)) {
    machine_.WorkerLost(id, fmt::format("worker {}: {}", id, how));
    workers_->Exited(id, how);
    if (!ending_) ServeWorkers();
  } else {
    machine_.ScorerLost(id, fmt::format("metric process {}: {}", id, how));
    scorers_->Exited(id, how);
    if (!ending_) ServeScorers();
  }
  if (ending_) return;
  CheckEnd();
  if (!planned_ && workers_->exhausted()) {
    Fail(ErrorKind::kInfrastructure, fmt::format("no worker could be started: {}; see {}", workers_->last_exit(),
                                                 (directory_.path() / "logs").string()));
  }
}

void Evaluation::OnSpan(const std::string& id, const protocol::Span& span) {
  timeline_.Add(id, {span.name, span.begin, span.end, span.args});
}

}  // namespace evald
