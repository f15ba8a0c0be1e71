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

// What an engine says of itself and decides its answers.
Json Identity(Json engine) {
  for (const char* key : {"concurrency", "device", "device_id", "devices", "driver", "follows", "refused"}) engine.erase(key);
  return engine;
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

void Evaluation::RowAppeared(const std::string& process, const std::string& title, bool is_device) {
  if (!ending_taken_) timeline_.AddRow(process, title, is_device);
}

bool Evaluation::Suits(const Json& engine) const {
  if (engine_info_.is_null() || !(engine_info_.contains("device_id") || engine.contains("device_id"))) return true;
  const auto same = [&](const char* key) { return engine_info_.value(key, Json()) == engine.value(key, Json()); };
  return same("name") && same("version") && same("device");
}

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

void Evaluation::DeviceSetAside(const std::string& device, const std::string& why) {
  if (ending_) return;
  Json aside = json_.record().value("set_aside", Json::object());
  aside[device] = why;
  Note("set_aside", std::move(aside));
}

void Evaluation::WorkerLoaded(const std::string& worker, const protocol::Loaded& loaded) {
  if (ending_) return;
  if (loaded.report.is_object() && loaded.report.contains("gb_per_s")) {  // it pulled, perhaps between two heartbeats
    const auto bytes = loaded.report.value("bytes", int64_t{0});
    OnPull(worker, bytes, bytes);
  }
  Json engine = loaded.engine;
  const Json scoring = loaded.report.value("scoring", Json());  // of an engine that tests itself
  if (scoring.is_object() && !scoring.value("offered", true)) engine["refused"] = scoring.value("reason", "");
  if (!engine_info_.is_null()) return;
  const Json before = json_.record().value("engine", Json());
  if (!before.is_null() && Identity(before) != Identity(engine)) {
    return Fail(ErrorKind::kUsage,
                fmt::format("{}: this run was begun with another engine: {} then, {} on worker {} now; start a new run",
                            path_.string(), Identity(before).dump(), Identity(engine).dump(), worker));
  }
  engine_info_ = std::move(engine);
  Record({{"engine", engine_info_}}, [] {});
  MaybePlan();
}

void Evaluation::LoadRefused(const std::string& worker, const std::string& why) {
  Fail(ErrorKind::kInput, fmt::format("worker {}: {}", worker, why));
}

std::optional<protocol::Lease> Evaluation::LeaseTrial(const std::string& worker, const std::string& device) {
  if (!planned_ || !wants_workers()) return std::nullopt;
  const auto lease = machine_.LeaseTrial(worker, MonotonicMicros());
  if (!lease) return std::nullopt;
  return Granted(*lease, worker, device);
}

std::optional<protocol::Lease> Evaluation::LeaseCopy(const std::string& worker, const std::string& device) {
  if (!planned_ || ending_ || draining_ || paused_ || congested()) return std::nullopt;
  const auto lease = machine_.LeaseCopy(worker, MonotonicMicros());
  if (!lease) return std::nullopt;
  log::Info("trial {} repeats for {} what another worker is late with", lease->trial, worker);
  return Granted(*lease, worker, device);
}

protocol::Lease Evaluation::Granted(const TrialLease& lease, const std::string& worker, const std::string& device) {
  device_of_[worker] = device;
  protocol::Lease message{WireId(number_, lease.trial), lease.attempt, {}, load().fingerprint, id()};
  for (const LeasedSlice& slice : lease.slices) {
    const SuiteTask& task = suite_->tasks[slice.task];
    protocol::Slice sent{task.definition.name, task.prepared.string(), task.tokenizer_key,
                         slice.documents.first, slice.documents.end, Absolute(slice.file), {}};
    for (const std::string& file : slice.salvage) sent.salvage.push_back(Absolute(file));
    message.slices.push_back(std::move(sent));
  }
  FailPoint("run.lease_given");
  support_.database->Post([run = id(), worker, trial = lease.trial, attempt = lease.attempt](
                              RunStore& store) { store.RecordLease(run, trial, attempt, worker); });
  return message;
}

std::optional<protocol::Job> Evaluation::LeaseJob(const std::string& scorer,
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
    throw Error(ErrorKind::kInternal, fmt::format("{}: to be scored, but not committed", job.generations));
  }
  return record_.generations[file->second].hash;
}

std::vector<protocol::Revoke> Evaluation::HeldTrials(const std::string& worker) const {
  std::vector<protocol::Revoke> held;
  for (const Grant& grant : machine_.trials().HeldBy(worker)) {
    held.push_back({WireId(number_, grant.item), grant.attempt});
  }
  return held;
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
  hooks_.work();
  CheckEnd();
}

void Evaluation::OnProgress(const std::string& worker, const protocol::Progress& progress) {
  if (!planned_ || ending_) return;
  machine_.Progressed(worker, IdOfWireId(progress.trial), progress.attempt, progress.requests_done,
                      progress.oldest_seconds, MonotonicMicros());
  const auto task = task_index_.find(progress.oldest_task);
  if (task != task_index_.end()) machine_.Overdue(task->second, progress.oldest_seconds);
}

std::vector<std::pair<std::string, protocol::Shorten>> Evaluation::Relieve(const std::string& worker) {
  std::vector<std::pair<std::string, protocol::Shorten>> orders;
  if (!planned_ || ending_ || draining_ || paused_) return orders;
  for (const ShortenOrder& order : machine_.Relieve(worker, MonotonicMicros())) {
    orders.push_back({order.worker, {WireId(number_, order.trial), order.attempt, machine_.tasks()[order.task].name,
                                     order.first, order.end}});
  }
  return orders;
}

void Evaluation::OnShortened(const protocol::Shortened& shortened) {
  const auto task = task_index_.find(shortened.task);
  if (ending_ || task == task_index_.end()) return;
  const int64_t trial = IdOfWireId(shortened.trial);
  if (machine_.Shortened(trial, shortened.attempt, task->second, shortened.first, shortened.end)) hooks_.work();
}

std::vector<std::pair<std::string, protocol::Revoke>> Evaluation::TakeWithdrawn() {
  std::vector<std::pair<std::string, protocol::Revoke>> orders;
  for (const WithdrawOrder& order : machine_.TakeWithdrawn()) {
    log::Info("trial {} of {} is withdrawn: another worker has committed it", order.trial, order.worker);
    orders.push_back({order.worker, {WireId(number_, order.trial), order.attempt}});
  }
  return orders;
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

void Evaluation::OnJobDone(const std::string& scorer, const protocol::JobDone& done, const Json& isolation) {
  if (ending_) return;
  isolation_ = isolation;
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
  if (was_congested && !congested()) hooks_.work();
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
                              Fail(ErrorKind::kInfrastructure, fmt::format("task {}: {}", name, error.what()));
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

void Evaluation::WorkerLost(const std::string& worker, const std::string& cause, bool at_fault) {
  pulls_.erase(worker);
  machine_.WorkerLost(worker, cause, at_fault);
  CheckEnd();
}

void Evaluation::ScorerLost(const std::string& scorer, const std::string& cause) {
  machine_.ScorerLost(scorer, cause);
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
