#include "orchestrator/run/run_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/names.h"
#include "orchestrator/schedule/slice.h"

namespace evald {
namespace {

// Stretches of neighbouring documents in a sorted list.
std::vector<DocumentRange> Ranges(const std::vector<int64_t>& documents) {
  std::vector<DocumentRange> ranges;
  for (const int64_t document : documents) {
    if (!ranges.empty() && ranges.back().end == document) {
      ++ranges.back().end;
    } else {
      ranges.push_back({document, document + 1});
    }
  }
  return ranges;
}

// Less than so many leases' cost is not worth another one.
constexpr double kStealLeases = 2;
// For so long a worker waits for what others give back.
constexpr int64_t kReliefMicros = 2'000'000;

double Seconds(int64_t micros) { return static_cast<double>(micros) / 1e6; }

}  // namespace

void RunMachine::SetTasks(std::vector<MachineTask> tasks) {
  specs_ = std::move(tasks);
  for (const MachineTask& task : specs_) {
    TaskState state;
    state.generated.assign(static_cast<size_t>(task.documents), false);
    state.scored.assign(static_cast<size_t>(task.documents), false);
    tasks_.push_back(std::move(state));
    TaskEstimate alike;
    alike.name = task.name;
    alike.documents = task.documents;
    alike.dataset = static_cast<int>(costs_.tasks());
    alike.device_s = alike.size = 1;
    costs_.Add({std::move(alike), 1});
  }
}

void RunMachine::Plan(const PlanSetup& setup) {
  next_trial_ = setup.first_trial;
  next_job_ = setup.first_job;
  policy_ = MakePolicy(setup.policy, setup.costs);
  work_ = OpenWork(setup.devices, setup.places, setup.score_slots);
  stealing_ = Stealing(kStealLeases * setup.costs.lease_s);
  lease_s_ = setup.costs.lease_s;
  for (size_t t = 0; t < specs_.size(); ++t) {
    TaskState& state = tasks_[t];
    std::vector<int64_t> open;
    for (int64_t d = 0; d < specs_[t].documents; ++d) {
      if (!state.generated[d]) open.push_back(d);
    }
    state.generated_count = specs_[t].documents - static_cast<int64_t>(open.size());
    state.scored_count = std::count(state.scored.begin(), state.scored.end(), true);
    work_.Add(costs_.Now(t), Ranges(open));
  }
}

std::string RunMachine::GenerationsFile(size_t task, int64_t first, int64_t trial,
                                        int attempt) const {
  return fmt::format("generations/{}/{}.{}-{}.jsonl", FolderNameOf(specs_[task].name), trial,
                     attempt, first);
}

std::string RunMachine::FileOf(const SliceState& slice, int64_t trial, int attempt) const {
  return GenerationsFile(slice.task, slice.documents.first, trial, attempt);
}

int RunMachine::DeviceOf(const std::string& worker) {
  const auto known = device_of_.find(worker);
  if (known != device_of_.end()) return known->second;
  worker_of_.push_back(worker);
  return device_of_[worker] = static_cast<int>(device_of_.size());
}

// The next trial as the policy has it, in slices of which each is scored for itself. -1: none.
int64_t RunMachine::CutTrial(const std::string& worker) {
  if (work_.documents() == 0) return -1;
  const std::vector<Cut> cuts =
      policy_->Next(work_, DeviceOf(worker) % std::max(1, work_.devices()));
  if (cuts.empty()) return -1;
  const int64_t trial = next_trial_++;
  std::vector<SliceState>& slices = trials_[trial].slices;
  for (const Cut& cut : cuts) {
    for (const DocumentRange range : work_.Take(cut.task, cut.documents)) {
      for (const DocumentRange slice : CutSlices(range, specs_[cut.task].slow_scoring)) {
        slices.push_back({cut.task, slice, false, tasks_[cut.task].salvage});
      }
    }
  }
  trials_table_.Add(trial, trial);
  return trial;
}

std::optional<TrialLease> RunMachine::LeaseTrial(const std::string& worker, int64_t now) {
  if (trials_table_.queued() == 0 && CutTrial(worker) < 0) return std::nullopt;
  const auto grant = trials_table_.Lease(worker, now);
  if (!grant) return std::nullopt;
  relief_.erase(worker);
  const TrialLease lease = LeaseOf(*grant, now);
  ReportBegun(worker, now);
  return lease;
}

TrialLease RunMachine::LeaseOf(const Grant& grant, int64_t now) {
  TrialLease lease{grant.item, grant.attempt, {}};
  TrialState& trial = trials_.at(grant.item);
  trial.requests_done = 0;
  trial.since_us = now;
  for (const SliceState& slice : trial.slices) {
    if (slice.reported) continue;
    lease.slices.push_back(
        {slice.task, slice.documents, FileOf(slice, grant.item, grant.attempt), slice.salvage});
  }
  return lease;
}

// Requests are begun in the order of a trial's slices. In the engine are as many as it has places
// for.
std::vector<WaitingDocuments> RunMachine::WaitingOf(const std::string& worker) const {
  std::vector<WaitingDocuments> waiting;
  for (const Grant& grant : trials_table_.HeldBy(worker)) {
    const TrialState& trial = trials_.at(grant.item);
    if (partner_.count(grant.item) > 0) continue;  // it is computed twice already
    double begun = static_cast<double>(trial.requests_done + work_.places());
    for (size_t s = 0; s < trial.slices.size(); ++s) {
      const SliceState& slice = trial.slices[s];
      const double each = std::max(specs_[slice.task].requests_per_document, 1e-9);
      const auto documents =
          std::min(static_cast<int64_t>(std::ceil(begun / each)), slice.documents.size());
      begun = std::max(0.0, begun - static_cast<double>(documents) * each);
      if (slice.reported || documents == slice.documents.size()) continue;
      const int64_t first = std::max(slice.documents.first + documents, slice.documents.first + 1);
      if (first < slice.documents.end) {
        waiting.push_back(
            {grant.item, static_cast<int>(s), slice.task, {first, slice.documents.end}});
      }
    }
  }
  return waiting;
}

void RunMachine::Progressed(const std::string& worker, int64_t trial, int attempt,
                            int64_t requests_done, double oldest_s, int64_t now) {
  if (!trials_table_.Holds(worker, trial, attempt)) return;
  TrialState& state = trials_.at(trial);
  // Without an age nothing in the engine is old, if requests have ended; else nobody has looked.
  if (oldest_s > 0 || requests_done > state.requests_done)
    state.since_us = now - static_cast<int64_t>(oldest_s * 1e6);
  state.requests_done = requests_done;
  if (work_.documents() > 0) return;  // nobody needs to know yet
  stealing_.Report(Seconds(now), DeviceOf(worker), WaitingOf(worker), work_);
  ReportBegun(worker, now);
}

double RunMachine::waiting_s(int64_t now) const {
  return has_trials() || !policy_->doubles_stragglers() ? 0
                                                        : stealing_.most_waiting_s(Seconds(now));
}

std::vector<ShortenOrder> RunMachine::Relieve(const std::string& worker, int64_t now) {
  if (has_trials() || !policy_->doubles_stragglers() || relief_[worker] > now) return {};
  const auto theft = stealing_.Next(Seconds(now), DeviceOf(worker));
  if (!theft) return {};
  const std::string& victim = worker_of_[static_cast<size_t>(theft->device)];
  stealing_.Forget(theft->device);  // until it says what it has left
  relief_[worker] = now + kReliefMicros;
  std::vector<ShortenOrder> orders;
  for (const Grant& grant : trials_table_.HeldBy(victim)) {
    for (const WaitingDocuments& documents : theft->documents) {
      if (documents.trial != grant.item) continue;
      const SliceState& slice =
          trials_.at(grant.item).slices.at(static_cast<size_t>(documents.slice));
      if (slice.reported || documents.documents.first >= slice.documents.end) continue;
      orders.push_back({victim, grant.item, grant.attempt, slice.task, slice.documents.first,
                        documents.documents.first});
    }
  }
  return orders;
}

bool RunMachine::Shortened(const std::string& worker, int64_t trial, int attempt, size_t task,
                           int64_t first, int64_t end) {
  if (!trials_table_.Holds(worker, trial, attempt)) return false;
  for (SliceState& slice : trials_.at(trial).slices) {
    if (slice.task != task || slice.documents.first != first || slice.reported) continue;
    if (end <= first || end >= slice.documents.end) return false;
    if (!tasks_[task].refused) work_.PutBack(task, {end, slice.documents.end});
    slice.documents.end = end;
    return true;
  }
  return false;
}

void RunMachine::Measured(const std::string& worker, size_t task, int64_t documents,
                          double device_s, double longest_s) {
  doubling_.Measured(DeviceOf(worker),
                     work_.estimate(task).device_s * static_cast<double>(documents), device_s);
  costs_.Generated(task, documents, device_s, longest_s, &work_);
}

void RunMachine::Overdue(size_t task, double seconds) { costs_.Overdue(task, seconds, &work_); }

void RunMachine::MeasuredScoring(size_t task, int64_t documents, double score_s) {
  costs_.Scored(task, documents, score_s, &work_);
}

bool RunMachine::SliceReported(const std::string& worker, int64_t trial, int attempt, size_t task,
                               DocumentRange documents) {
  if (!trials_table_.Holds(worker, trial, attempt)) return false;
  for (SliceState& slice : trials_.at(trial).slices) {
    if (slice.task != task || slice.documents.first != documents.first ||
        slice.documents.end != documents.end || slice.reported) {
      continue;
    }
    slice.reported = true;
    Supersede(trial, task, documents);
    return true;
  }
  return false;
}

bool RunMachine::TrialDone(const std::string& worker, int64_t trial, int attempt) {
  if (!trials_table_.Holds(worker, trial, attempt)) return false;
  if (AllReported(trial)) return CompleteTrial(worker, trial, attempt);
  return TrialFailed(worker, trial, attempt,
                     "the worker called the trial done without all of its slices", true);
}

// Nobody asks for its slices any more: what is kept grows with what is under way, not with the run.
bool RunMachine::CompleteTrial(const std::string& worker, int64_t trial, int attempt) {
  if (!trials_table_.Complete(worker, trial, attempt)) return false;
  const auto partner = partner_.find(trial);
  if (partner != partner_.end() && !is_copy(trial)) Withdraw(partner->second);
  Part(trial);
  trials_.erase(trial);
  return true;
}

bool RunMachine::AllReported(int64_t trial) const {
  const auto& slices = trials_.at(trial).slices;
  return std::all_of(slices.begin(), slices.end(), [](const SliceState& s) { return s.reported; });
}

bool RunMachine::TrialFailed(const std::string& worker, int64_t trial, int attempt,
                             const std::string& cause, bool retry) {
  // Nothing of it is left to do: failing after the last slice is as good as done.
  if (trials_table_.Holds(worker, trial, attempt) && AllReported(trial))
    return CompleteTrial(worker, trial, attempt);
  if (trials_table_.Holds(worker, trial, attempt) && is_copy(trial)) {
    EndCopy(trial, attempt);
    return true;
  }
  if (!trials_table_.Fail(worker, trial, attempt, cause, retry)) return false;
  KeepPartsOf(trial, attempt);
  return true;
}

bool RunMachine::TrialGivenBack(const std::string& worker, int64_t trial, int attempt) {
  if (!trials_table_.Holds(worker, trial, attempt)) return false;
  if (AllReported(trial)) return CompleteTrial(worker, trial, attempt);
  if (is_copy(trial)) {
    EndCopy(trial, attempt);
    return true;
  }
  trials_table_.GiveBack(worker, trial, attempt);
  KeepPartsOf(trial, attempt);
  return true;
}

void RunMachine::SliceLost(size_t task, DocumentRange documents) {
  const TaskState& state = tasks_.at(task);
  if (state.refused) return;
  std::vector<int64_t> open;
  for (int64_t document = documents.first; document < documents.end; ++document) {
    if (!state.generated.at(static_cast<size_t>(document))) open.push_back(document);
  }
  for (const DocumentRange range : Ranges(open)) work_.PutBack(task, range);
}

void RunMachine::RefuseTask(size_t task, const std::string& cause) {
  TaskState& state = tasks_.at(task);
  if (!state.refused) state.refused = cause;
  work_.Take(task, work_.open(task));
}

bool RunMachine::RequestRefused(const std::string& worker, int64_t trial, int attempt, size_t task,
                                const std::string& cause) {
  if (!trials_table_.Holds(worker, trial, attempt)) return false;
  RefuseTask(task, cause);
  if (is_copy(trial)) {
    EndCopy(trial, attempt);
    return true;
  }
  for (const SliceState& slice : trials_.at(trial).slices) {
    if (!slice.reported && !tasks_[slice.task].refused)
      Reopen(slice, FileOf(slice, trial, attempt));
  }
  return CompleteTrial(worker, trial, attempt);
}

// What its attempts have written can be resumed by any slice of the task.
void RunMachine::Reopen(const SliceState& slice, const std::string& file) {
  std::vector<std::string>& known = tasks_[slice.task].salvage;
  std::vector<std::string> files = slice.salvage;
  files.insert(files.end(), {file, file + ".part"});
  for (const std::string& part : files) {
    if (std::find(known.begin(), known.end(), part) == known.end()) known.push_back(part);
  }
  work_.PutBack(slice.task, slice.documents);
}

void RunMachine::WorkerLost(const std::string& worker, const std::string& cause, bool at_fault) {
  stealing_.Forget(DeviceOf(worker));
  doubling_.Forget(DeviceOf(worker));
  for (const Grant& grant : trials_table_.HeldBy(worker)) {
    if (!trials_table_.Holds(grant.item, grant.attempt)) continue;  // withdrawn with one before it
    if (AllReported(grant.item)) {
      CompleteTrial(worker, grant.item, grant.attempt);
    } else if (is_copy(grant.item)) {
      EndCopy(grant.item, grant.attempt);
    }
  }
  for (const Grant& grant : trials_table_.Lose(worker, cause, at_fault))
    KeepPartsOf(grant.item, grant.attempt);
  std::erase_if(withdrawn_, [&](const WithdrawOrder& order) { return order.worker == worker; });
}

void RunMachine::KeepPartsOf(int64_t trial, int attempt) {
  for (SliceState& slice : trials_.at(trial).slices) {
    if (slice.reported) continue;
    const std::string file = FileOf(slice, trial, attempt);
    slice.salvage.push_back(file);
    slice.salvage.push_back(file + ".part");
  }
}

void RunMachine::GenerationsCommitted(size_t task, const std::vector<int64_t>& documents,
                                      const std::string& file, int64_t trial, int attempt) {
  TaskState& state = tasks_.at(task);
  for (const int64_t document : documents) {
    if (state.generated.at(document)) continue;
    state.generated[document] = true;
    ++state.generated_count;
  }
  for (const DocumentRange range : Ranges(documents)) AddJob(task, range, file, trial, attempt);
}

// Programs take long to run: they go before everything else, in small pieces, so that all metric
// processes have some from the first ones on and end together.
void RunMachine::AddJob(size_t task, DocumentRange documents, const std::string& file,
                        int64_t trial, int attempt) {
  const bool slow = specs_[task].slow_scoring;
  const int64_t piece = slow ? kSlowJobDocuments : documents.size();
  for (int64_t first = documents.first; first < documents.end; first += piece) {
    MetricJob job{next_job_++, task,   {first, std::min(first + piece, documents.end)}, file, "",
                  trial,       attempt};
    job.file = fmt::format("scores/{}/{}.{}-{}.jsonl", FolderNameOf(specs_[task].name), trial,
                           attempt, first);
    jobs_table_.Add(job.job, slow ? 0 : 1);
    jobs_.emplace(job.job, std::move(job));
  }
}

std::optional<MetricJob> RunMachine::LeaseJob(
    const std::string& scorer, int64_t now,
    const std::function<bool(const std::string& generations)>& fits) {
  std::function<bool(int64_t)> of_job;
  if (fits) of_job = [&](int64_t job) { return fits(jobs_.at(job).generations); };
  const auto grant = jobs_table_.Lease(scorer, now, of_job);
  if (!grant) return std::nullopt;
  MetricJob job = jobs_.at(grant->item);
  job.job_attempt = grant->attempt;
  return job;
}

std::optional<MetricJob> RunMachine::JobDone(const std::string& scorer, int64_t job, int attempt) {
  if (!jobs_table_.Complete(scorer, job, attempt)) return std::nullopt;
  return jobs_.at(job);
}

bool RunMachine::JobFailed(const std::string& scorer, int64_t job, int attempt,
                           const std::string& cause, bool retry) {
  if (!jobs_table_.Fail(scorer, job, attempt, cause, retry)) return false;
  if (!retry) RefuseTask(jobs_.at(job).task, cause);
  return true;
}

void RunMachine::ScoresLost(const MetricJob& job) {
  AddJob(job.task, job.documents, job.generations, job.trial, job.attempt);
}

void RunMachine::ScorerLost(const std::string& scorer, const std::string& cause) {
  jobs_table_.Lose(scorer, cause);
}

void RunMachine::ScoresCommitted(size_t task, const std::vector<int64_t>& documents) {
  TaskState& state = tasks_.at(task);
  for (const int64_t document : documents) {
    if (state.scored.at(document)) continue;
    state.scored[document] = true;
    ++state.scored_count;
  }
}

std::vector<int64_t> RunMachine::under_way() const {
  std::vector<int64_t> documents(specs_.size(), 0);
  for (const auto& [number, trial] : trials_) {
    if (!trials_table_.leased(number) || trial.copy) continue;
    double done = static_cast<double>(trial.requests_done);
    for (const SliceState& slice : trial.slices) {
      const double each = std::max(specs_[slice.task].requests_per_document, 1e-9);
      const auto of_slice = std::min(static_cast<int64_t>(done / each), slice.documents.size());
      done -= static_cast<double>(of_slice) * each;
      if (!slice.reported) documents[slice.task] += of_slice;
    }
  }
  return documents;
}

int64_t RunMachine::generated(size_t task) const { return tasks_.at(task).generated_count; }
int64_t RunMachine::scored(size_t task) const { return tasks_.at(task).scored_count; }

bool RunMachine::complete() const {
  for (size_t t = 0; t < specs_.size(); ++t) {
    if (!task_finished(t)) return false;
  }
  return true;
}

bool RunMachine::refused() const {
  bool any = false;
  for (size_t t = 0; t < specs_.size(); ++t) {
    if (task_finished(t)) continue;
    if (!tasks_[t].refused) return false;
    any = true;
  }
  return any;
}

std::vector<Missing> RunMachine::missing() const {
  std::vector<Missing> missing;
  for (size_t t = 0; t < specs_.size(); ++t) {
    if (tasks_[t].refused && !task_finished(t))
      missing.push_back({"task " + specs_[t].name, *tasks_[t].refused});
  }
  const auto describe = [&](size_t task, DocumentRange documents, const char* step) {
    return fmt::format("task {}, documents {} to {}: {}", specs_[task].name, documents.first,
                       documents.end - 1, step);
  };
  for (const GivenUp& given_up : trials_table_.given_up()) {
    for (const SliceState& slice : trials_.at(given_up.item).slices) {
      if (slice.reported || tasks_[slice.task].refused) continue;
      missing.push_back({describe(slice.task, slice.documents, "generation"),
                         fmt::format("{} (attempt {})", given_up.cause, given_up.attempts)});
    }
  }
  for (const GivenUp& given_up : jobs_table_.given_up()) {
    const MetricJob& job = jobs_.at(given_up.item);
    if (tasks_[job.task].refused) continue;
    missing.push_back({describe(job.task, job.documents, "scoring"),
                       fmt::format("{} (attempt {})", given_up.cause, given_up.attempts)});
  }
  return missing;
}

}  // namespace evald
